"""The reference model: what CE, CD, FR and their like are relative to, and others compared with.

A model is held against it on the samples that went through both, and on the same resamples of
them, so that every ratio and difference is paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.results.read import read_run
from simulator.results.robustness import AgainstModel, RobustnessSummary
from simulator.robustness import sequences
from simulator.robustness.comparisons import compared, interactions
from simulator.robustness.document import ConditionSuite
from simulator.robustness.figures import Measured, measured
from simulator.robustness.records import CLEAN, ArmRecords, RunArm
from simulator.robustness.sequences import Moved
from simulator.statistics.bootstrap import INTERACTION


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference model, beside a model that is held against it.

    Attributes:
        name: of the model.
        stack: the stack that ratios are relative to: its first one.
        base: its metrics on the samples that went through both.
        own: the other model's on these samples.
        moved: how far its answers move from frame to frame; None without sequences.
        own_moved: the other model's.
    """

    name: str
    stack: str
    base: Measured
    own: Measured
    moved: Moved | None = None
    own_moved: dict[str, Moved] | None = None

    @property
    def words(self) -> str:
        """What ratios are relative to."""
        return f"{self.name} on {self.stack}"

    def table(self, suite: ConditionSuite, stacks: Sequence[str]) -> AgainstModel:
        """Return how much more conditions cost a model than this one.

        Args:
            suite: the conditions.
            stacks: those that are compared, each with the same stack of the reference.
        """
        base, own = self.base.metrics, self.own.metrics
        effects = {
            side: {
                "clean": own[side, CLEAN] - base[side, CLEAN],
                **interactions(suite, base, side, own, side),
            }
            for side in stacks
            if (side, CLEAN) in base
        }
        without = ["clean", *suite.spec.left_out_of_means]
        found = compared(effects, without, self.own.resamples, INTERACTION)
        return AgainstModel(model=self.name, samples=self.own.samples, **found)


def reference(
    folder: Path, records: ArmRecords, suite: ConditionSuite, stacks: Sequence[str], found: Measured
) -> Reference:
    """Return the reference model beside a model of which this run is.

    Raises:
        UserError: the run is of another task, of other conditions or of other samples.
    """
    _, summary, kept = read_run(folder)
    if not isinstance(summary, RobustnessSummary) or summary.task != records.task.name:
        raise UserError(f"{folder}: not a robustness run for {records.task.name}; choose another")
    first = next(iter(summary.stacks))
    if first in summary.nc:
        raise UserError(f"{folder}: {first} did not converge (NC): {summary.nc[first]}")
    known = [side for side in stacks if side in summary.stacks and side not in summary.nc]
    sides = [first, *(side for side in known if side != first)]
    texts = [CLEAN, *(under.condition.text for under in suite.conditions())]
    arms = [(side, text) for text in texts for side in sides]
    aligned = _aligned(kept, arms, records.items_under(CLEAN), folder)
    theirs, mine = replace(records, table=aligned, arms=arms), set(records.ran)
    common = [at for at in theirs.ran if at in mine]
    if not common:
        raise UserError(f"{folder}: no sample went through both models; nothing can be compared")
    theirs, own = theirs.of(common), found
    if len(common) < len(mine):
        records = records.of(common)
        own = measured(records, stacks, suite.only_frames())
    base, moved, own_moved = measured(theirs, sides, suite.only_frames()), None, None
    if suite.sequences:
        moved = sequences.measured(theirs, [first], suite)[first]
        own_moved = sequences.measured(records, stacks, suite)
    return Reference(summary.model, first, base, own, moved, own_moved)


def ordered(
    models: Sequence[str | Path | None], asked: str | Path | None, question: str | None
) -> tuple[list[str | Path | None], Path | None]:
    """Return the models in the order in which they are run, and a run of the reference model.

    Args:
        models: as they were given.
        asked: the reference: a card, or the folder of a run; None for the first model.
        question: of ``--until-decided``; its cells have no such figures.

    Raises:
        UserError: there is no such card or run; or a question is asked too.
    """
    if asked is None:
        return list(models), None
    if question is not None:
        raise UserError("--until-decided measures no figure against a reference model; leave out "
                        "--reference")  # fmt: skip
    if not Path(asked).exists():
        raise UserError(f"--reference {asked}: no such model card, and no such run")
    if Path(asked).is_dir():
        return list(models), Path(asked)
    own = Path(asked).resolve()
    others = [model for model in models if model is None or Path(model).resolve() != own]
    return [asked, *others], None


def _aligned(
    kept: pa.Table, arms: Sequence[RunArm], items: Sequence[Item], folder: Path
) -> pa.Table:
    """Return a run's rows in the order of these samples and arms."""
    names = kept.select(["sample", "side", "condition"]).to_pydict()
    keys = zip(names["sample"], names["side"], names["condition"], strict=True)
    place = {(name, side, text or CLEAN): at for at, (name, side, text) in enumerate(keys)}
    try:
        at = [place[item.name, *arm] for item in items for arm in arms]
    except KeyError as error:
        name, side, text = error.args[0]
        what = f"{name} on {side}" + (f" under {text}" if text else "")
        raise UserError(
            f"{folder}: the reference's run has no answer for {what}; both models need the same "
            "suite, samples and first stack"
        ) from error
    return kept.take(pa.array(at, pa.int64()))
