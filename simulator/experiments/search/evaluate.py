"""The evaluator: runs stacks on samples under a policy, and tells what came of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from simulator.contract.recipe import Chain
from simulator.experiments.answers import Answers
from simulator.experiments.record_store import RecordStore
from simulator.experiments.running import Recorder, run_samples
from simulator.experiments.search.policy import Policy
from simulator.experiments.session import Session
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.stack import Stack
from simulator.results.store import RunWriter
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.score import Score

Arms = Mapping[str, tuple[Arm, Chain]]
"""What runs, by name: options stand behind what they are held against."""


def arms_of(session: Session, stacks: Sequence[Stack]) -> Arms:
    """Return stacks as they run, under the condition of the session."""
    return {
        stack.side: (session.arm(stack.side), session.disturbed(stack.chain)) for stack in stacks
    }


class Evaluation:
    """Stacks on samples: first what is to be run, then what came of it.

    Args:
        session: the model and the samples; in a random order where the policy drops options.
        arms: what runs; the first one is the reference.
        policy: says which of them run on, and of which samples figures are.

    Attributes:
        arms: likewise.
        policy: likewise.
        plan: of all of them.
        records: of the samples that were run; there after :meth:`run`.
    """

    records: RecordStore

    def __init__(self, session: Session, arms: Arms, policy: Policy) -> None:
        self._session, self.arms, self.policy = session, arms, policy
        self.plan = self._plan(tuple(arms))

    def run(
        self,
        run: RunWriter,
        timed: bool = False,
        first: Callable[[RecordStore], None] = lambda _: None,
    ) -> None:
        """Run rounds of samples until the policy is done, or there are no more samples.

        Args:
            run: the records are written to it; samples that it has are not run again.
            timed: whether latencies are recorded; they differ from run to run.
            first: called with the samples of the first round, before options are dropped.

        Raises:
            DataError: no sample went through every stack.
            RunError: the records of an earlier attempt are of other options.
        """
        session, policy = self._session, self.policy
        recorder = Recorder(run, (), timed, session.card.task, policy=policy)
        self.records = recorder.done
        merged, planned = self.plan, tuple(self.arms)
        items = session.sealed()
        for start, stop in policy.rounds(len(items)):
            if policy.done:
                break
            names = policy.running(self.arms)
            recorder.run_as({name: self.arms[name][0] for name in names})
            recorder.restore(items[start:stop])
            if len(recorder.done) < stop:
                if names != planned:
                    merged, planned = self._plan(names), names
                run_samples(session, merged, [recorder], stop)
            session.require_some(recorder.done)
            if not start:
                first(recorder.done)
            policy.judge()
        run.records.join()

    def _plan(self, names: Sequence[str]) -> Plan:
        """One plan for some arms; options are compared with what they are held against."""
        self._session.sealed()
        groups: list[list[int]] = []
        for at, name in enumerate(names):
            if name not in self.policy.options:
                groups.append([])
            groups[-1].append(at)
        judge = TaskJudge(self._session.card.task, tuple(map(tuple, groups)))
        merged = plan(dict(self.arms[name] for name in names), judge)
        self._session.show.planned(merged)
        return merged

    @property
    def names(self) -> list[str]:
        """The stacks that have figures, the reference first: not those without samples to share."""
        first, *_ = self.arms
        return [first, *(self.policy.options if self.policy.own_samples else self.policy.alive)]

    @cached_property
    def shared(self) -> Answers:
        """What the reference has answered; with the others, where figures share their samples."""
        return self.records.answers(*self.names[: 1 if self.policy.own_samples else None])

    @cached_property
    def reference(self) -> Score:
        """The score of the reference."""
        return self.shared.score(self.names[0])

    def of(self, name: str) -> Answers:
        """Return what an option and the stack that it is held against have answered."""
        if self.policy.own_samples and name in self.policy.options:
            return self.records.answers(self.policy.options[name], name)
        return self.shared

    def compared(self, name: str) -> Mapping[str, Any]:
        """Return how an option compares with what it is held against, see :meth:`Task.compare`."""
        own, task = self.of(name), self._session.card.task
        against = (
            own.score(self.policy.options[name]) if self.policy.own_samples else self.reference
        )
        draws = Resamples(len(own.items), self._session.seed, task.resamples)
        return task.compare(against, own.score(name), draws)

    def failures(self) -> dict[str, Any]:
        """Return ``skipped``, ``failed`` and ``failures`` of a summary."""
        told = self.records.failures([*self.arms], self.names[0])
        return {"skipped": len(self.records.skipped), **told}
