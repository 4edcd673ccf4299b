"""Executors run a plan on samples, and do jobs; :mod:`simulator.pipeline.local` has ours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from simulator.contract.recipe import Context
from simulator.data.folder import Item
from simulator.entry_points import Table
from simulator.errors import SampleError, UserError
from simulator.modalities.modality import Feed, Modality
from simulator.model.artifact import Artifact
from simulator.pipeline.jobs import J, Job, JobStep, R, Read
from simulator.pipeline.look import Looked, look
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.threads import in_order
from simulator.pipeline.walk import Opened, StageError, Walk, Watch, context_of
from simulator.profile.implementations import Choice
from simulator.spent import Work, spending

DEFAULT_MEMORY = 2**31
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one arm for one sample: the content of a cell's record.

    Attributes:
        record: what the task stores of the prediction; see :mod:`simulator.tasks.task`.
        digest: BLAKE2b of the bytes of the network's outputs, in hexadecimal.
        ns: wall-clock time of each stage in nanoseconds, by stage. The time of a shared stage is
            given to each stack that uses it.
    """

    record: Mapping[str, Any]
    digest: str
    ns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SampleResult:
    """A sample that is finished: it went through every arm, or it was left out.

    Attributes:
        item: the sample.
        outcomes: one per arm, in the plan's order; empty unless it went through every arm.
        skipped: the stage that failed first and why; None if the sample went through every arm.
        seen: what the watch function returned for this sample; None without one.
        failed: the arms that failed, each with the stage and why, where others have an answer;
            empty where none failed, and where none has an answer.
        partly: where some arms failed, the outcomes of the others, by the arm; without those whose
            reference failed.
    """

    item: Item
    outcomes: tuple[Outcome, ...]
    skipped: str | None = None
    seen: Any = None
    failed: Mapping[int, str] = field(default_factory=dict)
    partly: Mapping[int, Outcome] = field(default_factory=dict)

    def part(self, arms: Sequence[int]) -> SampleResult:
        """Return what came of some of the arms, as if the plan had no others."""
        if self.skipped is None:
            return replace(self, outcomes=tuple(self.outcomes[arm] for arm in arms))
        own = {at: self.failed[arm] for at, arm in enumerate(arms) if arm in self.failed}
        if not own and self.failed:
            return SampleResult(self.item, tuple(self.partly[arm] for arm in arms), None, self.seen)
        why = next(iter(own.values()), self.skipped)
        return SampleResult(self.item, (), why, self.seen, own if len(own) < len(arms) else {})


class Executor(ABC):
    """Runs a plan on samples. Classes are found by entry point, group ``simulator.executors``.

    Args:
        modality: reads the samples.
        runtimes: opened runtimes of this process; the caller closes them.
        workers: how many samples are processed at once.
        memory: bytes that these samples may need together, see :meth:`Plan.memory`.
        place: where it runs: what stands behind its name and a colon; empty for most.

    Attributes:
        name: its name in the table of entry points.
    """

    name: ClassVar[str] = ""
    placed: ClassVar[bool] = False
    """Whether it can be told where to run."""
    finds: ClassVar[bool] = False
    """Whether it finds machines with the resources that a stack needs."""

    def __init__(
        self,
        modality: Modality,
        runtimes: RuntimePool,
        workers: int,
        memory: int = DEFAULT_MEMORY,
        place: str = "",
    ) -> None:
        self.modality, self.runtimes = modality, runtimes
        self.workers, self.memory = workers, memory
        self.place = place
        self._begin()

    def _begin(self) -> None:
        """Find what samples run on; called by the constructor.

        Raises:
            MissingLibrary: what it needs is not installed.
            UserError: there is no such place.
        """
        return

    @abstractmethod
    def run(
        self, plan: Plan, items: Iterable[Item], watch: Watch | None = None
    ) -> Iterator[SampleResult]:
        """Run every arm on every sample.

        Args:
            plan: the DAG.
            items: the samples.
            watch: called for every sample that went through all arms, in the process that ran it.

        Yields:
            One result per sample, in the order of *items*, whatever the number of workers.
        """

    def map(
        self, step: JobStep[J, R], jobs: Sequence[Job[J]]
    ) -> Generator[R | StageError, None, None]:
        """Do jobs, in threads of this process.

        Args:
            step: what is done in each.
            jobs: likely to read the same samples as those next to them.

        Yields:
            One result per job, in the order of *jobs*; :class:`StageError` where a job has ended
            every process that tried it.
        """
        do = step.open(self.runtimes)

        def one(job: Job[J]) -> R:
            with spending(Work.STEPS):
                return do(job.argument, self.reader(job.samples))

        return in_order(one, jobs, self.workers, "job")

    @property
    def servers(self) -> int:
        """How many processes :meth:`everywhere` has; 0: there is only this one."""
        return 0

    def everywhere(self, step: JobStep[J, R], job: Job[J]) -> list[R]:
        """Do one job in every server at the same time; those of a step are the same each time."""
        raise NotImplementedError(f"{self.name} has one process")

    def walks(self, plan: Plan) -> Callable[[Item], Walk]:
        """Return what runs every arm on a single sample, after a run.

        It raises :class:`StageError` where a stage fails.
        """
        opened = self.open(plan)
        return lambda item: opened.walk(self.context(item))

    def look(
        self,
        choice: Choice,
        artifact: Artifact,
        feeds: Sequence[Feed],
        needs: tuple[tuple[str, float], ...],
        size: int,
    ) -> Looked:
        """Open a runtime where it will run; see :func:`simulator.pipeline.look.look`.

        Args:
            choice: the runtime.
            artifact: the file that it opens.
            feeds: the inputs of one inference.
            needs: the resources that it needs; only an executor that :attr:`finds` looks for them.
            size: samples of an inference.
        """
        return look(self.runtimes, choice, artifact, feeds, size)

    def close(self) -> None:
        """End what it has started; a run that was not finished is lost."""
        return

    def described(self) -> dict[str, object]:
        """Return what the manifest of a run says of it: its name, where it runs."""
        return {"name": self.name, "place": self.place}

    def open(self, plan: Plan, timed: bool = False) -> Opened:
        """Open a plan's recipes in this process.

        Args:
            plan: the DAG.
            timed: its latency counts, so that no file is decoded in another process.
        """
        return Opened(plan, self.runtimes.here() if timed else self.runtimes)

    def context(self, item: Item) -> Context:
        """Read a sample.

        Raises:
            StageError: it cannot be read; the run goes on without it.
        """
        return context_of(self.modality, item)

    def reader(self, samples: Iterable[Item]) -> Read:
        """Return what reads these samples by their names."""
        every = {item.name: item for item in samples}
        return lambda name: self.context(every[name])


def watched(opened: Opened, item: Item, context: Context, watch: Watch | None) -> SampleResult:
    """Run every arm on one sample; see :func:`result_of`.

    Raises:
        StageError: no arm has an answer, or the sample's ground truth cannot be used.
    """
    return result_of(opened.walk(context), item, watch)


def result_of(walk: Walk, item: Item, watch: Watch | None) -> SampleResult:
    """Judge the answers of a walk, and call *watch* with the outcomes.

    Raises:
        StageError: the sample's ground truth cannot be used.
    """
    outcomes = outcomes_of(walk)
    seen = watch(walk, outcomes) if watch else None
    failed = {arm: str(error) for arm, error in walk.failed.items()}
    if not failed:
        return SampleResult(
            item, tuple(outcomes[arm] for arm in range(len(walk.plan.arms))), None, seen
        )
    return SampleResult(item, (), next(iter(failed.values())), seen, failed, outcomes)


def outcomes_of(walk: Walk) -> dict[int, Outcome]:
    """Return the result for a sample of every arm that has one, by the arm.

    Raises:
        StageError: the sample's ground truth cannot be used.
    """
    plan, failed = walk.plan, walk.failed
    answers = {arm: one for arm, one in enumerate(walk.answers()) if arm not in failed}
    predictions = {arm: answer.prediction for arm, answer in answers.items()}
    try:
        records = plan.judge(predictions, walk.context.truth, walk.context.source)
    except SampleError as error:
        raise StageError("truth", error) from error
    return {
        arm: Outcome(record, answers[arm].digest, walk.times(plan.paths[arm]))
        for arm, record in sorted(records.items())
    }


def pick(outcomes: Mapping[int, Outcome], arms: Sequence[int]) -> list[Outcome] | None:
    """Return the results of some arms; None where one of them has none."""
    found = [outcomes[arm] for arm in arms if arm in outcomes]
    return found if len(found) == len(arms) else None


def executor(
    written: str, modality: Modality, runtimes: RuntimePool, workers: int, memory: int
) -> Executor:
    """Return an executor by its name, or ``NAME:PLACE``.

    Raises:
        UserError: there is none of this name, or it is told a place and has none.
    """
    name, colon, place = written.partition(":")
    kind = EXECUTORS[name]
    if colon and (not kind.placed or not place):
        raise UserError(
            f"--executor {written}: {name} "
            + ("takes an address behind the colon" if kind.placed else "takes no address")
        )
    return kind(modality, runtimes, workers, memory, *([place] if place else []))


EXECUTORS: Table[type[Executor]] = Table(
    "simulator.executors",
    "executor",
    lambda found: isinstance(found, type) and issubclass(found, Executor),
)
