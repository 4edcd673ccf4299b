"""The stacks side by side: what each says, where they differ, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.command.experiment import EXPERIMENTS
from simulator.command.options import Pair, Stacks, Suite
from simulator.profile.axes import equal
from simulator.report.axis_words import LEFT, folded, known, said
from simulator.report.reading import Run
from simulator.report.sections.section import Badge, Cell, Section, Table, part
from simulator.report.words import SIDES, alone
from simulator.results.manifest import RunManifest, StackAxis
from simulator.results.pair import PairSummary

_MEANT_FOR_OTHERS = {"on_shape_change"}
"""Fields that say how others are taken; alone they say nothing."""
Axes = dict[str, tuple[str, str, str]]
"""By axis its words, its evidence, and the source."""
MOST = 6
"""Stacks that are shown side by side; a sweep's are in its table."""


@part(order=50)
def stacks(run: Run) -> Section | None:
    """Show every axis of the stacks; those that differ are marked."""
    manifest = run.manifest
    if not isinstance(manifest, RunManifest):
        return None
    sides = [side for side in manifest.stacks if _shown(run, side)][:MOST]
    if not sides:
        return None
    axes = [manifest.stacks[side].axes for side in sides]
    found = dict(zip(sides, _axes(axes), strict=True))
    names = list(axes[0])
    differing = [
        axis for axis in names if any(one[axis].values != axes[0][axis].values for one in axes)
    ]
    sentences = []
    if len(sides) > 1:
        sentences.append(
            f"They differ in {', '.join(differing)}."
            if differing
            else "They describe the same stack."
        )
    sentences += _assumed(run, manifest)
    return Section(
        "stacks",
        "Stacks: what each does from the file to the answer",
        "What was compared, and how is it known that the stacks are like that?",
        sentences,
        notes=[*_swapped(run), *_NOTES],
        tables=_tables(manifest, found, differing),
    )  # fmt: skip


def _tables(
    manifest: RunManifest, found: Mapping[str, Axes], differing: Sequence[str]
) -> list[Table]:
    """The axes that differ; folded, those that do not and how those that do are known."""
    rows = {
        axis: _row(axis, found)
        for axis in next(iter(found.values()))
        if any(own[axis][0] for own in found.values())
    }
    head = ["axis", *(_title(manifest, side) for side in found)]
    same = [row for axis, row in rows.items() if axis not in differing]
    if not differing:
        return [Table(head, same, f"Every axis of the stack{'s' if len(found) > 1 else ''}")]
    known: list[list[Cell]] = [
        [axis, side, _badge(kind), source]
        for axis in differing
        for side, own in found.items()
        for _, kind, source in [own[axis]]
    ]
    other = [rows[axis] for axis in differing if axis in rows]
    return [
        Table(head, other, "The axes on which they differ", marked=frozenset(range(len(other)))),
        *([Table(head, same, "The axes on which they agree", folded=True)] if same else []),
        Table(
            ["axis", "stack", "evidence", "source"], known,
            "How the axes that differ are known", folded=True,
        ),
    ]  # fmt: skip


_NOTES = (
    "native: this library or device itself ran. vendor_simulator: the vendor's own arithmetic, "
    "without the device. emulated: rebuilt from a public source. recorded: outputs dumped on the "
    "device. assumed: no source was found. not claimed: the profile says nothing of how it is "
    "known; what ran here is the library itself, or our own arithmetic.",
)


def _shown(run: Run, side: str) -> bool:
    """Whether a stack has a column: no mixture of a pair, and of a suite the training stack."""
    asked = EXPERIMENTS[run.command].Options
    if issubclass(asked, Stacks):
        return True
    return side in (SIDES[:1] if issubclass(asked, Suite) else SIDES)


def _assumed(run: Run, manifest: RunManifest) -> list[str]:
    """What is assumed of any stack, also of those that have no column; not of a pair's mixtures."""
    of_a_pair = issubclass(EXPERIMENTS[run.command].Options, Pair)
    found: dict[str, list[str]] = {}
    for side, stack in manifest.stacks.items():
        axes = [axis for axis, stack_axis in stack.axes.items() if stack_axis.evidence == "assumed"]
        if axes and (side in SIDES or not of_a_pair):
            found.setdefault(", ".join(axes), []).append(side)
    return [
        f"Assumed, no source was found: {axes} of {', '.join(sides)}."
        for axes, sides in found.items()
    ]


def _swapped(run: Run) -> list[str]:
    """What each differing axis of a pair does to answers and to pixels."""
    if not isinstance(run.summary, PairSummary):
        return []
    return [f"{axis} swapped alone: {words}." for axis, words in alone(run.summary).items()]


def _title(manifest: RunManifest, side: str) -> str:
    profile = manifest.stacks[side].profile["name"]
    own = [one.removeprefix(f"{side}.") for one in manifest.overrides if one.startswith(f"{side}.")]
    return " +".join([profile if side == profile else f"{side}: {profile}", *own])


def _axes(sides: Sequence[Mapping[str, StackAxis]]) -> list[Axes]:
    """Words, evidence and source of each axis, for each stack."""
    found: list[Axes] = [{} for _ in sides]
    for axis in sides[0]:
        stacks = [side[axis] for side in sides]
        words = _words(stacks)
        for own, stack, say in zip(found, stacks, words, strict=True):
            own[axis] = (say, known(stack.evidence, stack.claimed), stack.source)
    return found


def _words(stacks: Sequence[StackAxis]) -> list[str]:
    """What each stack says on an axis; only what differs, where the stacks differ on it.

    No words where a profile leaves it to the model.
    """
    sides = [stack.values for stack in stacks]
    if any(side != sides[0] for side in sides):
        same = equal(sides)
        return [" ".join(filter(None, (said(*_without(stack, same)), folded(len(same)))))
                for stack in stacks]  # fmt: skip
    own = {key: value for key, value in sides[0].items() if value not in LEFT}
    return ["" if set(own) <= _MEANT_FOR_OTHERS else said(own, {})] * len(sides)


def _without(axis: StackAxis, same: Sequence[str]) -> list[dict[str, object]]:
    """The values of a stack and of its card, without those that all stacks have."""
    return [{k: v for k, v in part.items() if k not in same} for part in (axis.values, axis.card)]


def _row(axis: str, found: Mapping[str, Axes]) -> list[Cell]:
    said = [own[axis] for own in found.values()]
    return [axis, *((words or "as the model has it", _badge(kind)) for words, kind, _ in said)]


def _badge(kind: str) -> Badge:
    return Badge(kind, kind.replace(" ", "-"))
