"""How good one stack is, and how two stacks compare, on the samples and on any resample of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.errors import DataError
from simulator.statistics.bootstrap import RATE, Figure, Floats, Ratio, Resamples, effect, interval
from simulator.tasks.figures import Comparison, Figures

Record = Mapping[str, Any]
"""The columns of one sample under one stack; their types are those of ``Task.columns``."""
Values = dict[str, Any]
"""Columns of a record that is being made."""


class Shot(NamedTuple):
    """A frame of a clip, with the records of the training and the deployment stack.

    Attributes:
        name: of the sample.
        seconds: when it is shown, where that is known.
        truth: what people have annotated.
        records: None where a stack has not answered.
    """

    name: str
    seconds: float | None
    truth: Any
    records: tuple[Record, Record] | None


Footage = tuple[Sequence[Shot], float]
"""The frames of a clip in order, and how many a second has."""


class Columns(Sequence[Record]):
    """Records of which a column can be had without making a mapping of each."""

    @abstractmethod
    def column(self, name: str) -> pa.ChunkedArray:
        """Return (records,) of one column."""


def each(records: Sequence[Record], name: str) -> Iterator[Any]:
    """Yield one column of records."""
    if isinstance(records, Columns):
        for chunk in records.column(name).chunks:
            yield from chunk.to_pylist()
    else:
        for record in records:
            yield record[name]


def numbers(records: Sequence[Record], name: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (records,) of one column as numbers, None as 0, and where it is not None."""
    if isinstance(records, Columns):
        column = records.column(name)
        known = column.is_valid().to_numpy().astype(np.bool_)
        filled = column.cast(pa.float64()).fill_null(0.0)
        return filled.to_numpy().astype(np.float64), known
    values = [record[name] for record in records]
    known = np.array([value is not None for value in values], np.bool_)
    return np.array([value or 0.0 for value in values], np.float64), known


@dataclass(frozen=True, slots=True)
class Score:
    """How good one stack is.

    Attributes:
        records: its answers, one record a sample.
        labelled: how many of the samples somebody has annotated.
        metrics: fractions by name; None where they cannot be computed.
        figure: the headline metric of any resample; None where there is no truth.
        others: further metrics of any resample, by name.
    """

    records: Sequence[Record]
    labelled: int
    metrics: Mapping[str, float | None]
    figure: Figure | None
    others: Mapping[str, Figure] = field(default_factory=dict)
    _drawn: dict[Any, dict[str, Floats]] = field(default_factory=dict, repr=False, compare=False)

    def drawn(self, headline: str, draws: Resamples) -> dict[str, Floats]:
        """Return every resampled metric by its name; computed once."""
        if draws not in self._drawn:
            figures = {headline: self.figure, **self.others} if self.figure else self.others
            self._drawn[draws] = {name: draws.of(figure) for name, figure in figures.items()}
        return self._drawn[draws]


def mean_score(metrics: Sequence[str], records: Sequence[Record], truths: Sequence[Any]) -> Score:
    """Return the mean of each metric's column over the samples that have a value in it.

    Args:
        metrics: columns of the records with a sample's points, 0 to 1; None where the sample has no
            truth. The first one is the headline.
        records: one a sample.
        truths: of the same samples.
    """
    values: dict[str, float | None] = {}
    figures: dict[str, Figure] = {}
    for metric in metrics:
        total, there = numbers(records, metric)
        known = there.astype(np.float64)
        values[metric] = float(total.sum() / known.sum()) if known.any() else None
        if known.any():
            figures[metric] = Ratio(total, known)
    labelled = sum(truth is not None for truth in truths)
    return Score(records, labelled, values, figures.pop(metrics[0], None), figures)


def compare(
    train: Score, deploy: Score, metrics: Sequence[str], kinds: Sequence[str], draws: Resamples
) -> Comparison:
    """Compare two stacks; see :meth:`simulator.tasks.task.Task.compare`.

    Args:
        train: the training stack.
        deploy: the deployment stack, on the same samples.
        metrics: those that get a delta, the headline first.
        kinds: columns that count kinds of flips.
        draws: of the bootstrap.

    Raises:
        DataError: there is no sample.
    """
    if not train.records:
        raise DataError("no sample went through both stacks")
    deltas: dict[str, Figures | None] = {}
    for metric in metrics:
        old, new = train.metrics[metric], deploy.metrics[metric]
        plain = None if old is None or new is None else {"value": new - old}
        deltas[metric] = plain and {**plain, "ci95": None, "p": None}
    before, after = (score.drawn(metrics[0], draws) for score in (train, deploy))
    for metric in before.keys() & after.keys():
        moved = after[metric] - before[metric]
        found = effect(moved, draws.number, judged=train.labelled)
        deltas[metric] = found.told() | {"method": found.method}
    changed = flip_rate(deploy.records, draws)
    return {
        "labelled": train.labelled,
        "train": {"metric": dict(train.metrics)},
        "deploy": {"metric": dict(deploy.metrics)},
        "delta": deltas,
        "flips": {
            "count": sum(each(deploy.records, "changed")),
            "units": sum(each(deploy.records, "units")),
            "rate": float(changed[0]),
            "ci95": list(interval(changed, draws.number, RATE)),
            **{kind: total(deploy.records, kind) for kind in kinds},
        },
    }


def turned(changed: bool, before: bool, after: bool) -> dict[str, int]:
    """Return whether an answer that changed was right before, and whether it is right after."""
    return {"right_to_wrong": int(changed and before), "wrong_to_right": int(changed and after)}


def even_odds(truths: Iterable[Any], choices: Iterable[Sized]) -> float | None:
    """Return how often an even guess is right: the mean of 1 / choices where there is a truth."""
    known = zip(truths, choices, strict=True)
    shares = [1 / len(offered) for truth, offered in known if truth is not None]
    return fmean(shares) if shares else None


def total(records: Sequence[Record], kind: str) -> int | None:
    """Return the sum of the values that are not None; None where all are."""
    known = [value for value in each(records, kind) if value is not None]
    return sum(known) if known else None


def flip_rate(records: Sequence[Record], draws: Resamples) -> Floats:
    """Return the share of units that differ from the first stack's answers, resampled."""
    changed, units = (numbers(records, name)[0] for name in ("changed", "units"))
    return draws.of(Ratio(changed, units))


def agree(one: Record, other: Record, columns: Iterable[str]) -> bool:
    """Whether two records have these columns, with equal values; NaN equals itself."""
    return all(
        name in one and name in other and _comparable(one[name]) == _comparable(other[name])
        for name in columns
    )


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [_comparable(one) for one in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
