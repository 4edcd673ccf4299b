"""Policies: which options still run, and on which samples their figures are.

Options are those of a sweep, of a step to the worst case, the stacks of a robustness run under each
condition, of a repair, or the one deployment of a pair. Without a question all of them run on all
samples; a question drops those that no longer matter for it, see
:mod:`simulator.experiments.search.questions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from simulator.analysis.outcomes import at_chance, unjudged
from simulator.experiments.search.stopping import ALPHA, rounds
from simulator.notices import Kind, Notice
from simulator.pipeline.executor import SampleResult
from simulator.results.shared import Gate, RuleOutcome
from simulator.results.suites import Dropped, Early
from simulator.tasks.score import Record

Question = Literal["gate", "worst-flips", "worst-drop", "cheapest"]
Options = Mapping[str, str]
"""For each option the name of the stack that it is held against."""
Compared = tuple[Record, Record]
"""What an option is held against, and the option itself, on one sample."""
STOPPED = (
    "options were dropped as soon as they could no longer matter: each has figures of its own "
    "samples (column n), which are not to be held against those of an option with another n, and "
    "intervals and p-values are those of a fixed number of samples, and too short"
)


class Policy:
    """Which options still run. Without a question all of them run on all samples.

    Args:
        options: in the order in which they run.
        question: by which options are dropped; None: none is asked.
        alpha: the probability of a wrong answer, at most.

    Attributes:
        options: likewise.
        alive: the options that still run.
        dropped: the others, in the order in which they were dropped.
        own_samples: whether figures of an option are of the samples that it and what it is held
            against were run on; else of those that went through all stacks.
    """

    def __init__(
        self, options: Options, question: Question | None = None, alpha: float = ALPHA
    ) -> None:
        self.options, self._question, self._alpha = options, question, alpha
        self.own_samples = question is not None
        self.alive = list(options)
        self.dropped: list[Dropped] = []
        self._seen = self._runs = 0

    @property
    def done(self) -> bool:
        """Whether the question is answered."""
        return False

    def answer(self) -> list[str]:
        """Return the options that pass, or that may be the worst; without a question all."""
        return self.alive

    def outcomes(self, undecided: str) -> list[RuleOutcome]:
        """Return what came of the rules of each option; nothing without rules."""
        return []

    def _add(self, options: Mapping[str, Compared]) -> None:
        """Take the records of one sample."""

    def _fail(self, failed: Collection[str]) -> None:
        """Take the options that failed on a sample, while what they are held against has not."""

    def _settled(self) -> dict[str, str]:
        """The options that no longer matter, and why."""
        return {}

    def rounds(self, samples: int) -> Iterator[tuple[int, int]]:
        """Yield where each round begins and ends; options are dropped between rounds.

        Args:
            samples: that there are.
        """
        return rounds(samples) if self._question else iter([(0, samples)])

    def running(self, stacks: Iterable[str]) -> tuple[str, ...]:
        """Return those of all stacks that still run: options, and what they are held against."""
        if not self.dropped:
            return tuple(stacks)
        needed = {*self.alive, *(self.options[name] for name in self.alive)}
        return tuple(name for name in stacks if name in needed)

    def tell(self, done: SampleResult, stacks: Sequence[str]) -> None:
        """Take a sample that is through.

        Args:
            done: the sample.
            stacks: what it ran on, in the order of its outcomes.
        """
        if done.skipped is None:
            records = {
                name: outcome.record for name, outcome in zip(stacks, done.outcomes, strict=True)
            }
            self.add({name: (records[self.options[name]], records[name]) for name in self.alive})
            return
        self._seen += 1
        self._runs += len(self.alive)
        failed = {stacks[at] for at in done.failed}
        self._fail([name for name in failed if self.options.get(name, name) not in failed])

    def add(self, options: Mapping[str, Compared]) -> None:
        """Take the records of one sample, of all options alive."""
        self._seen += 1
        self._runs += len(options)
        self._add(options)

    def judge(self) -> None:
        """Drop the options that no longer matter; called after every round."""
        for option, why in self._settled().items():
            self.alive.remove(option)
            self.dropped.append(Dropped(option=option, samples=self._seen, why=why))

    def early(self, of: int) -> Early | None:
        """Return when which option was dropped; None without a question.

        Args:
            of: how many samples there were to run.
        """
        return self._question and Early(
            question=self._question,
            alpha=self._alpha,
            samples=self._seen,
            of=of,
            decided=self.done,
            answer=self.answer(),
            dropped=self.dropped,
            runs=self._runs,
            all_runs=of * len(self.options),
        )

    def fields(self, samples: int, undecided: str, notices: Iterable[Notice]) -> dict[str, Any]:
        """Return the fields of a summary that a question leaves: ``early`` and ``gate``.

        Args:
            samples: that there were to run.
            undecided: ``pass`` or ``fail``, for a rule that the samples do not decide.
            notices: of the run.
        """
        if self._question is None:
            return {}
        outcomes = self.outcomes(undecided)
        if at_chance(notices):
            outcomes = unjudged(outcomes)
        return {"early": self.early(samples), "gate": Gate.of(outcomes)}

    def notices(self) -> list[Notice]:
        """Return what users should know where options were dropped."""
        return [Notice(Kind.FEW_SAMPLES, STOPPED)] if self.dropped else []
