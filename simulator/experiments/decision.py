"""Gates that are decided while samples still run: ``--until-decided``.

Every rule is tested after every sample; see :mod:`simulator.statistics.anytime`. The whole gate
keeps one bound: of *n* rules each is tested at ``ALPHA / n``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from simulator.analysis.gate import Rule
from simulator.errors import UserError
from simulator.results.shared import Bound, Decided, Gate, RuleOutcome
from simulator.statistics.anytime import Evidence, Range
from simulator.tasks.score import Record
from simulator.tasks.task import Task

ALPHA = 0.05
"""The probability of a wrong decision, at most."""
_RATE, _DELTA = Range(0.0, 1.0), Range(-1.0, 1.0)
LEAST = 30
"""Samples before the first look: nobody would ship, or stop, because of fewer."""
_LOOKS = 1.1
"""Each bound that is kept for the report has so many times the samples of the one before."""


@dataclass(slots=True)
class _Tested:
    """One rule, and what the samples say of it."""

    rule: Rule
    column: str | None
    """Of the records: the metric of a delta; None for the flip rate."""
    evidence: Evidence
    decision: Literal["fails", "passes"] | None = None
    bounds: list[Bound] = field(default_factory=list)
    looked: int = 0

    def see(self, train: Record, deploy: Record) -> None:
        if self.column is None:
            self.evidence.add(deploy["changed"])
        elif train[self.column] is not None and deploy[self.column] is not None:
            self.evidence.add(float(deploy[self.column]) - float(train[self.column]))

    def judge(self, alpha: float) -> None:
        if self.decision is None and self.evidence.samples >= LEAST:
            above, below = self.evidence.against(self.rule.limit)
            holds, does_not = (above, below) if self.rule.op in (">", ">=") else (below, above)
            if max(holds, does_not) >= -math.log(alpha):
                self.decision = "fails" if holds > does_not else "passes"

    def bound(self, alpha: float) -> str:
        """Return the end that lies beyond the limit: 2 alpha have both, so alpha has each."""
        low, high = self.evidence.interval(2 * alpha)
        above = (self.decision == "fails") == (self.rule.op in (">", ">="))
        sign, unit = ("+", "points") if self.column else ("", "%")
        end = f"{100 * (low if above else high):{sign}.2f}"
        return f"{'at least' if above else 'at most'} {end} {unit}"

    def look(self, alpha: float) -> None:
        """Keep the bound as it is now."""
        if self.evidence.samples > self.looked:
            low, high = self.evidence.interval(alpha)
            seen = self.evidence.samples
            self.bounds.append(Bound(samples=seen, value=self.evidence.mean, low=low, high=high))
            self.looked = seen


class Decision:
    """Tells when a gate is decided: one rule fails, or all pass.

    Args:
        rules: at least one.
        task: of the model.
        alpha: the probability of a wrong decision, at most.
        looks: whether bounds are kept, for :meth:`decided`.

    Raises:
        UserError: there is no rule, or one is on a figure that is no mean over samples.
    """

    def __init__(
        self, rules: Sequence[Rule], task: Task, alpha: float = ALPHA, looks: bool = True
    ) -> None:
        if not rules:
            raise UserError(
                "--until-decided needs a rule to decide; add --fail-on, for example "
                "'flip_rate > 1%'"
            )
        self._alpha, self._looks = alpha / len(rules), looks
        self._tested = [_tested(rule, task) for rule in rules]
        self._seen = 0

    @property
    def done(self) -> bool:
        """Whether further samples cannot change the gate."""
        decisions = [one.decision for one in self._tested]
        return "fails" in decisions or all(decisions)

    def add(self, train: Record, deploy: Record) -> None:
        """Take the records of one more sample; no more are looked at once it is decided."""
        if self.done:
            return
        self._seen += 1
        for one in self._tested:
            one.see(train, deploy)
            one.judge(self._alpha)
            if self._looks and one.evidence.samples >= one.looked * _LOOKS + 1:
                one.look(self._alpha)

    def decided(self, of: int) -> Decided:
        """Return when it was decided, and how the bounds closed in.

        Args:
            of: how many samples there were to run.
        """
        for one in self._tested:
            one.look(self._alpha)
        return Decided(
            samples=self._seen,
            of=of,
            alpha=ALPHA,
            decided=self.done,
            bounds={one.rule.text: one.bounds for one in self._tested},
        )

    def gate(self, judged: Gate, undecided: str = "fail") -> Gate:
        """Return the gate as it was decided, whatever the figures of the last moment say.

        Args:
            judged: by the figures.
            undecided: ``pass`` or ``fail``, for a rule that the samples did not decide.
        """
        rules = [
            outcome.model_copy(update=self._outcome(one, undecided))
            for one, outcome in zip(self._tested, judged.rules, strict=True)
        ]
        return Gate(passed=not any(one.failed for one in rules), rules=rules)

    def outcomes(self, of: str, undecided: str) -> list[RuleOutcome]:
        """Return what came of every rule.

        Args:
            of: what was judged; it stands before each rule.
            undecided: see :meth:`gate`.
        """
        return [
            RuleOutcome(
                rule=f"{of}: {one.rule.text}", value=one.evidence.mean, limit=one.rule.limit,
                unit="fraction", **{"reason": None, **self._outcome(one, undecided)},
            )
            for one in self._tested
        ]  # fmt: skip

    @property
    def failing(self) -> list[str]:
        """The rules that fail, so far."""
        return [one.rule.text for one in self._tested if one.decision == "fails"]

    def refuted(self) -> list[str]:
        """Return the rules by which it was decided, each with the bound that decided it."""
        fails = bool(self.failing)
        return [
            f"{one.rule.text} ({one.bound(self._alpha)})"
            for one in self._tested
            if one.decision == ("fails" if fails else "passes")
        ]

    def _outcome(self, one: _Tested, undecided: str) -> Mapping[str, Any]:
        if one.decision is not None:
            return {"failed": one.decision == "fails", "undecided": False, "chance": False}
        low, high = one.evidence.interval(self._alpha)
        reason = (
            f"{one.evidence.samples:,} samples leave it between {100 * low:.2f} and "
            f"{100 * high:.2f} {'points' if one.column else '%'}"
        )
        return {"failed": undecided == "fail", "undecided": True, "chance": None, "reason": reason}


def _tested(rule: Rule, task: Task) -> _Tested:
    columns = task.means()
    if rule.op not in (">", ">=", "<", "<=") or rule.times is not None:
        raise UserError(
            f"--until-decided: the rule {rule.text!r} is decided by the last sample only; write > "
            "or < and a number"
        )
    if rule.path == "flips.rate" and columns:
        return _Tested(rule, None, Evidence(_RATE))
    named = re.fullmatch(r"delta\.(\w+)\.value", rule.path)
    if named and named[1] in columns:
        return _Tested(rule, columns[named[1]], Evidence(_DELTA))
    able = ["flip_rate", *(f"delta.{name}" for name in columns)] if columns else []
    raise UserError(
        f"--until-decided: the rule {rule.text!r} is on a figure that is no mean over samples; "
        + (f"rules on these can be decided early: {', '.join(able)}" if able else
           f"{task.name} has none, since a sample has several {task.unit}s")
    )  # fmt: skip
