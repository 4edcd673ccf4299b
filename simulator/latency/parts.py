"""Answers that come in parts, as texts do token by token: when each part was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.latency.quality import Quality
from simulator.latency.stream import Round
from simulator.latency.times import NEVER, Times
from simulator.results.shared import Latency
from simulator.results.timed import Tokens
from simulator.statistics.percentiles import figures
from simulator.tasks.score import Record

SECOND = 1e9


def tokens(rounds: Sequence[Round], rows: Sequence[str]) -> dict[str, Tokens]:
    """Return when the first and the other tokens came, of every stack that writes texts.

    Args:
        rounds: that were measured.
        rows: what they measured.
    """
    found = {}
    for stack, row in enumerate(rows):
        texts = [
            np.array(until)
            for one in rounds
            for (own, _), until in one.parts.items()
            if own == stack and until
        ]
        if texts:
            first, last = (np.array([text[at] for text in texts]) for at in (0, -1))
            later = np.concatenate([np.diff(text) for text in texts])
            found[row] = Tokens(
                first=Latency.model_validate(figures(first)),
                each=Latency.model_validate(figures(later)),
                per_second=sum(map(len, texts)) / (last.sum() / SECOND),
            )
    return found


def in_parts(
    rounds: Sequence[Round], stack: int, after: Sequence[Sequence[int]], metric: str
) -> tuple[Times, Quality]:
    """Return the times and the quality of answers whose parts count by themselves.

    Args:
        rounds: that were measured.
        stack: its row in them.
        after: for each sample, and each thing that its answer should have, after how many parts it
            was there; 0: never.
        metric: the share of these things.
    """
    wanted = [(sample, count) for sample, counts in enumerate(after) for count in counts]
    total = np.full((len(rounds), len(wanted)), NEVER, np.int64)
    for row, one in zip(total, rounds, strict=True):
        for at, (sample, count) in enumerate(wanted):
            until = one.parts.get((stack, sample), ())
            if 0 < count <= len(until):
                row[at] = until[count - 1]
    there = np.array([count > 0 for _, count in wanted], np.float64)
    return Times(total, {}), Quality.of_parts(metric, there)


def came_in_parts(
    arrivals: Mapping[str, Sequence[Sequence[int]]], rounds: Sequence[Round], rows: Sequence[str]
) -> bool:
    """Whether each stack's answers came in parts that were timed, and something is wanted.

    Args:
        arrivals: by stack, see :func:`in_parts`.
        rounds: that were measured.
        rows: what they measured.
    """
    timed = all(one.parts for one in rounds) and bool(rounds)
    return timed and set(arrivals) <= set(rows) and all(map(any, arrivals.values()))


def arrivals(records: Sequence[Record], column: str) -> list[Sequence[int]]:
    """Return what :func:`in_parts` takes, from a column of records."""
    return [record[column] or () for record in records]
