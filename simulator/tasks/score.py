"""How good one stack is, and how much its answers differ, on any resample of the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.statistics.bootstrap import Figure, Floats, Resamples, ratio

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """How good one stack is.

    Attributes:
        records: of its answers, one an image.
        labelled: how many of the images somebody has annotated.
        metrics: by name, fractions; None where they cannot be known.
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
        """Return every resampled metric by its name; worked out once."""
        if draws not in self._drawn:
            figures = {headline: self.figure, **self.others} if self.figure else self.others
            self._drawn[draws] = {name: draws.of(figure) for name, figure in figures.items()}
        return self._drawn[draws]


def total(records: Sequence[Record], kind: str) -> int | None:
    """Return the sum of what is known; None where nothing is."""
    known = [record[kind] for record in records if record[kind] is not None]
    return sum(known) if known else None


def flip_rate(records: Sequence[Record], draws: Resamples) -> Floats:
    """Return the share of units that differ from the first stack's answers, resampled."""
    changed, units = (
        np.array([record[name] for record in records], np.float64) for name in ("changed", "units")
    )
    return draws.of(ratio(changed, units))
