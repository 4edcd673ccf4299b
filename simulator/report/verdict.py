"""The verdict of a run: may I ship, what do I lose, which step costs it, what to do next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from simulator.report import repairs
from simulator.report.words import (
    PAGE,
    SIGNIFICANT,
    between,
    chance,
    count,
    decided,
    early,
    early_steps,
    given_deadlines,
    interval,
    is_significant,
    named,
    points,
    ranked,
    share,
    title,
)
from simulator.results.shared import Summary, Verdict

if TYPE_CHECKING:  # building all of them takes longer than many a run
    from simulator.results.audits import AuditedPair, AuditSummary, ReplaySummary
    from simulator.results.faults import FaultsSummary, Rate
    from simulator.results.identify import IdentifySummary
    from simulator.results.pair import PairSummary
    from simulator.results.repair import RepairSummary
    from simulator.results.robustness import RobustnessSummary
    from simulator.results.suites import Blame, ExplainSummary, SweepSummary, WorstSummary
    from simulator.results.timed import LatencySummary, LoadSummary, TailSummary

S = TypeVar("S", bound=Summary)
_NAMED = 5
"""Name at most this many pairs or rules; the tables after the verdict have all."""
WORDS = {"ok": "OK", "not ok": "NOT OK", "undecided": "UNDECIDED"}
STYLES = {"ok": "bold green", "not ok": "bold red", "undecided": "bold yellow", None: "bold"}
"""Of the line on a terminal, by decision."""


@dataclass(frozen=True, slots=True)
class _Told:
    lost: Sequence[str]
    cause: str | None = None
    next: str | None = None


def concluded(summary: S) -> S:
    """Return a summary with its verdict."""
    return summary.model_copy(update={"verdict": verdict(summary)})


def verdict(summary: Summary) -> Verdict:
    """Return the verdict of a finished run; it follows from the other fields of its summary."""
    told = _COMMANDS[summary.command](summary)
    return Verdict(
        decision=_decision(summary), lost=list(told.lost), cause=told.cause, next=told.next
    )


def line(found: Verdict) -> str:
    """Return a verdict as one line of text."""
    word = f"{WORDS[found.decision]}: " if found.decision else ""
    after = f" Next: {found.next}" if found.next else ""
    return word + " ".join([*found.lost, *filter(None, [found.cause])]) + after


def _decision(summary: Summary) -> Literal["ok", "not ok", "undecided"] | None:
    if summary.command == "replay":
        return _reproduced(cast("ReplaySummary", summary))
    if not summary.gate.rules:
        return None
    failed = any(rule.failed and not rule.undecided for rule in summary.gate.rules)
    if not failed and any(rule.undecided for rule in summary.gate.rules):
        return "undecided"
    return "not ok" if failed else "ok"


def _reproduced(summary: ReplaySummary) -> Literal["ok", "not ok"]:
    differs = any(pair.verdict == "different" for pair in summary.pairs)
    return "not ok" if differs or summary.contradictions else "ok"


def _pair(summary: PairSummary) -> _Told:
    flips, unit = summary.flips, summary.unit
    units = "answers" if unit == "image" else f"{unit}s"
    changed = f"{flips.count:,} of {flips.units:,} {units} change"
    ends = "" if summary.decided else between(flips.ci95)
    lost = [changed + (f": {share(flips.rate, 2)}{ends}." if flips.units else ".")]
    if summary.decided:
        lost.append(decided(summary.decided, summary.sample_unit))
    metric = summary.metric
    if delta := summary.delta.get(metric):
        old, new = (side.metric[metric] for side in (summary.train, summary.deploy))
        name = title(summary.task, metric)
        lost.append(
            f"{name} stays at {share(new, 2)}{interval(delta.ci95)}."
            if delta.value == 0
            else f"{name} goes from {share(old, 2)} to {share(new, 2)}, {points(delta)} "
            f"points{chance(delta.ci95)}."
        )
    elif not summary.labelled:
        lost.append("There are no labels: accuracy is not known.")
    if not flips.count:
        return _Told(lost)
    return _Told(lost, _alone(summary), "simulate explain, with the same options.")


def _alone(summary: PairSummary) -> str | None:
    """Which axis changes most answers when it alone is swapped; None in a quick run."""
    ran = [one for one in summary.alone if one.why is None]
    if not ran:
        return None
    changed = {" with ".join(one.axes): one.changed for one in ran if one.changed}
    if not changed:
        return "No axis changes an answer alone."
    (first, most), *others = changed.items()
    half = summary.flips.count / 2
    if half < most <= summary.flips.count and all(number <= half for _, number in others):
        rest = "".join(f"; {axis} {number:,}" for axis, number in others[:2])
        return f"Most of it: {first} ({most:,} alone{rest})."
    rest = "".join(f", {axis} {number:,}" for axis, number in others[:2])
    return f"Swapped alone, {first} changes {most:,}{rest}."


def _explain(summary: ExplainSummary) -> _Told:
    if not summary.blame:
        return _Told(["Nothing was measured that an axis could be blamed for."])
    metric = summary.metric if summary.metric in summary.blame else "flip_rate"
    blame = summary.blame[metric]
    name, total = title(summary.task, metric), blame.total.value or 0.0
    lost = [
        f"{summary.deploy.profile} moves {name} by {points(blame.total)} "
        f"points{chance(blame.total.ci95)}."
    ]
    shares = {axis: blame.shapley[axis] for axis in summary.axes}
    most = max(shares, key=lambda axis: abs(shares[axis].value or 0))
    found = shares[most]
    clear = found.p_holm is not None and found.p_holm < SIGNIFICANT
    half = abs(found.value or 0) > abs(total) / 2
    cause = (
        f"{most} has {'most of it' if half else 'the largest share'}: {points(found)} "
        f"points{interval(found.ci95)}"
    )
    cause += "." if clear else ", no more than chance explains (Holm)."
    return _Told(lost, cause, _repair(summary, metric, blame))


def _repair(summary: ExplainSummary, metric: str, blame: Blame) -> str | None:
    """Which repair wins most; None where none wins anything."""
    sign = -1 if metric == "flip_rate" else 1
    won = {axis: sign * (blame.swap_out[axis].value or 0) for axis in summary.axes}
    best = max(won, key=lambda axis: won[axis])
    if won[best] <= 0:
        return None
    name = title(summary.task, metric)
    return f"repair {best} first; alone that wins back {100 * won[best]:.2f} points of {name}."


def _sweep(summary: SweepSummary) -> _Told:
    name = title(summary.task, summary.metric)
    trained = f"{name} on {named(summary.train)}: {share(summary.trained, 2)}."
    options = {
        f"{column}/{option}": figures
        for column, found in summary.columns.items()
        for option, figures in found.options.items()
    }
    if summary.early is not None:
        return _Told([*early(summary.early, summary.sample_unit), trained])
    if not options:
        return _Told([trained])
    worst = max(options, key=lambda one: options[one].drop)
    figures = options[worst]
    lost = f"The most is lost by {worst}: {100 * figures.drop:.2f} points of {name}"
    return _Told(
        [f"{lost}{chance(figures.drop_ci95)}.", trained],
        next=f"simulate worst {summary.suite}, for what the options cost together.",
    )


def _worst(summary: WorstSummary) -> _Told:
    if not summary.path:
        return _Told(["No combination was tried."])
    deepest = max(summary.path, key=lambda step: float(step.drop))
    added = [step.added for step in summary.path]
    picks = ", ".join(added[: summary.path.index(deepest) + 1])
    lost = f"{100 * deepest.drop:.2f} points of {title(summary.task, summary.metric)} are lost"
    return _Told([f"{lost} by {picks}.", *early_steps(summary.early or ())])


def _repaired(summary: RepairSummary) -> _Told:
    return _Told(*repairs.told(summary))


def _robustness(summary: RobustnessSummary) -> _Told:
    """Which conditions cost another stack more than the first one."""
    name = title(summary.task, summary.metric)
    first, *_ = summary.stacks
    if summary.early is not None:
        against = f"Each is held against {first} under the same condition."
        return _Told([*early(summary.early, summary.sample_unit), against, *_nc(summary)])
    lost, costliest = [], (0.0, "")
    for side, by in summary.interaction.items():
        found = {condition: one for condition, one in by.items() if is_significant(one)}
        worse = {condition: one.value or 0.0 for condition, one in found.items()}
        worse = {condition: value for condition, value in worse.items() if value < 0}
        several = count(len(by), "condition")
        if worse:
            most = min(worse, key=lambda one: worse[one])
            costliest = min(costliest, (worse[most], most))
            lost.append(
                f"{side} loses more than {first} under {len(worse)} of {several} (Holm), most "
                f"under {most}: {-100 * worse[most]:.2f} points of {name} more."
            )
        else:
            lost.append(
                f"Under none of {several} does {side} lose more than {first} beyond chance (Holm)."
            )
    means = [
        f"{side} {share(stack.mnci.value)}" for side, stack in summary.stacks.items() if stack.mnci
    ]
    if means:
        lost.append(f"Of {name} the conditions take away on average: {', '.join(means)}.")
    lost += _flipping(summary)
    lost += _nc(summary)
    level = costliest[1] and summary.rows[costliest[1]].levels[-1].text
    return _Told(lost, next=f"simulate explain --under {level}." if level else None)


def _nc(summary: RobustnessSummary) -> list[str]:
    return [f"{side} did not converge (NC), and has no figures." for side in summary.nc]


def _faults(summary: FaultsSummary) -> _Told:
    """How often faults corrupt answers silently, and where most of them do."""
    lost = []
    for side, one in summary.stacks.items():
        if not one.sdc.of:
            lost.append(f"{side}: nothing was run.")
            continue
        lost.append(
            f"{side}: {_corrupted(summary, one.sdc)}; {share(one.due.rate, 2)} end in NaN or Inf."
        )
    first = next(iter(summary.stacks.values()))
    bits = {name: group.sdc.count for name, group in first.by_bit.items() if group.sdc.count}
    if not bits:
        return _Told(lost)
    again = f"simulate faults replay RUN --fault {first.worst[0].fault}."
    if summary.allocation != "proportional":  # numbers as drawn say nothing of bits
        return _Told(lost, next=again)
    most = max(bits, key=lambda name: bits[name])
    told = f"hit bit {most}: {bits[most]:,} of {sum(bits.values()):,}."
    cause = f"Most of them {told}" if 2 * bits[most] > sum(bits.values()) else None
    return _Told(lost, cause, again)


def _corrupted(summary: FaultsSummary, one: Rate) -> str:
    """How many answers are silently corrupted, and of strata what share of all that would be."""
    what = "faults" if summary.lasts == "transient" else "inferences with a fault"
    how = f"{share(one.rate, 2)}{between(one.ci95)}"
    counted = f"{one.count:,} of {one.of:,}"
    if summary.allocation == "proportional":
        return f"{counted} {what} corrupt an answer silently: {how}"
    return (
        f"{how} of {what} corrupt an answer silently, weighted by stratum; {counted} as they were "
        "drawn"
    )


def _flipping(summary: RobustnessSummary) -> list[str]:
    """How often answers flip from frame to frame, and where more often than the first's."""
    found = summary.sequences
    if found is None:
        return []
    first, told = next(iter(found.stacks)), []
    for side, by in found.interaction.items():
        worse = {name: one.value or 0.0 for name, one in by.items() if is_significant(one)}
        worse = {name: value for name, value in worse.items() if value > 0}
        several = count(len(by), "sequence")
        if worse:
            most = max(worse, key=lambda one: worse[one])
            told.append(
                f"Answers of {side} flip more often than those of {first} in {len(worse)} of "
                f"{several} (Holm), most in {most}: {100 * worse[most]:.2f} points more."
            )
        else:
            told.append(
                f"In none of {several} do answers of {side} flip more often than those of {first} "
                "beyond chance (Holm)."
            )
    means = [f"{side} {share(one.mfp.value, 2)}" for side, one in found.stacks.items() if one.mfp]
    if means:
        told.append(f"From frame to frame answers flip on average: {', '.join(means)}.")
    return told


def _latency(summary: LatencySummary | LoadSummary) -> _Told:
    from simulator.results.timed import LatencySummary

    lost = []
    for side, rows in summary.latency_ms.items():
        known = [(name, rows["total"][name]) for name in ("p50", "p90", "p99")]
        words = ", ".join(f"{name} {ms:.2f} ms" for name, ms in known if ms is not None)
        lost.append(f"{side}: {words or 'no figure'}.")
    if isinstance(summary, LatencySummary):
        for side, ratio in summary.ratio.items():
            known_ends = ratio.ci95
            ends = f" ({known_ends[0]:.2f} to {known_ends[1]:.2f})" if known_ends else ""
            lost.insert(0, f"{side} takes {ratio.value:.2f} times as long as {ratio.to}{ends}.")
    return _Told(lost)


def _tail(summary: TailSummary) -> _Told:
    """At the user's own deadlines where there are some, which are the same for every stack."""
    metric, given = title(summary.task, summary.metric), given_deadlines(summary)
    if given:
        return _Told([_at(summary, metric, name) for name in given])
    lost = []
    for side, found in summary.tail.items():
        words = f"{side}: {metric} {share(found.quality, 2)} without a deadline"
        known = ((name, one) for name, one in found.thresholds.items() if one is not None)
        for name, one in list(known)[:1]:
            worst = share(one.worst, 2)
            words += f", {worst} in the worst round at {one.ms:.2f} ms, its own p{name}"
        lost.append(f"{words}.")
    return _Told(lost, next="add --deadline-ms, which is the same for all.")


def _at(summary: TailSummary, metric: str, name: str) -> str:
    """Every stack under one deadline, the best one first."""
    worst = []
    for side in ranked(summary, name):
        one, whole = summary.tail[side].thresholds[name], share(summary.tail[side].quality, 2)
        found = share(one.worst, 2) if one else "unknown"
        worst.append(f"{side} {found} ({whole} without a deadline)")
    return f"{metric} in the worst round at {name.removesuffix('ms')} ms: {', '.join(worst)}."


def _audit(summary: AuditSummary) -> _Told:
    pairs, rules = summary.pairs, summary.gate.rules
    failed = [rule for rule in rules if rule.failed and not rule.undecided]
    undecided = [rule for rule in rules if rule.undecided]
    passes = "passes" if len(pairs) == 1 else "pass"
    lost = f"{len(pairs)} of {count(len(pairs), 'pair')} {passes} every rule."
    if not rules:
        lost = "Nothing was judged: the document has no rules."
    elif broken := failed or undecided:
        does = ("fail", "fails") if failed else ("are undecided", "is undecided")
        where = list(dict.fromkeys(f"{rule.deploy} ({rule.model})" for rule in broken))
        lost = (
            f"{len(broken)} of {count(len(rules), 'rule')} {does[len(broken) == 1]}, on "
            f"{len(where)} of {count(len(pairs), 'pair')}: {_some(where)}."
        )
    causes = [
        f"{word}: {_some(list(dict.fromkeys(rule.rule for rule in found)), '; ')}."
        for word, found in {"Failed": failed, "Undecided": undecided}.items()
        if found
    ]
    folders = [pair.folder for pair in pairs if not pair.passed]
    return _Told(
        [lost, *_most_changed(pairs)],
        " ".join(causes) or None,
        f"open {folders[0]}/{PAGE}." if folders else None,
    )


def _most_changed(pairs: Sequence[AuditedPair]) -> list[str]:
    """What is lost on the pair that changes most answers."""
    if not pairs:
        return []
    most = max(pairs, key=lambda pair: pair.flips.rate or 0)
    if not most.flips.count:
        return ["No answer changes."]
    where = f" on {most.deploy} ({most.model})" if len(pairs) > 1 else ""
    lost = f"Most answers change{where}" if len(pairs) > 1 else "Answers that change"
    lost += f": {most.flips.count:,} of {most.flips.units:,}"
    if delta := most.delta:
        lost += f"; {title(most.task, most.metric)} {points(delta)} points{chance(delta.ci95)}"
    return [f"{lost}."]


def _some(names: Sequence[str], between: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _replay(summary: ReplaySummary) -> _Told:
    kinds = dict.fromkeys(pair.verdict for pair in summary.pairs)
    found = [
        f"{sum(pair.verdict == kind for pair in summary.pairs)} of "
        f"{count(len(summary.pairs), 'pair')} {kind}"
        for kind in kinds
    ]
    lost = [f"{'; '.join(found)}."]
    if summary.contradictions:
        lost.append(f"The bundle contradicts itself in {len(summary.contradictions)} places.")
    return _Told(lost)


def _identify(summary: IdentifySummary) -> _Told:
    """Which stack reproduces a recording, and what the images do not tell."""
    changed = {axis: one.option for axis, one in summary.axes.items() if one.applies}
    names = ", ".join(f"{axis} {option}" for axis, option in changed.items())
    what, images = summary.kind, count(summary.samples, summary.sample_unit)
    if summary.exact and what != "predictions":
        lost = [f"{summary.recording} is reproduced to the bit on all {images}: {names}."]
    elif summary.exact:
        lost = [f"All {images} of {summary.recording} are answered alike: {names}."]
    else:
        far = "" if summary.mean is None else f", mean difference {summary.mean:.4g}"
        lost = [
            f"No stack that was compared gives {summary.recording}. The nearest is equal on "
            f"{summary.equal:,} of {images}{far}: {names}."
        ]
    open_axes = [axis for axis, one in summary.axes.items() if one.equal or one.together]
    cause = f"Not told apart by these images: {', '.join(open_axes)}." if open_axes else None
    probe = summary.telling
    after = f"record {probe.probe} of simulate recordings probes as well." if probe else None
    return _Told(lost, cause, after or "use identified.yaml of the run as --deploy.")


_COMMANDS: dict[str, Callable[[Any], _Told]] = {
    "run": _pair,
    "explain": _explain,
    "sweep": _sweep,
    "worst": _worst,
    "repair": _repaired,
    "robustness": _robustness,
    "faults": _faults,
    "identify": _identify,
    "latency": _latency,
    "tail": _tail,
    "audit": _audit,
    "replay": _replay,
}
