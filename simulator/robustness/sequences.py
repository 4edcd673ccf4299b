"""The figures of perturbation sequences, from the answers to their frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.analysis import robustness as analysis
from simulator.results.robustness import SequenceRow, Sequences, StackSequences
from simulator.robustness.comparisons import compared, converged, figured_each
from simulator.robustness.document import ConditionSuite
from simulator.robustness.figures import Fields
from simulator.robustness.nc import blanked
from simulator.robustness.records import ArmRecords
from simulator.statistics.bootstrap import DIFFERENCE, RATE, Floats

if TYPE_CHECKING:
    from simulator.robustness.reference import Reference

ANSWER, BEST = "prediction", "best"
"""Columns of records with one class, and with the best classes; a task without the first has no
flips from frame to frame, one without the second no distances of lists."""
FIVE = 5
"""How many classes a list has; T5D is defined for five."""
_BOUNDS = {"FP": RATE, "uT5D": (0.0, 15.0)}
BySequence = Mapping[str, Floats]
"""A resampled figure, (1 + R + n,), by sequence."""


@dataclass(frozen=True, slots=True)
class Moved:
    """How far the answers of one stack move from frame to frame.

    Attributes:
        fp: flip probabilities.
        ut5d: distances of the lists of five best classes; NaN where the task records none.
    """

    fp: BySequence
    ut5d: BySequence


def measured(records: ArmRecords, stacks: Sequence[str], suite: ConditionSuite) -> dict[str, Moved]:
    """Compare the answers to the frames of every sequence, for each stack."""
    answers, lists = records.by_sample(records.table[ANSWER].fill_null(-1).to_numpy()), None
    if BEST in records.table.column_names:
        lists = records.by_sample(_lists(records.table[BEST]))
    place = {arm: number for number, arm in enumerate(records.arms)}
    counted = list(records.draws)
    found = {}
    for side in stacks:
        flips, distances = {}, {}
        for sequence in suite.sequences:
            at = [place[side, frame.condition.text] for frame in sequence.frames]
            how = sequence.spec.noise, sequence.spec.difficulty
            flips[sequence.name] = _resampled(
                analysis.flip_probability(answers[:, at], *how), counted
            )
            far = np.full(len(answers), np.nan)
            if lists is not None:
                far = analysis.top5_distance(lists[:, at], *how)
            distances[sequence.name] = _resampled(far, counted)
        found[side] = Moved(flips, distances)
    return found


def _lists(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return (rows, 5) classes of lists of up to five; -1 where there is none."""
    lists = column.combine_chunks()
    sizes = pc.list_value_length(lists).fill_null(0).to_numpy()
    found = np.full((len(lists), FIVE), -1, np.int64)
    found[np.arange(FIVE) < sizes[:, None]] = lists.flatten().to_numpy()
    return found


def _resampled(own: Floats, draws: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the mean over the samples, over those of each resample, and of each sample."""
    return np.concatenate([[own.mean()], *(counts @ own / len(own) for counts in draws), own])


def table(
    found: Mapping[str, Moved],
    suite: ConditionSuite,
    number: int,
    nc: Collection[str] = (),
    against: Reference | None = None,
) -> Sequences:
    """Return the ``sequences`` of the summary.

    Args:
        found: by stack; the first one is compared with the others.
        suite: the sequences.
        number: of resamples.
        nc: stacks that did not converge; they are compared with none, and have no figures.
        against: the reference model; by default FR and T5D are relative to the first stack.
    """
    first, others = next(iter(found)), converged(list(found), nc)[1:]
    published, without = suite.spec.reference, suite.spec.left_out_of_means
    base, paired, name = found[first], found, first
    if published is not None:
        base = Moved(*(
            {name: np.array([given.get(name, np.nan)]) for name in base.fp}
            for given in (published.flips, published.distances)
        ))  # fmt: skip
        name = published.name
    elif against is not None and against.moved and against.own_moved:
        base, paired, name = against.moved, against.own_moved, against.words
    elif first in nc:
        base = Moved(*({name: np.full(1, np.nan) for name in base.fp} for _ in range(2)))
    stacks = {}
    for side, moved in found.items():
        kinds = {
            "FP": moved.fp,
            "FR": _relative(paired[side].fp, base.fp),
            "uT5D": moved.ut5d,
            "T5D": _relative(paired[side].ut5d, base.ut5d),
        }
        shown: Fields = {}
        for kind, by in kinds.items():
            mean = analysis.mean_over(by, without)
            shown[kind], shown[f"m{kind}"] = figured_each(by, mean, number, _BOUNDS.get(kind))
        stacks[side] = StackSequences(**shown)
    more = {side: {name: found[side].fp[name] - found[first].fp[name] for name in base.fp}
            for side in others}  # fmt: skip
    return Sequences(
        reference=name,
        rows={
            sequence.name: SequenceRow(**sequence.spec.model_dump()) for sequence in suite.sequences
        },
        stacks=blanked(stacks, nc),
        **compared(more, without, number, DIFFERENCE),
    )


def _relative(own: BySequence, base: BySequence) -> dict[str, Floats]:
    return {name: analysis.relative_to(one, base[name]) for name, one in own.items()}
