"""The figures of perturbation sequences, from the answers to their frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.analysis import robustness as analysis
from simulator.robustness.document import ConditionSuite
from simulator.robustness.figures import compared, converged, figured, went_through
from simulator.robustness.nc import blanked
from simulator.statistics.bootstrap import Floats, Resamples
from simulator.tasks.task import Task

ANSWER = "prediction"
"""The column of records with one class; a task without it has no flips from frame to frame."""
FlipProbabilities = Mapping[str, Mapping[str, Floats]]
"""FP on all samples and on each resample, (1 + R,), by stack and sequence."""


def flip_probabilities(
    records: pa.Table,
    arms: Sequence[tuple[str, str]],
    stacks: Sequence[str],
    suite: ConditionSuite,
    task: Task,
    seed: int,
) -> FlipProbabilities:
    """Compare the answers to the frames of every sequence, for each stack.

    Args:
        records: a row for each sample and arm, the arms of each sample in their order.
        arms: the stack and the condition of each.
        stacks: their names.
        suite: the sequences.
        task: says how often is resampled.
        seed: of the resamples.
    """
    ran = went_through(records, len(arms))
    answers: NDArray[np.int64] = records[ANSWER].fill_null(-1).to_numpy().reshape(-1, len(arms))
    place = {arm: number for number, arm in enumerate(arms)}
    draws = list(Resamples(len(ran), seed, task.resamples))
    found: dict[str, dict[str, Floats]] = {}
    for side in stacks:
        own = np.stack(
            [
                analysis.flip_probability(
                    answers[ran][:, [place[side, frame.condition.text] for frame in one.frames]],
                    one.spec.noise,
                    one.spec.difficulty,
                )
                for one in suite.sequences
            ],
            axis=1,
        )
        resampled = [counts @ own / len(ran) for counts in draws]
        every = np.concatenate([own.mean(axis=0, keepdims=True), *resampled])
        found[side] = {one.name: every[:, at] for at, one in enumerate(suite.sequences)}
    return found


def table(
    found: FlipProbabilities, suite: ConditionSuite, samples: int, nc: Collection[str] = ()
) -> dict[str, Any]:
    """Return the fields of :class:`simulator.results.robustness.Sequences`.

    Args:
        found: the flip probabilities; the first stack is compared with the others.
        suite: the sequences.
        samples: that went through.
        nc: stacks that did not converge; they are compared with none, and have no figures.
    """
    first, others = next(iter(found)), converged(list(found), nc)[1:]
    published, without = suite.spec.reference, suite.spec.left_out_of_means
    base: Mapping[str, Floats] = found[first]
    if published is not None:
        base = {name: np.array([published.flips[name]]) for name in found[first]}
    elif first in nc:
        base = {name: np.full(1, np.nan) for name in found[first]}
    stacks: dict[str, Any] = {}
    for side, fp in found.items():
        fr = {name: analysis.flip_rate(one, base[name]) for name, one in fp.items()}
        stacks[side] = {
            **{kind: {name: figured(one) for name, one in by.items()}
               for kind, by in (("FP", fp), ("FR", fr))},
            "mFP": figured(analysis.mean_over(fp, without)),
            "mFR": figured(analysis.mean_over(fr, without)),
        }  # fmt: skip
    more = {side: {name: found[side][name] - found[first][name] for name in base}
            for side in others}  # fmt: skip
    return {
        "reference": published.name if published else first,
        "rows": {one.name: one.spec.model_dump() for one in suite.sequences},
        "stacks": blanked(stacks, nc),
        **compared(more, without, samples),
    }
