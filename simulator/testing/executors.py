"""The checks that every executor has to pass: what it gives is what the local one gives."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.contract.recipe import Recipe
from simulator.data.folder import Dataset, Item
from simulator.files import IMAGE
from simulator.modalities.modality import MODALITIES
from simulator.model.card import DEFAULT
from simulator.model.onnxfile import check
from simulator.pipeline.builder import StackBuilder
from simulator.pipeline.executor import EXECUTORS, Executor, SampleResult
from simulator.pipeline.jobs import Job, JobStep, Read
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Walk, Watch
from simulator.places import InMemory, read
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.testing.places import Way, way
from simulator.testing.subject import expect
from simulator.testing.suite import Suite, Verdict

SAMPLES = 12
BAD = 5
"""The sample whose file is empty."""


@dataclass(frozen=True)
class Subject:
    """An executor, and a plan and samples for it."""

    kind: type[Executor]
    way: Way
    plan: Plan
    items: Sequence[Item]

    def run(self, workers: int = 3, watch: Watch | None = None) -> list[SampleResult]:
        """Take the samples down the plan."""
        return self._run(self.kind, workers, watch)

    def expected(self) -> list[SampleResult]:
        """Return what the local executor makes of them."""
        return self._run(LocalExecutor, 1, None)

    def digests(self) -> tuple[list[list[str]], list[Any]]:
        """Return the digests of the samples that can be read, two a job, and what jobs gave."""
        whole = [item for at, item in enumerate(self.items) if at != BAD]
        pairs = [tuple(whole[at : at + 2]) for at in range(0, len(whole), 2)]
        wanted = [[_digest(read(item.path, IMAGE)) for item in pair] for pair in pairs]
        jobs = [Job(pair, tuple(item.name for item in pair)) for pair in pairs]
        with self._executor(self.kind, 3) as executor:
            return wanted, list(executor.map(_Digests(), jobs))

    def _run(self, kind: type[Executor], workers: int, watch: Watch | None) -> list[SampleResult]:
        with self._executor(kind, workers) as executor:
            return list(executor.run(self.plan, self.items, watch))

    @contextmanager
    def _executor(self, kind: type[Executor], workers: int) -> Iterator[Executor]:
        with RuntimePool() as runtimes:
            executor = kind(self.way.modality, runtimes, workers)
            try:
                yield executor
            finally:
                executor.close()


class _Digests(JobStep[tuple[str, ...], list[str]]):
    """Reads the samples of a job."""

    who = "digests"
    recipes: tuple[Recipe, ...] = ()

    def open(self, runtimes: RuntimePool) -> Callable[[tuple[str, ...], Read], list[str]]:
        """Return what gives the digest of each sample, by their names."""
        return lambda names, source_of: [_digest(source_of(name).source.data) for name in names]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def answers_are_the_local_ones(subject: Subject) -> None:
    """Each sample gets the records, digests and stages of the local executor."""
    wanted = {result.item.name: _made(result) for result in subject.expected() if result.outcomes}
    for workers in (1, 4):
        got = {
            result.item.name: _made(result) for result in subject.run(workers) if result.outcomes
        }
        for name, outcomes in wanted.items():
            found = got.get(name)
            expect(
                found == outcomes, f"{name}, {workers} workers: {outcomes} expected, got {found}"
            )


def samples_come_in_order(subject: Subject) -> None:
    """There is one result for each sample, in the order of the samples."""
    wanted = [item.name for item in subject.items]
    got = [result.item.name for result in subject.run()]
    expect(got == wanted, f"{wanted} expected, got {got}")


def a_broken_sample_costs_itself(subject: Subject) -> None:
    """A file that cannot be read is skipped with the stage and the reason; no other one is."""
    wanted = {result.item.name: result.skipped for result in subject.expected()}
    got = {result.item.name: result.skipped for result in subject.run()}
    for name, why in got.items():
        told = f"{name}: {wanted[name] or 'an answer'} expected, got {why or 'an answer'}"
        expect(why == wanted[name], told)


def every_sample_is_watched(subject: Subject) -> None:
    """Who watches sees each sample that went through, wherever; the result has what it returned."""
    for one in subject.run(watch=_name_of):
        wanted = one.item.name if one.outcomes else None
        expect(one.seen == wanted, f"{one.item.name}: {wanted!r} seen expected, got {one.seen!r}")


def jobs_read_their_samples_and_come_in_order(subject: Subject) -> None:
    """There is one result for each job, in the order of the jobs, of the samples it names."""
    wanted, got = subject.digests()
    expect(got == wanted, f"{wanted} expected, got {got}")


def _name_of(walk: Walk, outcomes: Mapping[int, Any]) -> str:
    return walk.context.sample


def _made(done: SampleResult) -> list[Any]:
    return [(dict(outcome.record), outcome.digest, list(outcome.ns)) for outcome in done.outcomes]


SUITE: Suite[Subject] = Suite.of(__name__)


def prove_executor(what: str | type[Executor]) -> list[Verdict]:
    """Run every check on an executor, with the specimen of images.

    Args:
        what: the name of an installed executor, or its class.

    Raises:
        UserError: there is no such executor.
        MissingLibrary: what the specimen's profile needs is not installed.
    """
    own = EXECUTORS[what] if isinstance(what, str) else what
    with tempfile.TemporaryDirectory() as folder:
        found = way(MODALITIES[DEFAULT], Path(folder))
        items = _items(found, Path(folder))
        dataset = Dataset(Path(folder), tuple(items))
        builder = StackBuilder(found.card, check(found.card), dataset, 0, lambda _: None)
        try:
            merged = _plan(found, builder)
            return SUITE.prove(Subject(own, found, merged, items))
        finally:
            builder.close()


def _items(found: Way, folder: Path) -> list[Item]:
    items = []
    for number in range(SAMPLES):
        source = found.specimen.files[number % len(found.specimen.files)]
        path = folder / f"{number:02}{source.suffix}"
        shutil.copy(source, path)
        if number == BAD:
            path.write_bytes(b"")
        place = InMemory.of(path, IMAGE) if number % 3 == 1 else path
        items.append(Item(path.name, place, number % 3))
    return items


def _plan(found: Way, builder: StackBuilder) -> Plan:
    """Two stacks that decode alike and differ behind."""
    chains = {}
    for name, overrides in (("one", []), ("two", ["normalize.mean=[1.0, 2.0, 3.0]"])):
        profile = load(found.specimen.profile, overrides)
        own = profile, choose(profile)
        chains[Arm(name)] = builder.stack(name, own, {"train": own, "deploy": own}).chain
    return plan(chains, TaskJudge(found.card.task, ((0, 1),)))
