"""The gate of one stack, tested after every sample: ``--until-decided``.

The whole gate keeps one bound: of *n* rules each is tested at ``ALPHA / n``. Samples on which the
deployment alone fails are one more rule: where some are borne, it is tested like the others; where
none is, the first one fails the gate, and no number of samples shows that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.analysis.figures import by_name, figures
from simulator.analysis.gate import Borne, Rule, borne, resolved
from simulator.errors import UserError
from simulator.experiments.search.stopping import (
    ALPHA,
    DELTA,
    RATE,
    FailureTest,
    SequentialTest,
    sequential_test,
)
from simulator.results.pair import pair_summary
from simulator.results.shared import Decided, Gate, RuleOutcome
from simulator.statistics.anytime import Evidence
from simulator.tasks.score import Record
from simulator.tasks.task import Task
from simulator.typed import Unit

_LOOKS = 1.1
"""Each bound that is kept for the report has so many times the samples of the one before."""


class SequentialGate:
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
        self._failing = FailureTest(share.of("deploy"), None, Evidence(RATE))
        known = by_name(figures(pair_summary(task.Flips), {"delta": task.metrics}))
        self._tests = [sequential_test(rule, task) for rule in resolved(own, known)]
        self._tests += [self._failing] if self._failing.waits else []
        self._alpha, self._looks = alpha / len(self._tests), looks
        self._seen = self.compared = 0

    @property
    def done(self) -> bool:
        """Whether further samples cannot change the gate."""
        return bool(self.failing) or all(test.decision for test in self._tests)

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
        for test in self._tests:
            if pair and test is not self._failing:
                test.see(*pair)
            test.judge(self._alpha)
            if self._looks and test.evidence.samples >= test.looked * _LOOKS + 1:
                test.look(self._alpha)

    def decided(self, of: int) -> Decided:
        """Return when it was decided, and how the bounds closed in.

        Args:
            of: how many samples there were to run.
        """
        for test in self._tests:
            test.look(self._alpha)
        return Decided(
            samples=self._seen,
            of=of,
            alpha=ALPHA,
            decided=self.done,
            bounds={test.rule.text: test.bounds for test in self._tests},
        )

    def gate(self, judged: Gate, undecided: str = "fail") -> Gate:
        """Return the gate fixed at the stopping time, whatever the figures of the run say.

        Args:
            judged: by the figures.
            undecided: ``pass`` or ``fail``, for a rule that the samples did not decide.
        """
        known = {test.rule.text: test for test in self._tests}
        rules = [
            rule.model_copy(update=self._outcome(known[rule.rule], undecided))
            if rule.judged and rule.rule in known
            else rule
            for rule in judged.rules
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
        found = {}
        columns = {f"delta.{name}.value": column for name, column in task.means().items()}
        for path, column in {"flips.rate": None, **columns}.items():
            own = [test for test in self._tests if test.rule.name == path]
            if any(test.at or test.evidence.samples for test in own):
                bounds = [test.at or test.now(self._alpha) for test in own]
                found[path] = [max(at.low for at in bounds), min(at.high for at in bounds)]
                continue
            free = SequentialTest(Rule("", path, ">", 0.0), column,
                                  Evidence(DELTA if column else RATE))  # fmt: skip
            for pair in zip(train, deploy, strict=True):
                free.see(*pair)
            if free.evidence.samples:
                now = free.now(alpha)
                found[path] = [now.low, now.high]
        return found

    def write_bounds(
        self,
        figures: dict[str, Any],
        train: Sequence[Record],
        deploy: Sequence[Record],
        task: Task,
        method: str,
        alpha: float = ALPHA,
    ) -> None:
        """Write the ends of :meth:`bounded` into the figures of a pair, with how they were made."""
        ends = self.bounded(train, deploy, task, alpha)
        figures["flips"]["ci95"] = ends["flips.rate"]
        for metric, delta in figures["delta"].items():
            if delta and (at := ends.get(f"delta.{metric}.value")):
                figures["delta"][metric] = delta | {"ci95": at, "p": None, "method": method}

    def outcomes(self, of: str, undecided: str) -> list[RuleOutcome]:
        """Return what came of every rule.

        Args:
            of: what was judged; it stands before each rule.
            undecided: see :meth:`gate`.
        """
        return [
            RuleOutcome(
                rule=f"{of}: {test.rule.text}", limit=test.rule.limit,
                unit=Unit.POINTS if test.column else Unit.SHARE,
                **{"value": test.evidence.mean, "reason": None, **self._outcome(test, undecided)},
            )
            for test in self._all
        ]  # fmt: skip

    @property
    def _all(self) -> list[SequentialTest]:
        """What was tested; and that the deployment failed, where it did and may not."""
        fails = not self._failing.waits and self._failing.evidence.mean > 0
        return [*self._tests, self._failing] if fails else self._tests

    @property
    def failing(self) -> list[str]:
        """The rules that fail, so far."""
        return [test.rule.text for test in self._all if test.decision == "fails"]

    def refuted(self) -> list[str]:
        """Return the rules by which it was decided, each with the bound that decided it."""
        decided = "fails" if self.failing else "passes"
        return [
            f"{test.rule.text} ({test.bound(self._alpha)})"
            for test in self._all
            if test.decision == decided
        ]

    def _outcome(self, test: SequentialTest, undecided: str) -> Mapping[str, Any]:
        if test is self._failing and not self._failing.waits:
            return {"failed": True, "undecided": False, "chance": False, "more": None}
        if test.at is not None:
            ends = {"value": test.at.value, "ci95": [test.at.low, test.at.high], "more": None}
            return {"failed": test.decision == "fails", "undecided": False, "chance": False} | ends
        low, high = test.evidence.interval(self._alpha)
        more = test.evidence.further(test.rule.limit, self._alpha)
        would = f"; about {more:,} more would decide it if the figure stays" if more else ""
        reason = (
            f"{test.evidence.samples:,} samples leave it between {100 * low:.2f} and "
            f"{100 * high:.2f} {'points' if test.column else '%'}{would}"
        )
        return {
            "failed": undecided == "fail", "undecided": True, "chance": None, "reason": reason,
            "more": more,
        }  # fmt: skip
