"""The verdict and the screen of ``simulate robustness``: conditions as rows, stacks as columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from simulator.report.command import PAIR, Asked
from simulator.report.table import Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import (
    between,
    count,
    dropped,
    early,
    ends,
    is_significant,
    share,
    title,
)
from simulator.results.robustness import Attacks, RobustnessSummary, SystemNoise
from simulator.results.suites import AdjustedEffect
from simulator.robustness.tables import attacks, cells, conditions, flips, losses, more, noise


def show(summary: RobustnessSummary, folder: str, console: Console) -> None:
    """Print the metric under each condition, and how much further it moves on the others."""
    for part in _parts(summary):
        shown = escape(part) if isinstance(part, str) else screen(part)
        console.print(shown, highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    for skipped_sample in summary.skipped_samples[:3]:
        words = escape(f"{skipped_sample.sample} skipped: {skipped_sample.why}")
        console.print(f"[yellow]note[/] {words}", highlight=False)
    console.print(f"run: {folder}", soft_wrap=True, markup=False)


def _parts(summary: RobustnessSummary) -> Iterator[Table | str]:
    """The tables, and sentences between them."""
    less = f"Change of {title(summary.task, summary.metric)} less that of"
    if summary.early is not None:
        yield cells(summary)
        yield from dropped(summary.early, summary.sample_unit)
    elif summary.rows:
        yield conditions(summary)
        if summary.interaction:
            yield more(summary, f"{less} {next(iter(summary.stacks))}, points")
        if summary.against:
            yield more(summary.against, f"{less} {summary.against.model} on the same stack, points")
    if summary.sequences:
        yield from flips(summary, summary.sequences)
    if summary.attacks:
        yield attacks(summary, summary.attacks)
        yield f"Attacks follow the gradient of {summary.attacks.gradient}."
        yield from not_carried(summary.attacks)
    if summary.system_noise:
        yield noise(summary, summary.system_noise)
        yield from own_pipelines(summary.system_noise)
    if any(len(by) > 1 for by in summary.losses.values()):
        yield losses(summary)
    yield from notes(summary)


def notes(summary: RobustnessSummary) -> Iterator[str]:
    """Yield what the figures mean."""
    where = f"onditions act at: {summary.where}."
    if summary.rows and summary.early is None:
        yield f"mCE is relative to {summary.reference}; c{where}"
    else:
        yield f"C{where}"
    if summary.sequences:
        yield f"mFR and mT5D are relative to {summary.sequences.reference}."
    parts = (summary, summary.sequences, summary.against)
    if families := [str(part.family) for part in parts if part is not None and part.family]:
        yield f"* more than chance, Holm over {' and '.join(families)} tests."
    if left_out := [name for name, row in summary.rows.items() if not row.in_means]:
        yield f"Not in the means: {', '.join(left_out)}."
    for side, why in summary.nc.items():
        yield f"{side} is NC, not converged, and in no mean: {why}."


def own_pipelines(found: SystemNoise) -> Iterator[str]:
    """Yield whether the pipeline of each stack, which SNI is relative to, is one of the options."""
    for side, stack in found.stacks.items():
        *names, last = stack.same or ["none"]
        which = f"{', '.join(names)} and {last}" if names else last
        yield f"The preparation of {side} itself is, of its {len(stack.sr)} options, {which}."


def not_carried(attacks: Attacks) -> Iterator[str]:
    """Yield a sentence on the attacks of which nothing reached a stack."""
    if attacks.not_carried:
        yield (
            f"{', '.join(attacks.not_carried)}: cannot be carried by 8 bits, since the budget is "
            "below one level; in no figure of a stack and in no mean."
        )


def verdict(summary: RobustnessSummary) -> Told:
    """Which conditions cost another stack more than the first one."""
    name = title(summary.task, summary.metric)
    first, *_ = summary.stacks
    if summary.early is not None:
        against = f"Each is held against {first} under the same condition."
        return Told([*early(summary.early, summary.sample_unit), against, *_nc(summary)])
    lost, costliest = [], (0.0, "", "")
    for side, by in summary.interaction.items():
        found = {condition: effect for condition, effect in by.items() if is_significant(effect)}
        worse = {condition: effect.value or 0.0 for condition, effect in found.items()}
        worse = {condition: value for condition, value in worse.items() if value < 0}
        several = count(len(by), "condition")
        if worse:
            most = min(worse, key=lambda one: worse[one])
            costliest = min(costliest, (worse[most], most, side))
            lost.append(
                f"{side} loses more than {first} under {len(worse)} of {several} (Holm), most "
                f"under {most}: {-100 * worse[most]:.2f} points of {name} more "
                f"(95 % interval of the difference {ends(found[most].ci95)})."
            )
        else:
            lost.append(
                f"Under none of {several} does {side} lose more than {first} beyond chance (Holm)."
            )
    means = [
        f"{side} {share(stack.mnci.value)}{between(stack.mnci.ci95)}"
        for side, stack in summary.stacks.items()
        if stack.mnci
    ]
    if means:
        lost.append(f"Of {name} the conditions take away on average: {', '.join(means)}.")
    lost += _kinds(summary)
    lost += _flipping(summary)
    lost += _nc(summary)
    if not costliest[1]:
        return Told(lost)
    _, condition, side = costliest
    level, at = summary.rows[condition].levels[-1].text, list(summary.stacks).index(side)
    return Told(lost, next=lambda asked: _explained(asked, first, side, at, level))


def _explained(asked: Asked, first: str, side: str, at: int, level: str) -> str:
    """The command that explains a stack against the first one, under one condition."""
    given, sides = asked.arguments, {first: "train", side: "deploy"}
    overrides = [one.partition(".") for one in given.get("overrides", ())]
    own: dict[str, object] = {
        "overrides": [f"{sides[of]}.{rest}" for of, _, rest in overrides if of in sides]
    }
    if given.get("profiles"):
        own |= {"train": given["profiles"][0], "deploy": given["profiles"][at]}
    return asked.line("explain", PAIR, **own, under=level)


def _nc(summary: RobustnessSummary) -> list[str]:
    return [f"{side} did not converge (NC), and has no figures." for side in summary.nc]


def _kinds(summary: RobustnessSummary) -> Iterator[str]:
    """Of each kind of noise but the one above: which stacks lose more, which less of what is clean.

    That is what RobustMQ asks of quantized networks.
    """
    first = next(iter(summary.stacks))
    found: dict[str, dict[str, AdjustedEffect]] = {}
    for side, by in summary.losses.items():
        for kind, one in by.items():
            if one.more_lost is not None and kind not in ("corruptions", "sequences"):
                found.setdefault(kind, {})[side] = one.more_lost
    for kind, effects in found.items():
        sure = {side: one.value or 0.0 for side, one in effects.items() if is_significant(one)}
        noise = kind.replace("_", " ")
        for word, sign in (("more", 1), ("less", -1)):
            if sides := [side for side, value in sure.items() if sign * value > 0]:
                who = f"{' and '.join(sides)} {'lose' if len(sides) > 1 else 'loses'}"
                yield f"Under {noise} {who} {word} of the clean metric than {first} (Holm)."
        if not sure:
            yield f"Under {noise} no stack is shown to lose more or less than {first}."


def _flipping(summary: RobustnessSummary) -> list[str]:
    """How often answers flip from frame to frame, and where more often than the first's."""
    found = summary.sequences
    if found is None:
        return []
    first, told = next(iter(found.stacks)), []
    for side, by in found.interaction.items():
        worse = {name: effect.value or 0.0 for name, effect in by.items() if is_significant(effect)}
        worse = {name: value for name, value in worse.items() if value > 0}
        several = count(len(by), "sequence")
        if worse:
            most = max(worse, key=lambda one: worse[one])
            told.append(
                f"Answers of {side} flip more often than those of {first} in {len(worse)} of "
                f"{several} (Holm), most in {most}: {100 * worse[most]:.2f} points more "
                f"(95 % interval {ends(by[most].ci95)})."
            )
        else:
            told.append(
                f"In none of {several} do answers of {side} flip more often than those of {first} "
                "beyond chance (Holm)."
            )
    means = [
        f"{side} {share(stack.mfp.value, 2)}{between(stack.mfp.ci95)}"
        for side, stack in found.stacks.items()
        if stack.mfp
    ]
    if means:
        told.append(f"From frame to frame answers flip on average: {', '.join(means)}.")
    return told
