"""Passes of a search: some stacks on some of the samples, in a folder of the run of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import ModelError
from simulator.experiments.answers import Answers
from simulator.experiments.common import TRAIN, manifest
from simulator.experiments.failures import Tried
from simulator.experiments.job import Job
from simulator.experiments.record_store import RecordStore
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.model.artifact import digest
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.repair.space import NAME, Candidate
from simulator.results.store import RunWriter
from simulator.results.suites import StepSummary
from simulator.results.times import ABSENT
from simulator.tasks.score import numbers

TOLD = 3
"""Stacks that a warning names."""
Ns = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """What a pass has found.

    Attributes:
        answers: the records of the training stack and the others.
        ns: of every stack by stage the nanoseconds of each sample, (samples,), in the answers'
            order.
        made: of every stack by stage what tells its recipes from others.
    """

    answers: Answers
    ns: Mapping[str, Mapping[str, Ns]]
    made: Mapping[str, Mapping[str, str]]

    def total(self, name: str) -> Ns:
        """Return the nanoseconds of a stack for each sample, (samples,)."""
        zero = np.zeros(len(self.answers.items), np.int64)
        return sum(self.ns[name].values(), zero)


@dataclass(slots=True)
class Passes:
    """Runs passes one after the other; the training stack is in each.

    Attributes:
        job: the call.
        session: the model and the samples.
        folder: of the run.
        train: the training stack.
        deploy: the deployment as it is.
        overrides: of both, ``STACK.KEY=VALUE``.
        left_out: stacks that cannot run with this model, and why.
        notices: what users should know of the stacks that ran.
    """

    job: Job
    session: Session
    folder: Path
    train: ResolvedProfile
    deploy: ResolvedProfile
    overrides: Sequence[str]
    left_out: dict[str, str] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)

    def run(
        self, name: str, candidates: Sequence[Candidate], items: Sequence[Item], own: bool
    ) -> Part:
        """Run stacks on samples; what an earlier attempt has finished is not run again.

        Args:
            name: of the pass; its folder.
            candidates: the stacks; those that do not fit the model are left out.
            items: the samples.
            own: whether INT8 that is calibrated through ``deploy`` is so through each stack's own
                pixels, or else through those of the deployment as it is.
        """
        part = self.over(items)
        stacks = part.stacks(candidates, own)
        names = [stack.side for stack in stacks]
        merged = part.session.plan(stacks)
        with part.writer(name, stacks) as run:
            done = run_and_keep(part.session, merged, run, timed=True)
            found = done.answers(*names)
            self.tell_failing(name, found.broken)
            finish(run, {one: flips(found, one) for one in names})
        return Part(found, times(names, done), made(stacks))

    def over(self, items: Sequence[Item]) -> Passes:
        """Return the same over some of the samples; what is left out and noticed is shared."""
        return replace(self, session=self.session.subset(items))

    def stacks(self, candidates: Sequence[Candidate], own: bool) -> list[Stack]:
        """Prepare the training stack and others; see :meth:`run`."""
        self.session.show.say("preparing the stacks")
        pair = {"train": self.train, "deploy": self.deploy}
        stacks = [self.session.stack(Variant(TRAIN, self.train, pair))]
        for one in candidates:
            through = pair | {"deploy": one.chosen} if own else pair
            try:
                stacks.append(self.session.stack(Variant(one.name, one.chosen, through)))
            except ModelError as error:
                self.left_out[one.name] = str(error)
        if own:
            some = [stack for stack in stacks if stack.side in SIDES]
            self.notices += [notice for stack in some for notice in stack.labelled_notices]
        return stacks

    def writer(self, name: str, stacks: Sequence[Stack]) -> RunWriter:
        """Open the folder of a pass for writing; only the session's samples are in it."""
        start = manifest(stacks, self.session, self.overrides)
        return self.job.writer(self.folder / name, start, self.session, whole=False)

    def tell_failing(self, name: str, broken: Sequence[Tried]) -> None:
        """Warn of samples that only candidates cannot do: no stack is judged on them.

        Args:
            name: of the pass.
            broken: the samples that some of its stacks could not do.
        """
        lost = [one for one in broken if not {TRAIN, NAME} & one.failed.keys()]
        names = list(dict.fromkeys(stack for one in lost for stack in one.failed))
        if names:
            more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
            text = (
                f"{name}: {len(lost)} samples were left out for all stacks, because of "
                f"{', '.join(names[:TOLD])}{more}; the deployment as it is can do them"
            )
            self.notices.append(Notice(Kind.DATA, text))


def joined(parts: Sequence[Part], names: Sequence[str]) -> Part:
    """Return what several passes have found of stacks that were in all of them."""
    first = parts[0].answers
    whole = Answers(
        first.task,
        tuple(names),
        tuple(item for part in parts for item in part.answers.items),
        tuple(
            tuple(record for part in parts for record in part.answers.of(name)) for name in names
        ),
        np.concatenate(
            [[part.answers.digests[part.answers.row(name)] for name in names] for part in parts],
            axis=1,
        ),
        sum(part.answers.skipped for part in parts),
        tuple(one for part in parts for one in part.answers.broken),
    )
    ns = {
        name: {
            stage: np.concatenate([part.ns[name][stage] for part in parts])
            for stage in parts[0].ns[name]
        }
        for name in names
    }
    return Part(whole, ns, parts[0].made)


def times(names: Sequence[str], done: RecordStore) -> dict[str, dict[str, Ns]]:
    """Return of every stack by stage the nanoseconds of each sample that was not skipped."""
    return {
        name: {s: np.where(ns == ABSENT, 0, ns) for s, ns in done.records(name).ns().items()}
        for name in names
    }


def made(stacks: Sequence[Stack]) -> dict[str, dict[str, str]]:
    """Return of every stack by stage what tells its recipes from others."""
    return {stack.side: _made(stack.chain) for stack in stacks}


def _made(chain: Chain) -> dict[str, str]:
    stages = dict.fromkeys(recipe.stage for recipe in chain.recipes)
    return {
        stage: digest([one.identity() for one in chain.recipes if one.stage == stage])
        for stage in stages
    }


def finish(run: RunWriter, rates: Mapping[str, float]) -> None:
    """End a pass with the flip rate of each stack."""
    run.finish(StepSummary(metric="flip_rate", values=dict(rates)), {})


def flips(found: Answers, name: str) -> float:
    """Return the share of answers in which a stack differs from training; 0 where nothing can."""
    changed, units = (int(numbers(found.of(name), one)[0].sum()) for one in ("changed", "units"))
    return changed / units if units else 0.0
