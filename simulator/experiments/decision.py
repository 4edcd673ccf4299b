"""Gates that are decided while samples still run: ``--until-decided``.

Every rule is tested after every sample; see :mod:`simulator.statistics.anytime`. The whole gate
keeps one bound: of *n* rules each is tested at ``ALPHA / n``. Samples on which the deployment alone
fails are one more rule: where some are borne, it is tested like the others; where none is, the
first one fails the gate, and no number of samples shows that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from simulator.analysis.figures import by_name, figures
from simulator.analysis.gate import Borne, Rule, borne, resolved
from simulator.errors import UserError
from simulator.pipeline.executor import SampleResult
from simulator.results.pair import pair_summary
from simulator.results.shared import Bound, Decided, Gate, RuleOutcome
from simulator.statistics.anytime import Evidence, Range
from simulator.tasks.score import Record
from simulator.tasks.task import Task
from simulator.typed import Unit

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
    at: Bound | None = None
    """Where the figure lay when it was decided, each end with the probability of the rule."""
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
                self.at = self.now(alpha)

    def now(self, alpha: float) -> Bound:
        """Return where the figure lies: 2 alpha have both ends, so alpha has each."""
        low, high = self.evidence.interval(2 * alpha)
        seen = self.evidence.samples
        return Bound(samples=seen, value=self.evidence.mean, low=low, high=high)

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
            low, high = self.evidence.interval(alpha)
            seen = self.evidence.samples
            self.bounds.append(Bound(samples=seen, value=self.evidence.mean, low=low, high=high))
            self.looked = seen


class _Failing(_Tested):
    """The rule on samples on which the deployment alone fails."""

    @property
    def waits(self) -> bool:
        return self.rule.limit > 0

    def judge(self, alpha: float) -> None:
        if self.waits:
            super().judge(alpha)
        elif self.evidence.samples >= LEAST and self.evidence.mean > 0:
            self.decision = "fails"


class Decision:
    """Tells when a gate is decided: one rule fails, or all pass.

    Attributes:
        compared: samples until then that both stacks answered.

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
        own = [rule for rule in rules if not isinstance(rule, Borne)]
        if not own:
            raise UserError(
                "--until-decided needs a rule to decide; add --fail-on, for example "
                "'flip_rate > 1%'"
            )
        share = next((rule for rule in rules if isinstance(rule, Borne)), borne(None))
        self._failing = _Failing(share.of("deploy"), None, Evidence(_RATE))
        known = by_name(figures(pair_summary(task.Flips), {"delta": task.metrics}))
        self._tested = [_tested(rule, task) for rule in resolved(own, known)]
        self._tested += [self._failing] if self._failing.waits else []
        self._alpha, self._looks = alpha / len(self._tested), looks
        self._seen = self.compared = 0

    @property
    def done(self) -> bool:
        """Whether further samples cannot change the gate."""
        return bool(self.failing) or all(one.decision for one in self._tested)

    def tell(self, pair: SampleResult) -> None:
        """Take one more sample, with what came of training and deployment."""
        if pair.skipped is None:
            self.add(*(outcome.record for outcome in pair.outcomes))
        elif 1 in pair.failed:
            self.fail()

    def fail(self) -> None:
        """Take one more sample: the deployment alone fails on it."""
        self._take(1.0)

    def add(self, train: Record, deploy: Record) -> None:
        """Take the records of one more sample; no more are looked at once it is decided."""
        self._take(0.0, train, deploy)

    def _take(self, failed: float, *pair: Record) -> None:
        if self.done:
            return
        self._seen += 1
        self.compared += bool(pair)
        self._failing.evidence.add(failed)
        self._failing.judge(self._alpha)
        for one in self._tested:
            if pair and one is not self._failing:
                one.see(*pair)
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
        known = {one.rule.text: one for one in self._tested}
        rules = [
            one.model_copy(update=self._outcome(known[one.rule], undecided))
            if one.judged and one.rule in known
            else one
            for one in judged.rules
        ]
        return Gate.of(rules)

    def bounded(
        self, train: Sequence[Record], deploy: Sequence[Record], task: Task, alpha: float = ALPHA
    ) -> dict[str, list[float]]:
        """Return where figures lie at any time, so that no end contradicts the decision.

        Args:
            train: records of the samples at the decision, see :attr:`compared`.
            deploy: of the same samples.
            task: of the model.
            alpha: the probability that one end of a figure without a rule is ever wrong, at most.

        Returns:
            By path, ``flips.rate`` and ``delta.METRIC.value``, both ends.
        """
        own = {one.rule.name: one for one in self._tested if one.at or one.evidence.samples}
        found = {}
        columns = {f"delta.{name}.value": column for name, column in task.means().items()}
        for path, column in {"flips.rate": None, **columns}.items():
            if path in own:
                same = [
                    one.at or one.now(self._alpha) for one in self._tested if one.rule.name == path
                ]
                found[path] = [max(one.low for one in same), min(one.high for one in same)]
                continue
            free = _Tested(Rule("", path, ">", 0.0), column, Evidence(_DELTA if column else _RATE))
            for pair in zip(train, deploy, strict=True):
                free.see(*pair)
            if free.evidence.samples:
                now = free.now(alpha)
                found[path] = [now.low, now.high]
        return found

    def outcomes(self, of: str, undecided: str) -> list[RuleOutcome]:
        """Return what came of every rule.

        Args:
            of: what was judged; it stands before each rule.
            undecided: see :meth:`gate`.
        """
        return [self._as_rule(one, undecided, f"{of}: ") for one in self._all]

    def _as_rule(self, one: _Tested, undecided: str, before: str = "") -> RuleOutcome:
        return RuleOutcome(
            rule=f"{before}{one.rule.text}", limit=one.rule.limit,
            unit=Unit.POINTS if one.column else Unit.SHARE,
            **{"value": one.evidence.mean, "reason": None, **self._outcome(one, undecided)},
        )  # fmt: skip

    @property
    def _all(self) -> list[_Tested]:
        """What was tested; and that the deployment failed, where it did and may not."""
        fails = not self._failing.waits and self._failing.evidence.mean > 0
        return [*self._tested, self._failing] if fails else self._tested

    @property
    def failing(self) -> list[str]:
        """The rules that fail, so far."""
        return [one.rule.text for one in self._all if one.decision == "fails"]

    def refuted(self) -> list[str]:
        """Return the rules by which it was decided, each with the bound that decided it."""
        fails = bool(self.failing)
        return [
            f"{one.rule.text} ({one.bound(self._alpha)})"
            for one in self._all
            if one.decision == ("fails" if fails else "passes")
        ]

    def _outcome(self, one: _Tested, undecided: str) -> Mapping[str, Any]:
        if one is self._failing and not self._failing.waits:
            return {"failed": True, "undecided": False, "chance": False, "more": None}
        if one.at is not None:
            ends = {"value": one.at.value, "ci95": [one.at.low, one.at.high], "more": None}
            return {"failed": one.decision == "fails", "undecided": False, "chance": False} | ends
        low, high = one.evidence.interval(self._alpha)
        more = one.evidence.further(one.rule.limit, self._alpha)
        would = f"; about {more:,} more would decide it if the figure stays" if more else ""
        reason = (
            f"{one.evidence.samples:,} samples leave it between {100 * low:.2f} and "
            f"{100 * high:.2f} {'points' if one.column else '%'}{would}"
        )
        return {
            "failed": undecided == "fail", "undecided": True, "chance": None, "reason": reason,
            "more": more,
        }  # fmt: skip


def _tested(rule: Rule, task: Task) -> _Tested:
    columns = task.means()
    if rule.op not in (">", ">=", "<", "<=") or rule.times is not None:
        raise UserError(
            f"--until-decided: the rule {rule.text!r} is decided by the last sample only; write > "
            "or < and a number"
        )
    if rule.name == "flips.rate" and columns:
        return _Tested(rule, None, Evidence(_RATE))
    deltas = {f"delta.{name}.value": column for name, column in columns.items()}
    if rule.name in deltas:
        return _Tested(rule, deltas[rule.name], Evidence(_DELTA))
    able = ["flip_rate", *(f"delta.{name}" for name in columns)] if columns else []
    raise UserError(
        f"--until-decided: the rule {rule.text!r} is on a figure that is no mean over samples; "
        + (f"rules on these can be decided early: {', '.join(able)}" if able else
           f"{task.name} has none, since a sample has several {task.unit}s")
    )  # fmt: skip
