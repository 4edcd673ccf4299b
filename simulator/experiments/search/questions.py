"""Questions: policies that drop options as soon as these no longer matter for the answer.

A question is about all options at once, and its answer is wrong in :data:`ALPHA` of the runs at
most, however often the samples are looked at; see :mod:`simulator.statistics.anytime`.

``gate``: which options pass the rules? Each of K options is tested at ``ALPHA / K``, and is dropped
when its own gate is decided.

``worst-flips``, ``worst-drop``: which option is the worst? Option *i* is dropped when a bettor on
"*i* is better than *j*", sample by sample on the same samples, has ``(K - 1) / ALPHA`` times his
capital, *j* being the worst so far. The true worst is dropped only if one of K - 1 such bettors
wins although he is wrong: hence K - 1, and not the number of all pairs. Of several that are equally
bad each is an answer.

``cheapest``: which is the cheapest option that passes the rules? Each of K options is tested at
``ALPHA / K``, as for ``gate``, and is dropped when its own gate is decided, or when a cheaper one
passes. All K verdicts hold at once, so that costs may be measured on the same samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, get_args

from simulator.analysis.gate import Rule, read
from simulator.command.options import Asking
from simulator.errors import UserError, unknown
from simulator.experiments.search.gate import SequentialGate
from simulator.experiments.search.policy import Compared, Options, Policy, Question
from simulator.experiments.search.stopping import ALPHA, DELTA, LEAST
from simulator.experiments.summary import SIDES
from simulator.pipeline.executor import SampleResult
from simulator.results.shared import RuleOutcome
from simulator.statistics.anytime import Evidence, Range
from simulator.tasks.score import Record
from simulator.tasks.task import Task

QUESTIONS: tuple[Asking, ...] = get_args(Asking)
"""Those that may be asked of the options of a suite, which have no cost."""


class PassingOptions(Policy):
    """Which options pass the rules.

    Args:
        options: see :class:`Policy`.
        rules: of the gate.
        task: of the model.
        question: the name of the question.
        looks: whether bounds are kept, see :class:`SequentialGate`.

    Attributes:
        gates: of each option.
    """

    def __init__(
        self,
        options: Options,
        rules: Sequence[Rule],
        task: Task,
        question: Question = "gate",
        looks: bool = False,
    ) -> None:
        super().__init__(options, question)
        own = ALPHA / len(options)
        self.gates = {name: SequentialGate(rules, task, own, looks) for name in options}

    @property
    def done(self) -> bool:
        """Whether every option is decided, or no longer matters."""
        return not self.alive

    def answer(self) -> list[str]:
        """Return the options that pass."""
        return [name for name in self.gates if self.passes(name)]

    def passes(self, option: str) -> bool:
        """Return whether an option passes every rule for certain."""
        return self.gates[option].done and not self.gates[option].failing

    def outcomes(self, undecided: str) -> list[RuleOutcome]:
        """Return what came of every rule for every option."""
        found = (gate.outcomes(name, undecided) for name, gate in self.gates.items())
        return [outcome for outcomes in found for outcome in outcomes]

    def _add(self, options: Mapping[str, Compared]) -> None:
        for name, (reference, own) in options.items():
            self.gates[name].add(reference, own)

    def _fail(self, failed: Collection[str]) -> None:
        for name in failed:
            self.gates[name].fail()

    def _settled(self) -> dict[str, str]:
        return {name: self._why(name) for name in self.alive if self.gates[name].done}

    def _why(self, option: str) -> str:
        failing = self.gates[option].failing
        return f"it fails: {', '.join(failing)}" if failing else "it passes every rule"


class PassingPair(PassingOptions):
    """Whether the deployment of a pair passes: judged after every sample, not in rounds."""

    def __init__(self, rules: Sequence[Rule], task: Task) -> None:
        train, deploy = SIDES
        super().__init__({deploy: train}, rules, task, looks=True)

    @property
    def gate(self) -> SequentialGate:
        """Of the deployment."""
        (gate,) = self.gates.values()
        return gate

    def tell(self, done: SampleResult, stacks: Sequence[str]) -> None:
        """Take a sample that is through, and judge."""
        super().tell(done, stacks)
        self.judge()


class CheapestPassing(PassingOptions):
    """Which is the cheapest option that passes the rules.

    Args:
        options: see :class:`Policy`.
        rules: of the gate.
        task: of the model.
        rank: what options are ordered by, the cheapest first; known after the first round.
    """

    def __init__(
        self, options: Options, rules: Sequence[Rule], task: Task, rank: Callable[[str], Any]
    ) -> None:
        super().__init__(options, rules, task, "cheapest")
        self._rank = rank

    @property
    def order(self) -> list[str]:
        """The options, the cheapest first."""
        return sorted(self.options, key=self._rank)

    def answer(self) -> list[str]:
        """Return the options that may be the answer, the cheapest first; the last one passes.

        Where none passes for certain, they are those that are not decided.
        """
        order = self.order
        passing = [self.passes(name) for name in order]
        end = passing.index(True) + 1 if any(passing) else len(passing)
        return [name for name in order[:end] if name in self.alive or self.passes(name)]

    def chosen(self, undecided: str) -> str | None:
        """Return the cheapest option that passes; None: none does.

        Args:
            undecided: ``pass`` or ``fail``, for an option that the samples did not decide.
        """
        left = self.alive if undecided == "pass" else ()
        return next((name for name in self.answer() if self.passes(name) or name in left), None)

    def _settled(self) -> dict[str, str]:
        found = super()._settled()
        order = self.order
        best = next((name for name in order if self.passes(name)), None)
        if best is None:
            return found
        dearer = order[order.index(best) + 1 :]
        late = {name: f"{best} is cheaper, and passes" for name in dearer if name in self.alive}
        return late | found

    def _why(self, option: str) -> str:
        gate = self.gates[option]
        return f"it {'fails' if gate.failing else 'passes'}: {', '.join(gate.refuted())}"


class WorstOption(Policy):
    """Which option is the worst.

    Args:
        question: ``worst-flips``: that changes most answers; ``worst-drop``: whose metric lies
            farthest below that of what it is held against.
        options: see :class:`Policy`; where all are held against one stack, its own metric does
            not matter.
        task: of the model.
        alpha: the probability that the worst is dropped, at most.

    Raises:
        UserError: the task's metric, or its flips, are no means over samples.
    """

    def __init__(
        self, question: Question, options: Options, task: Task, alpha: float = ALPHA
    ) -> None:
        super().__init__(options, question, alpha)
        columns = task.means()
        if not columns or task.headline not in columns:
            raise UserError(
                f"--until-decided {question}: of {task.name} a sample has several {task.unit}s, "
                "so that no option can be dropped early; leave it out"
            )
        flips = question == "worst-flips"
        self._column, self._flips = "changed" if flips else columns[task.headline], flips
        self._against = not flips and len({*options.values()}) > 1
        self._range = Range(-2.0, 2.0) if self._against else DELTA
        self._words = "changes fewer answers than" if flips else "loses less than"
        self._values: dict[str, list[float]] = {name: [] for name in options}
        self._needed = math.log(max(len(options) - 1, 1) / alpha)

    @property
    def done(self) -> bool:
        """Whether one option is left, and was looked at."""
        return len(self.alive) == 1 and self._seen >= LEAST

    def answer(self) -> list[str]:
        """Return the options that may be the worst, the worst so far first."""
        return sorted(self.alive, key=lambda name: -sum(self._values[name]))

    def _add(self, options: Mapping[str, Compared]) -> None:
        found = {name: self._value(*records) for name, records in options.items()}
        for name, value in found.items():
            if None not in found.values() and value is not None:
                self._values[name].append(value)

    def _value(self, reference: Record, own: Record) -> float | None:
        """How bad an option is on a sample; None where the truth is not known."""
        value, before = own[self._column], 0.0
        if self._flips:
            return float(value)
        if self._against:
            before = reference[self._column]
        return None if value is None or before is None else float(before) - float(value)

    def _settled(self) -> dict[str, str]:
        worst, *others = self.answer()
        if self._seen < LEAST:
            return {}
        return {name: self._why(name, worst) for name in others if self._is_better(name, worst)}

    def _is_better(self, one: str, other: str) -> bool:
        pairs = zip(self._values[one], self._values[other], strict=True)
        _, below = Evidence(self._range, (a - b for a, b in pairs)).against(0.0)
        return below >= self._needed

    def _why(self, one: str, worst: str) -> str:
        less = abs(sum(self._values[worst]) - sum(self._values[one])) / len(self._values[one])
        return f"it {self._words} {worst}, by {100 * less:.2f} points of the samples so far"


def rules_of(fail_on: Sequence[str], question: str | None, allow_failed: str | None) -> list[Rule]:
    """Return the rules that each option is judged by, before anything is loaded.

    Args:
        fail_on: the rules as they are written.
        question: that is asked; None: none is.
        allow_failed: see :func:`simulator.analysis.gate.read`.

    Raises:
        UserError: there is no such question, or one of them is no rule.
    """
    if question is not None and question not in QUESTIONS:
        raise UserError(f"--until-decided: {unknown('question', question, QUESTIONS)}")
    return read(fail_on, allow_failed)


def policy_of(
    question: Asking | None, options: Options, rules: Sequence[Rule], task: Task
) -> Policy:
    """Return the policy for a question; without one all options run on all samples.

    Args:
        question: that is asked of the options, or None.
        options: see :class:`Policy`; at least one where a question is asked.
        rules: of the gate.
        task: of the model.

    Raises:
        UserError: the rules or the task do not fit the question.
    """
    if question is None:
        return Policy(options)
    if question == "gate":
        return PassingOptions(options, rules, task)
    if rules:
        raise UserError(f"--until-decided {question} has no rules; leave out --fail-on")
    return WorstOption(question, options, task)
