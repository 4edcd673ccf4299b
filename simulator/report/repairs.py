"""A repair in words: what to change, what it costs, what it gives back, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simulator.report.command import PAIR, Asked
from simulator.report.table import Cell, Column, Table
from simulator.report.verdicts.told import Told
from simulator.report.words import (
    SIGNIFICANT,
    answered,
    at_any_time,
    between,
    chance,
    count,
    figure,
    points,
    share,
    some,
    title,
)
from simulator.typed import Unit

if TYPE_CHECKING:
    from simulator.results.repair import Change, Confirmation, Cost, Judged, RepairSummary, Tried
    from simulator.results.suites import Early

_MORE = "Allow more in options.yaml of the run, and repair again."
NAME = "deploy"
"""The name of the deployment as it is."""


def told(summary: RepairSummary) -> Told:
    """Return the sentences of the verdict: what is lost, because of what, and what to do next."""
    if summary.early:
        return _told_early(summary, summary.early)
    gate, unseen = " and ".join(summary.rules), f"{summary.samples:,} {summary.sample_unit}s"
    seen = f"On {unseen} that the search has not seen"
    old = f"{summary.deploy.profile} {_loses(summary, summary.before)}"
    if summary.chosen == NAME:
        return Told([f"Nothing must change for {gate}.", f"{seen}, {old}."])
    lost = [f"{seen}, {old}; with {_named(summary)} it {_loses(summary, summary)}."]
    if summary.chosen is None:
        lost.insert(0, f"No finalist of {summary.combinations:,} stacks passes {gate}.")
        remains = ", ".join(summary.remains)
        cause = f"The nearest still differs from training in {remains}." if remains else None
        return Told([*lost, _MORE], cause)
    lost.append(
        f"It is the cheapest of {len(summary.finalists)} finalists, of {summary.combinations:,} "
        f"stacks, that passes {gate}."
    )
    lost += _doubt(summary)
    words = [sentence(summary, change) for change in summary.changes]
    return Told(lost, f"{'; '.join(words)}." if words else None, _next(summary))


def _told_early(summary: RepairSummary, early: Early) -> Told:
    """The same of a run in which every stack has figures of its own samples."""
    gate, unit, of = " and ".join(summary.rules), summary.sample_unit, f"{summary.family:,} stacks"
    old, new = (
        f"on {count(one.samples, unit)} {name} {_loses(summary, one)}"
        for name, one in ((summary.deploy.profile, summary.before), ("it", summary))
    )
    others = [name for name in early.answer if name != summary.chosen]
    name = _named(summary) if summary.changes else f"{summary.deploy.profile} as it is"
    when = answered(early, unit)
    if summary.chosen is None and early.decided:
        remains = ", ".join(summary.remains)
        lost = [f"Each of {of} fails {gate} for certain.", f"The nearest is {name}: {new}."]
        cause = f"It still differs from training in {remains}." if remains else None
        return Told([*lost, _MORE, when], cause)
    if summary.chosen is None:
        lost = [f"None of {count(len(early.answer), 'stack')} left passes {gate} for certain."]
        more = f"More {unit}s would decide it, or a gate farther from what was measured."
        return Told([*lost, f"The nearest is {name}: {new}.", more, when])
    found = next(finalist for finalist in summary.finalists if finalist.name == summary.chosen)
    if not found.passed:
        lost = [f"{name} is the cheapest of {of} that does not fail {gate} for certain: {new}."]
    elif others:
        lost = [f"{name} passes {gate} for certain: {new}."]
        lost.append(
            f"It is the cheapest of {of} that does; cheaper ones may pass too: {some(others, 2)}."
        )
    else:
        lost = [f"{name} is the cheapest of {of} that passes {gate}: {new}."]
    if summary.changes:
        lost.append(f"{old[:1].upper()}{old[1:]}.")
    words = "; ".join(sentence(summary, change) for change in summary.changes)
    if not words:
        return Told([*lost, when])
    return Told([*lost, when], f"The change: {words}.", _next(summary))


def _next(summary: RepairSummary) -> Callable[[Asked], str]:
    """The command that runs the pair with the answer as its deployment."""

    def run(asked: Asked) -> str:
        given = asked.arguments.get("overrides", ())
        overrides = [one for one in given if one.startswith("train.")]
        deploy = str(asked.folder / summary.profile)
        return asked.line("run", PAIR, deploy=deploy, overrides=overrides)

    return run


def _loses(summary: RepairSummary, one: Judged | RepairSummary) -> str:
    """How many answers a stack changes, and by how much it moves the headline metric."""
    units = "answers" if summary.unit == "image" else f"{summary.unit}s"
    ends = (at_any_time if summary.early else between)(one.flips.ci95)
    changed = f"changes {share(one.flips.rate, 2)} of {units}{ends}"
    delta = one.delta.get(summary.metric)
    if delta is None:
        return changed
    return f"{changed} and moves {title(summary.task, summary.metric)} by {points(delta)} points"


def _doubt(summary: RepairSummary) -> list[str]:
    """Whether so few flips may be chance, where the flip rate is above the gate's limit."""
    p = next(
        finalist for finalist in summary.finalists if finalist.name == summary.nearest
    ).confirmed.p_holm
    if p is None:
        return []
    of = f"p = {p:.2g}, Holm over {summary.family}"
    if p < SIGNIFICANT:
        return [f"That is more than chance explains ({of})."]
    return [f"At a flip rate of just the limit, so few flips may be chance ({of})."]


def _named(summary: RepairSummary) -> str:
    found = next(finalist for finalist in summary.finalists if finalist.name == summary.nearest)
    return f"{summary.nearest} ({price(found.cost)})"


def price(cost: Cost) -> str:
    """Return what something costs in numbers: ``+1.9 ms measured, 2 h``, or ``free``."""
    words = []
    if cost.ms or cost.measured:
        words.append(f"{cost.ms:+.1f} ms{' measured' if cost.measured else ''}")
    if cost.hours:
        words.append(f"{cost.hours:g} h")
    if cost.memory_mib:
        words.append(f"{cost.memory_mib:+g} MiB")
    return ", ".join(words) or "free"


def sentence(summary: RepairSummary, change: Change) -> str:
    """Return what a change gives of what the gate's first rule is about: its share, or alone."""
    whole = f"{change.axis}: {change.option} ({price(change.cost)})"
    figure = summary.metric if summary.rules[0].startswith("delta") else "flip_rate"
    found = change.repaired.get(figure)
    if found is None:
        return whole
    best, delta = found.share or found.alone or found.last, summary.before.delta.get(summary.metric)
    lost = summary.before.flips.rate if figure == "flip_rate" else -((delta and delta.value) or 0)
    if best is None:
        return f"{whole} is possible only with the others"
    word = (
        "repairs" if found.share else "alone repairs" if found.alone else "with the others repairs"
    )
    what = "flips" if figure == "flip_rate" else title(summary.task, figure)
    of = f"{100 * (best.value or 0):.2f} of {100 * (lost or 0):.2f} points of {what}"
    return f"{whole} {word} {of}{chance(best.ci95)}"


def how(summary: RepairSummary) -> list[str]:
    """Return how the search went."""
    unit = summary.sample_unit
    if summary.early:
        first = (
            f"Each of {summary.family:,} stacks ran until its gate was decided, or a cheaper one "
            f"passed. Each is tested at {summary.early.alpha:.0%} / {summary.family:,}, so that "
            "all verdicts hold at once, at any time; no second half has to confirm them."
        )
    elif summary.exact:
        first = (
            f"Exact: all {summary.combinations:,} combinations on all {summary.searched:,} {unit}s "
            f"of the search half (up to {summary.bound} are searched so)."
        )
    else:
        rounds = ", ".join(
            f"{rung.stacks:,} stacks on {rung.samples:,}"
            + (f" ({rung.dropped:,} dropped)" if rung.dropped else "")
            for rung in summary.rungs
        )
        first = f"Successive halving, {unit}s so far: {rounds}. A dropped stack may be as good."
    family = (
        f"Intervals hold for all {summary.family:,} stacks at once, whenever one was dropped. They "
        "have two ends and a verdict needs one: what passes may have an interval that ends above "
        "the limit."
        if summary.early
        else f"{len(summary.finalists)} finalists were confirmed on the other {summary.samples:,} "
        f"{unit}s: intervals hold for them and the deployment as it is at once, and p-values are "
        f"Holm's, over {summary.family}."
    )
    order = f"Cheap means: {', '.join(summary.order)}, then fewer changes."
    measured = any(tried.cost.measured for tried in summary.tried)
    latency = (
        ["Measured milliseconds are of this machine, not of the device; to 0.1 ms."]
        if measured
        else []
    )
    own, other = summary.skipped_in_search, summary.skipped - summary.skipped_in_search
    skipped = (
        [f"Skipped: {count(other, unit)}."]
        if summary.early
        else [f"Skipped: {own:,} {unit}s of the search half, {other:,} of the other one."]
    )
    skipped = skipped if summary.skipped else []
    return [first, family, *skipped, order, *latency]


def finalists(summary: RepairSummary, title_of: str) -> Table:
    """Return a row for the deployment as it is, and for every finalist.

    Args:
        summary: of a run.
        title_of: the table.
    """
    names = ["stack", "cost", "ms here"]
    names += (
        ["n", "flips", "interval", "delta", "gate"]
        if summary.early
        else ["flips, search", "confirmed", "interval", "delta", "p", "gate"]
    )
    by = {tried.name: tried for tried in summary.tried}
    found = [(finalist, finalist.confirmed) for finalist in summary.finalists]
    if NAME not in {finalist.name for finalist in summary.finalists} and NAME in by:
        found.insert(0, (by[NAME], summary.before))  # type: ignore[arg-type]
    metric = summary.metric
    lines: list[Sequence[Cell]] = []
    for finalist, confirmed in found:
        delta = confirmed.delta.get(metric)
        moved = "–" if delta is None or delta.value is None else f"{100 * delta.value:+.2f}"
        lines.append(
            [
                "\n".join(finalist.changes) or finalist.name, price(finalist.cost),
                figure(summary.latency_ms.get(finalist.name), ".1f"),
                f"{finalist.samples:,}" if summary.early else share(finalist.flip_rate, 2),
                share(confirmed.flips.rate, 2),
                between(confirmed.flips.ci95).strip(" ()").removeprefix("95 % interval ") or "–",
                f"{title(summary.task, metric)} {moved}",
                *([] if summary.early else [confirmed.p_holm]),
                _verdict(confirmed) if summary.early else _passes(confirmed),
            ]
        )  # fmt: skip
    units = {"p": Unit.PROBABILITY}
    return Table([Column(name, units.get(name)) for name in names], lines, title_of)


def _verdict(confirmed: Confirmation) -> str:
    if any(rule.undecided for rule in confirmed.rules):
        return "not decided"
    return _passes(confirmed)


def _passes(confirmed: Confirmation) -> str:
    return "passes" if confirmed.passes else "fails"


def changed(summary: RepairSummary, title_of: str) -> Table:
    """Return a row for every change: its cost, what it gives alone, last, and its share."""
    given = [Column(name, Unit.POINTS) for name in ("alone", "last", "share")]
    rows = [
        [
            f"{change.axis}: {change.option}", price(change.cost), title(summary.task, name),
            *(value.value if value else None for value in (one.alone, one.last, one.share)),
        ]
        for change in summary.changes
        for name, one in change.repaired.items()
    ]  # fmt: skip
    return Table([*map(Column, ("change", "cost", "of")), *given], rows, title_of)


def difference(summary: RepairSummary, title_of: str) -> Table:
    """Return the fields of the profile that the answer changes."""
    rows = [
        [difference.axis, difference.key, str(difference.deploy), str(difference.repaired)]
        for difference in summary.difference
    ]
    return Table([*map(Column, ("axis", "key", "as it is", "repaired"))], rows, title_of)


def work(summary: RepairSummary) -> list[str]:
    """Return what a person has to do for each change, and why it helps."""
    return [
        f"{change.axis}: {change.option}: {'; '.join([*change.cost.work, change.why])}"
        for change in summary.changes
        if change.cost.work or change.why
    ]


def front(summary: RepairSummary) -> Sequence[Tried]:
    """Return the stacks that no other one beats in flips and milliseconds, the cheapest first."""
    return sorted(
        (tried for tried in summary.tried if tried.front), key=lambda tried: tried.cost.ms
    )
