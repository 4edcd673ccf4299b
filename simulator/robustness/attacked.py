"""The figures of attacks: AR, AAI and WCAR of every stack, and what the attacked model answers.

They are held against the unattacked file, which was resized and saved as the attacked one. Budgets
that 8 bits cannot carry have no figures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.analysis.robustness import impact, worst_case
from simulator.conditions.attacks.attack import Attack
from simulator.conditions.attacks.options import FLOAT, SAVED
from simulator.conditions.attacks.record import record_of
from simulator.conditions.attacks.unattacked import Unattacked
from simulator.conditions.condition import AppliedCondition
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes
from simulator.pipeline.inference import Answered
from simulator.results.robustness import AttackedModel, AttackedStack, Attacks, Figure
from simulator.robustness.comparisons import figured
from simulator.robustness.document import Series, attacks
from simulator.robustness.nc import blanked
from simulator.robustness.records import ArmRecords, RunArm
from simulator.statistics.bootstrap import RATE, Bounds, Floats, Ratio, Resamples
from simulator.tasks.task import Task

CLEAN, EXACT, ROUNDED = "attacked model", "attacked model in float", "attacked model in 8 bits"
"""Names of arms that are no stacks; those of stacks have no spaces."""
_FIELDS = {CLEAN: "clean", EXACT: "exact", ROUNDED: "rounded"}
Points = NDArray[np.float64]
Right = Mapping[RunArm, Points]
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


def own_chains(under: AppliedCondition, task: Task) -> dict[str, Chain]:
    """Return the chains to the attacked model's own answers, by the names of their arms.

    Where every stack is attacked by itself, its answers are the model's.
    """
    if not isinstance(under.condition, Attack) or under.condition.asks_each:
        return {}
    if under.condition.saved == FLOAT:  # its record is in the file of the same attack
        under = replace(under, condition=replace(under.condition, saved=SAVED[0]))
    return {
        name: under.disturbed(Chain((OwnAnswer(task, field),))) for name, field in _FIELDS.items()
    }


def baselines(series: Sequence[Series]) -> list[AppliedCondition]:
    """Return the conditions that attacks are held against, each once."""
    rows = [row for group in attacks(series).values() for row in group]
    return list({
        (one := baseline(level)).condition.text: one for row in rows for level in row.levels
    }.values())  # fmt: skip


def baseline(level: AppliedCondition) -> AppliedCondition:
    """Return the file of an attack without the attack."""
    assert isinstance(level.condition, Attack)
    return AppliedCondition(Unattacked.of(level.condition))


def figures(
    records: ArmRecords, series: Sequence[Series], stacks: Sequence[str], nc: Collection[str]
) -> Attacks | None:
    """Return the ``attacks`` of the summary; None in a suite without a category of attacks."""
    groups = attacks(series)
    if not groups:
        return None
    correct = records.by_sample(np.array(records.table["correct"].to_pylist(), np.float64))
    found = dict(zip(records.arms, correct.T, strict=True))
    rows = [row for group in groups.values() for row in group]
    conditions = [level.condition for row in rows for level in row.levels]
    models = [
        condition.bound_to.target
        for condition in conditions
        if isinstance(condition, Attack) and condition.bound_to
    ]
    shown = {side: _stack(found, groups, side, records.draws) for side in stacks}
    return Attacks(
        gradient="; ".join(dict.fromkeys(model.words() for model in models)),
        stacks=blanked(shown, nc),
        model={
            row.name: _model(found, row)
            for row in rows
            if not any(level.condition.asks_each for level in row.levels)
        },
        not_carried=list(
            dict.fromkeys(condition.text for condition in conditions if condition.erased)
        ),
    )


def _stack(
    found: Right, groups: Mapping[str, Sequence[Series]], side: str, draws: Resamples
) -> AttackedStack:
    every = np.ones(draws.images)

    def share(right: Points | None, of: Points = every) -> Floats | None:
        return None if right is None else draws.of(Ratio(right * of, of))

    ar, right_before, aai, mean_aai, unattacked = {}, {}, {}, {}, {}
    for row in (row for group in groups.values() for row in group):
        clean = found[side, baseline(row.levels[0]).condition.text]
        base = draws.of(Ratio(clean, every))
        under = [_reached(found, side, level) for level in row.levels]
        over = [share(one) for one in under]
        lost = [None if one is None else impact(base, one) for one in over]
        unattacked[row.name] = figured(base, draws.number, RATE)
        ar[row.name] = _numbered(over, draws)
        right_before[row.name] = _numbered([share(one, clean) for one in under], draws)
        aai[row.name] = _numbered(lost, draws, None)
        known = [one for one in over if one is not None]
        mean = np.mean(known, axis=0) if known else np.full(1, np.nan)
        mean_aai[row.name] = figured(impact(base, mean), draws.number, None)
    wcar = {}
    for name, group in groups.items():
        budgets = zip(*(row.levels for row in group), strict=True)
        wcar[name] = _numbered([share(_worst(found, side, budget)) for budget in budgets], draws)
    return AttackedStack(
        unattacked=unattacked, AR=ar, AR_clean_correct=right_before, AAI=aai, mean_AAI=mean_aai,
        WCAR=wcar,
    )  # fmt: skip


def _reached(found: Right, side: str, level: AppliedCondition) -> Points | None:
    """(n,), whether each sample is answered correctly; None where nothing reached the stack."""
    return None if level.condition.erased else found[side, level.condition.text]


def _worst(found: Right, side: str, levels: Sequence[AppliedCondition]) -> Points | None:
    """(n,), under the worst of the attacks of one budget and without; None without any."""
    under = [one for level in levels if (one := _reached(found, side, level)) is not None]
    clean = [found[side, baseline(level).condition.text] for level in levels]
    return worst_case(np.stack([*clean, *under])) if under else None


def _model(found: Right, row: Series) -> AttackedModel:
    texts = [level.condition.text for level in row.levels]
    return AttackedModel(**{
        field: [float(found[name, text].mean()) for text in texts]
        for name, field in _FIELDS.items()
    })  # fmt: skip


def _numbered(
    budgets: Sequence[Floats | None], draws: Resamples, bounds: Bounds | None = RATE
) -> dict[str, Figure | None]:
    return {
        str(number): None if budget is None else figured(budget, draws.number, bounds)
        for number, budget in enumerate(budgets, 1)
    }
