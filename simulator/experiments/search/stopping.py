"""Tests of one rule while samples still run, whose error bound holds however often one looks.

See :mod:`simulator.statistics.anytime`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from simulator.analysis.gate import Rule
from simulator.errors import UserError
from simulator.results.shared import Bound
from simulator.statistics.anytime import Evidence, Range
from simulator.tasks.score import Record
from simulator.tasks.task import Task

ALPHA = 0.05
"""The probability of a wrong decision, at most."""
LEAST = 30
"""Samples before the first look: nobody would ship, or stop, because of fewer."""
RATE, DELTA = Range(0.0, 1.0), Range(-1.0, 1.0)
"""What one sample can add to a rate, and to a difference of a metric."""
_GROWTH = 1.1
"""Options are dropped whenever the samples have grown by this."""


def rounds(samples: int) -> Iterator[tuple[int, int]]:
    """Yield where each round begins and ends; the same for every run, so that one can be resumed.

    Args:
        samples: that there are.
    """
    start, stop = 0, min(LEAST, samples)
    while start < samples:
        yield start, stop
        start, stop = stop, min(max(stop + 8, math.ceil(stop * _GROWTH)), samples)


@dataclass(slots=True)
class SequentialTest:
    """One rule, and what the samples say of it.

    Attributes:
        rule: of the gate.
        column: of the records: the metric of a delta; None for the flip rate.
        evidence: of the samples so far.
        decision: None until the rule is decided.
        at: where the figure lay when it was decided, each end with the probability of the rule.
        bounds: that are kept for the report.
        looked: the samples of the last one.
    """

    rule: Rule
    column: str | None
    evidence: Evidence
    decision: Literal["fails", "passes"] | None = None
    at: Bound | None = None
    bounds: list[Bound] = field(default_factory=list)
    looked: int = 0

    def see(self, train: Record, deploy: Record) -> None:
        """Take the records of one sample."""
        if self.column is None:
            self.evidence.add(deploy["changed"])
        elif train[self.column] is not None and deploy[self.column] is not None:
            self.evidence.add(float(deploy[self.column]) - float(train[self.column]))

    def judge(self, alpha: float) -> None:
        """Decide the rule, if the samples suffice."""
        if self.decision is None and self.evidence.samples >= LEAST:
            above, below = self.evidence.against(self.rule.limit)
            holds, does_not = (above, below) if self.rule.op in (">", ">=") else (below, above)
            if max(holds, does_not) >= -math.log(alpha):
                self.decision = "fails" if holds > does_not else "passes"
                self.at = self.now(alpha)

    def now(self, alpha: float) -> Bound:
        """Return where the figure lies: 2 alpha have both ends, so alpha has each."""
        return self._interval(2 * alpha)

    def bound(self, alpha: float) -> str:
        """Return the end that lies beyond the limit, when it was decided."""
        found = self.at or self.now(alpha)
        above = (self.decision == "fails") == (self.rule.op in (">", ">="))
        sign, unit = ("+", "points") if self.column else ("", "%")
        end = f"{100 * (found.low if above else found.high):{sign}.2f}"
        return f"{'at least' if above else 'at most'} {end} {unit}"

    def look(self, alpha: float) -> None:
        """Keep the bound as it is now."""
        if self.evidence.samples > self.looked:
            self.bounds.append(self._interval(alpha))
            self.looked = self.evidence.samples

    def _interval(self, alpha: float) -> Bound:
        low, high = self.evidence.interval(alpha)
        return Bound(samples=self.evidence.samples, value=self.evidence.mean, low=low, high=high)


class FailureTest(SequentialTest):
    """The rule on samples on which the deployment alone fails."""

    @property
    def waits(self) -> bool:
        """Whether some failures are borne, so that one sample does not decide it."""
        return self.rule.limit > 0

    def judge(self, alpha: float) -> None:
        """Decide the rule; where no failure is borne, the first one fails it."""
        if self.waits:
            super().judge(alpha)
        elif self.evidence.samples >= LEAST and self.evidence.mean > 0:
            self.decision = "fails"


def sequential_test(rule: Rule, task: Task) -> SequentialTest:
    """Return the test of a rule.

    Raises:
        UserError: it is on a figure that is no mean over samples.
    """
    columns = task.means()
    if rule.op not in (">", ">=", "<", "<=") or rule.times is not None:
        raise UserError(
            f"--until-decided: the rule {rule.text!r} is decided by the last sample only; write > "
            "or < and a number"
        )
    if rule.name == "flips.rate" and columns:
        return SequentialTest(rule, None, Evidence(RATE))
    deltas = {f"delta.{name}.value": column for name, column in columns.items()}
    if rule.name in deltas:
        return SequentialTest(rule, deltas[rule.name], Evidence(DELTA))
    able = ["flip_rate", *(f"delta.{name}" for name in columns)] if columns else []
    raise UserError(
        f"--until-decided: the rule {rule.text!r} is on a figure that is no mean over samples; "
        + (f"rules on these can be decided early: {', '.join(able)}" if able else
           f"{task.name} has none, since a sample has several {task.unit}s")
    )  # fmt: skip
