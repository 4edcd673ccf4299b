"""The figures of attacks: AR, AAI and WCAR of every stack, and what the attacked model answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.analysis.robustness import impact, worst_case
from simulator.conditions.attacks.attack import Attack
from simulator.conditions.attacks.record import record_of
from simulator.conditions.condition import Under
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes
from simulator.pipeline.inference import Answered
from simulator.robustness.document import Series, attacks
from simulator.statistics.bootstrap import Floats, Resamples, interval, ratio
from simulator.tasks.task import Task

CLEAN, EXACT, ROUNDED = "attacked model", "attacked model in float", "attacked model in 8 bits"
"""Names of arms that are no stacks; those of stacks have no spaces."""
_FIELDS = {CLEAN: "clean", EXACT: "exact", ROUNDED: "rounded"}
Right = Mapping[tuple[str, str], NDArray[np.float64]]
"""Whether each sample is answered correctly, (n,) of 0 and 1, by stack and condition."""


@dataclass(frozen=True, eq=False)
class OwnAnswer(Recipe):
    """What the attacked model itself answers, from the record in the attacked file.

    Attributes:
        task: makes the answer.
        field: ``clean``, ``exact`` or ``rounded``.
    """

    task: Task
    field: str
    stage = "attacked model"
    gives: ClassVar[Boundary] = Boundary.ANSWER
    timed = False

    def identity(self) -> Any:
        """Return the task and the field."""
        return ["attacked model", self.task.name, self.field]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function that reads the record; a class has no score here."""
        task, field = self.task, self.field

        def apply(source: Any, _: Context) -> Answered:
            found = int(getattr(record_of(source.data), field))
            return Answered("", task.recorded(found, 1.0, 1.0))

        return apply


def own_chains(under: Under, task: Task) -> dict[str, Chain]:
    """Return the chains to the attacked model's own answers, by the names of their arms."""
    if not isinstance(under.condition, Attack):
        return {}
    return {
        name: under.disturbed(Chain((OwnAnswer(task, field),))) for name, field in _FIELDS.items()
    }


def right(records: pa.Table, arms: Sequence[tuple[str, str]]) -> Right:
    """Return what is answered correctly by each arm, of the samples that were not skipped.

    Args:
        records: a row for each sample and arm, the arms of each sample in their order.
        arms: the stack and the condition of each.
    """
    kept = records.filter(pc.is_null(records["skipped"]))
    correct = np.array(kept["correct"].to_pylist(), np.float64).reshape(-1, len(arms))
    return dict(zip(arms, correct.T, strict=True))


def figures(
    found: Right, series: Sequence[Series], stacks: Sequence[str], seed: int, resamples: int
) -> dict[str, Any] | None:
    """Return the ``attacks`` of the summary; None in a suite without a category of attacks.

    Args:
        found: what is answered correctly.
        series: the conditions.
        stacks: their names.
        seed: of the resamples.
        resamples: how many.
    """
    groups = attacks(series)
    if not groups:
        return None
    rows = [row for group in groups.values() for row in group]
    conditions = [level.condition for row in rows for level in row.levels]
    models = [one.bound_to.target for one in conditions if isinstance(one, Attack) and one.bound_to]
    samples = len(next(iter(found.values())))
    draws = Resamples(samples, seed, resamples)
    return {
        "gradient": "; ".join(dict.fromkeys(model.words() for model in models)),
        "stacks": {side: _stack(found, groups, side, draws) for side in stacks},
        "model": {row.name: _model(found, row) for row in rows},
    }


def _stack(
    found: Right, groups: Mapping[str, Sequence[Series]], side: str, draws: Resamples
) -> dict[str, Any]:
    clean, every = found[side, ""], np.ones(draws.images)
    base = draws.of(ratio(clean, every))
    ar, right_before, aai = {}, {}, {}
    for row in (row for group in groups.values() for row in group):
        under = [found[side, level.condition.text] for level in row.levels]
        over = [draws.of(ratio(one, every)) for one in under]
        both = [draws.of(ratio(one * clean, clean)) for one in under]
        ar[row.name], right_before[row.name] = _numbered(over), _numbered(both)
        aai[row.name] = _numbered([impact(base, one) for one in over])
    wcar = {}
    for name, group in groups.items():
        budgets = zip(*(row.levels for row in group), strict=True)
        texts = [[level.condition.text for level in levels] for levels in budgets]
        worst = [
            worst_case(np.stack([clean, *(found[side, text] for text in one)])) for one in texts
        ]
        wcar[name] = _numbered([draws.of(ratio(one, every)) for one in worst])
    return {"AR": ar, "AR_clean_correct": right_before, "AAI": aai, "WCAR": wcar}


def _model(found: Right, row: Series) -> dict[str, list[float]]:
    texts = [level.condition.text for level in row.levels]
    return {
        field: [float(found[name, text].mean()) for text in texts]
        for name, field in _FIELDS.items()
    }


def _numbered(budgets: Sequence[Floats]) -> dict[str, Any]:
    return {str(number): _figure(one) for number, one in enumerate(budgets, 1)}


def _figure(resampled: Floats) -> dict[str, Any] | None:
    if np.isnan(resampled[0]):
        return None
    ends = [None if np.isnan(end) else end for end in interval(resampled)]
    return {"value": float(resampled[0]), "ci95": ends}
