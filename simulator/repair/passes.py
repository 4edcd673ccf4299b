"""Passes of a search: some stacks on some of the samples, in a folder of the run of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from simulator.data.folder import Item
from simulator.errors import ModelError
from simulator.experiments.answers import Answers
from simulator.experiments.common import TRAIN
from simulator.experiments.failures import Tried
from simulator.experiments.record_store import RecordStore
from simulator.experiments.search.evaluate import Evaluation
from simulator.experiments.search.policy import Policy
from simulator.experiments.search.steps import Steps
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.repair.space import NAME, Candidate
from simulator.results.times import total
from simulator.tasks.score import numbers

TOLD = 3
"""Stacks that a warning names."""


@dataclass(slots=True)
class Passes:
    """Runs passes one after the other; the training stack is in each.

    Attributes:
        steps: of the run, a step for each pass.
        session: the model and the samples.
        train: the training stack.
        deploy: the deployment as it is.
        left_out: stacks that cannot run with this model, and why.
        notices: what users should know of the stacks that ran.
    """

    steps: Steps
    session: Session
    train: ResolvedProfile
    deploy: ResolvedProfile
    left_out: dict[str, str] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)

    def run(self, name: str, candidates: Sequence[Candidate]) -> Evaluation:
        """Run stacks on the session's samples, each calibrated through its own pixels.

        Args:
            name: of the pass; its folder.
            candidates: the stacks; those that do not fit the model are left out.
        """
        stacks = self.stacks(candidates, own=True)
        policy = Policy(dict.fromkeys((stack.side for stack in stacks[1:]), TRAIN))
        return self.evaluate(name, stacks, policy)

    def over(self, items: Sequence[Item]) -> Passes:
        """Return the same over some of the samples; what is left out and noticed is shared."""
        return replace(self, session=self.session.subset(items))

    def stacks(self, candidates: Sequence[Candidate], own: bool) -> list[Stack]:
        """Prepare the training stack and others; those that do not fit the model are left out.

        Args:
            candidates: the others.
            own: whether INT8 that is calibrated through ``deploy`` is so through each stack's own
                pixels, or else through those of the deployment as it is.
        """
        self.session.show.say("preparing the stacks")
        pair = {"train": self.train, "deploy": self.deploy}
        stacks = [self.session.stack(Variant(TRAIN, self.train, pair))]
        for candidate in candidates:
            through = pair | {"deploy": candidate.chosen} if own else pair
            try:
                stacks.append(
                    self.session.stack(Variant(candidate.name, candidate.chosen, through))
                )
            except ModelError as error:
                self.left_out[candidate.name] = str(error)
        if own:
            some = [stack for stack in stacks if stack.side in SIDES]
            self.notices += [notice for stack in some for notice in stack.labelled_notices]
        return stacks

    def evaluate(
        self,
        name: str,
        stacks: Sequence[Stack],
        policy: Policy,
        first: Callable[[RecordStore], None] = lambda _: None,
    ) -> Evaluation:
        """Run a pass; see :meth:`Steps.evaluate`."""
        found = self.steps.evaluate(name, self.session, stacks, policy, first)
        self._tell_failing(name, found.records.partly())
        return found

    def _tell_failing(self, name: str, broken: Sequence[Tried]) -> None:
        """Warn of samples that only candidates cannot do: no stack is judged on them."""
        lost = [tried for tried in broken if not {TRAIN, NAME} & tried.failed.keys()]
        names = list(dict.fromkeys(stack for tried in lost for stack in tried.failed))
        if names:
            more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
            text = (
                f"{name}: {len(lost)} samples were left out for all stacks, because of "
                f"{', '.join(names[:TOLD])}{more}; the deployment as it is can do them"
            )
            self.notices.append(Notice(Kind.DATA, text))


def flip_rate(found: Evaluation, name: str) -> float:
    """Return the flip rate of a stack, on the samples that it is judged by."""
    return flips(found.of(name), name)


def latency(done: RecordStore, names: Iterable[str]) -> dict[str, float]:
    """Return the median milliseconds of stacks."""
    return {name: float(np.median(total(done.records(name).ns()))) / 1e6 for name in names}


def flips(found: Answers, name: str) -> float:
    """Return the share of answers in which a stack differs from training; 0 where nothing can."""
    changed, units = (int(numbers(found.of(name), one)[0].sum()) for one in ("changed", "units"))
    return changed / units if units else 0.0
