"""Options that are dropped as soon as they can no longer matter for the question asked of them.

Options are those of a sweep, of a step to the worst case, or the stacks of a robustness run under
each condition. A question is about all options at once, and its answer is wrong in :data:`ALPHA` of
the runs at most, however often the samples are looked at; see :mod:`simulator.statistics.anytime`.

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
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from simulator.analysis.gate import Rule, read
from simulator.errors import UserError, unknown
from simulator.experiments.decision import ALPHA, LEAST, Decision
from simulator.results.shared import RuleOutcome
from simulator.results.suites import Dropped, Early
from simulator.statistics.anytime import Evidence, Range
from simulator.tasks.score import Record
from simulator.tasks.task import Task

Question = Literal["gate", "worst-flips", "worst-drop", "cheapest"]
QUESTIONS: tuple[Question, ...] = ("gate", "worst-flips", "worst-drop")
"""Those that may be asked of the options of a suite, which have no cost."""
Compared = tuple[Record, Record]
"""What an option is held against, and the option itself, on one sample."""
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


class Race(ABC):
    """One question, and the options that still matter for it.

    Args:
        question: its name.
        options: their names.
        alpha: the probability of a wrong answer, at most.
    """

    def __init__(self, question: Question, options: Sequence[str], alpha: float) -> None:
        self._question, self._alpha = question, alpha
        self.alive = list(options)
        self.dropped: list[Dropped] = []
        self._options = tuple(options)
        self._seen = self._runs = 0

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the question is answered."""

    @abstractmethod
    def answer(self) -> list[str]:
        """Return the options that pass, or that may be the worst."""

    @abstractmethod
    def outcomes(self, undecided: str) -> list[RuleOutcome]:
        """Return what came of the rules of each option; nothing without rules."""

    @abstractmethod
    def _add(self, options: Mapping[str, Compared]) -> None: ...

    def _fail(self, failed: Collection[str]) -> None:
        """Take the options that failed on a sample."""
        return

    @abstractmethod
    def _settled(self) -> dict[str, str]:
        """The options that no longer matter, and why."""

    def add(self, options: Mapping[str, Compared]) -> None:
        """Take the records of one sample, of all options alive."""
        self._seen += 1
        self._runs += len(options)
        self._add(options)

    def skip(self, failed: Collection[str] = ()) -> None:
        """Take a sample that did not go through every stack.

        Args:
            failed: the options that failed on it, while what they are held against has answered.
        """
        self._seen += 1
        self._runs += len(self.alive)
        self._fail(failed)

    def judge(self) -> None:
        """Drop the options that no longer matter; called after every round."""
        for option, why in self._settled().items():
            self.alive.remove(option)
            self.dropped.append(Dropped(option=option, samples=self._seen, why=why))

    def early(self, of: int) -> Early:
        """Return when which option was dropped.

        Args:
            of: how many samples there were to run.
        """
        return Early(
            question=self._question,
            alpha=self._alpha,
            samples=self._seen,
            of=of,
            decided=self.done,
            answer=self.answer(),
            dropped=self.dropped,
            runs=self._runs,
            all_runs=of * len(self._options),
        )


class Gates(Race):
    """Which options pass the rules."""

    def __init__(
        self,
        options: Sequence[str],
        rules: Sequence[Rule],
        task: Task,
        question: Question = "gate",
    ) -> None:
        super().__init__(question, options, ALPHA)
        own = ALPHA / len(options)
        self._gates = {one: Decision(rules, task, own, looks=False) for one in options}

    @property
    def done(self) -> bool:
        """Whether every option is decided."""
        return all(gate.done for gate in self._gates.values())

    def answer(self) -> list[str]:
        """Return the options that pass."""
        return [one for one in self._gates if self.passes(one)]

    def passes(self, option: str) -> bool:
        """Return whether an option passes every rule for certain."""
        return self._gates[option].done and not self._gates[option].failing

    def outcomes(self, undecided: str) -> list[RuleOutcome]:
        """Return what came of every rule for every option."""
        found = (gate.outcomes(one, undecided) for one, gate in self._gates.items())
        return [outcome for outcomes in found for outcome in outcomes]

    def _add(self, options: Mapping[str, Compared]) -> None:
        for name, (reference, own) in options.items():
            self._gates[name].add(reference, own)

    def _fail(self, failed: Collection[str]) -> None:
        for name in failed:
            self._gates[name].fail()

    def _settled(self) -> dict[str, str]:
        return {one: self._why(one) for one in self.alive if self._gates[one].done}

    def _why(self, option: str) -> str:
        failing = self._gates[option].failing
        return f"it fails: {', '.join(failing)}" if failing else "it passes every rule"


class Cheapest(Gates):
    """Which is the cheapest option that passes the rules.

    Attributes:
        order: the options, the cheapest first; set before options are dropped.
    """

    def __init__(self, options: Sequence[str], rules: Sequence[Rule], task: Task) -> None:
        super().__init__(options, rules, task, "cheapest")
        self.order: Sequence[str] = self._options

    @property
    def done(self) -> bool:
        """Whether no option is left that may be the answer, but for the answer itself."""
        return not self.alive

    def answer(self) -> list[str]:
        """Return the options that may be the answer, the cheapest first; the last one passes.

        Where none passes for certain, they are those that are not decided.
        """
        passing = [self.passes(one) for one in self.order]
        end = passing.index(True) + 1 if any(passing) else len(passing)
        return [one for one in self.order[:end] if one in self.alive or self.passes(one)]

    def chosen(self, undecided: str) -> str | None:
        """Return the cheapest option that passes; None: none does.

        Args:
            undecided: ``pass`` or ``fail``, for an option that the samples did not decide.
        """
        return next((one for one in self.answer() if self.accepted(one, undecided)), None)

    def accepted(self, option: str, undecided: str) -> bool:
        """Return whether an option passes, for certain or because *undecided* says so."""
        return self.passes(option) or (undecided == "pass" and option in self.alive)

    def decision(self, option: str) -> Decision:
        """Return the gate of an option."""
        return self._gates[option]

    def _settled(self) -> dict[str, str]:
        found = super()._settled()
        best = next((one for one in self.order if self.passes(one)), None)
        if best is None:
            return found
        dearer = self.order[self.order.index(best) + 1 :]
        late = {one: f"{best} is cheaper, and passes" for one in dearer if one in self.alive}
        return late | found

    def _why(self, option: str) -> str:
        gate = self._gates[option]
        return f"it {'fails' if gate.failing else 'passes'}: {', '.join(gate.refuted())}"


class Worst(Race):
    """Which option is the worst.

    Args:
        question: ``worst-flips``: that changes most answers; ``worst-drop``: whose metric lies
            farthest below that of what it is held against.
        options: their names.
        task: of the model.
        alpha: the probability that the worst is dropped, at most.
        shared: whether all are held against the same stack, whose own metric then does not matter.

    Raises:
        UserError: the task's metric, or its flips, are no means over samples.
    """

    def __init__(
        self,
        question: Question,
        options: Sequence[str],
        task: Task,
        alpha: float = ALPHA,
        shared: bool = True,
    ) -> None:
        super().__init__(question, options, alpha)
        columns = task.means()
        if not columns or task.headline not in columns:
            raise UserError(
                f"--until-decided {question}: of {task.name} a sample has several {task.unit}s, "
                "so that no option can be dropped early; leave it out"
            )
        flips = question == "worst-flips"
        self._column, self._flips = "changed" if flips else columns[task.headline], flips
        self._against = not (flips or shared)
        self._range = Range(-2.0, 2.0) if self._against else Range(-1.0, 1.0)
        self._words = "changes fewer answers than" if flips else "loses less than"
        self._values: dict[str, list[float]] = {one: [] for one in options}
        self._needed = math.log(max(len(options) - 1, 1) / alpha)

    @property
    def done(self) -> bool:
        """Whether one option is left, and was looked at."""
        return len(self.alive) == 1 and self._seen >= LEAST

    def answer(self) -> list[str]:
        """Return the options that may be the worst, the worst so far first."""
        return sorted(self.alive, key=lambda one: -sum(self._values[one]))

    def outcomes(self, undecided: str) -> list[RuleOutcome]:
        """Return nothing: it has no rules."""
        return []

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
        return {one: self._why(one, worst) for one in others if self._is_better(one, worst)}

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


def race(
    question: str, options: Sequence[str], rules: Sequence[Rule], task: Task, shared: bool = True
) -> Race:
    """Return the race for a question.

    Args:
        question: one of :data:`QUESTIONS`.
        options: their names, at least one.
        rules: of the gate.
        task: of the model.
        shared: whether all options are held against the same stack.

    Raises:
        UserError: there is no such question, or the rules or the task do not fit it.
    """
    if question == "gate":
        return Gates(options, rules, task)
    if rules:
        raise UserError(f"--until-decided {question} has no rules; leave out --fail-on")
    for known in QUESTIONS[1:]:
        if question == known:
            return Worst(known, options, task, shared=shared)
    raise UserError(f"--until-decided: {unknown('question', question, QUESTIONS)}")
