"""The executor ``ray``: samples run in processes of a Ray cluster, on this machine or on many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import ClassVar

from simulator import registry
from simulator.cluster.connection import Needs, connect, told
from simulator.cluster.groups import Far, Gathered, Group, groups_of, needs_of
from simulator.cluster.messages import ArmAnswers, JobWork, Node, Work
from simulator.cluster.payload import pack
from simulator.cluster.pool import WorkerPool
from simulator.contract.recipe import Recipe
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.modality import Feed
from simulator.model.artifact import Artifact
from simulator.pipeline.adapted import Adapted
from simulator.pipeline.executor import Executor, SampleResult, result_of
from simulator.pipeline.jobs import J, Job, JobStep, R
from simulator.pipeline.look import Looked
from simulator.pipeline.plan import Plan
from simulator.pipeline.walk import Opened, StageError, Walk, Watch
from simulator.profile.implementations import Choice
from simulator.spent import Work as Spent
from simulator.spent import spending


class RayExecutor(Executor):
    """Processes of a Ray cluster; each takes one sample at a time and opens its own runtimes.

    Some samples are run again in this process, for pictures. *memory* is not used; *place* is
    ``HOST:PORT`` or ``//HOST:PORT`` of a cluster, or empty: one is started here.
    """

    name: ClassVar[str] = "ray"
    placed: ClassVar[bool] = True
    finds: ClassVar[bool] = True

    def _begin(self) -> None:
        self._cluster = connect(self.place)
        self._pools: dict[Needs, WorkerPool] = {}
        self._ran: dict[str, dict[Node, None]] = defaultdict(dict)

    def run(
        self, plan: Plan, items: Iterable[Item], watch: Watch | None = None
    ) -> Generator[SampleResult, None, None]:
        """Run every arm on every sample.

        Workers call a copy of *watch*, without what it knows of other samples; where the arms run
        on different workers, it is called here.
        """
        every = items if isinstance(items, Sequence) else tuple(items)
        groups = groups_of(plan)
        apart = _is_apart(groups)
        pools = self._begun(groups, every, None if apart else watch)
        far = Far(plan, groups, pools, self.context)
        try:
            for item in every:
                with self._cluster.reached(), spending(Spent.ELSEWHERE):
                    found = [pool.chunks.pop() for pool in pools]
                yield _gathered(far, item, found, watch) if apart else _done(item, found[0])
        finally:
            for pool in pools:
                pool.chunks.close()

    def map(
        self, step: JobStep[J, R], jobs: Sequence[Job[J]]
    ) -> Generator[R | StageError, None, None]:
        """Do jobs in workers that have the resources of the step's stack."""
        pool = self._pool(needs_of(step.recipes), step.who)
        pool.ran = partial(self._noted, (step.who,))
        pool.begin_jobs(JobWork(step, self.modality, _versions(step.recipes)), jobs)
        try:
            for _ in jobs:
                with self._cluster.reached(), spending(Spent.ELSEWHERE):
                    found = pool.chunks.pop()
                yield found
        finally:
            pool.chunks.close()

    @property
    def servers(self) -> int:
        """As many as the cluster has room for, at most one for each worker."""
        return self.workers

    def everywhere(self, step: JobStep[J, R], job: Job[J]) -> list[R]:
        """Do one job in every server at the same time."""
        pool = self._pool(needs_of(step.recipes), step.who)
        pool.ran = partial(self._noted, (step.who,))
        with self._cluster.reached(), spending(Spent.ELSEWHERE):
            return pool.everywhere(
                JobWork(step, self.modality, _versions(step.recipes)), job, self.servers
            )

    def walks(self, plan: Plan) -> Callable[[Item], Walk]:
        """Return what runs every arm on a sample: here, or where its resources are."""
        groups = groups_of(plan)
        if not _is_apart(groups):
            return super().walks(plan)

        return Far(plan, groups, self._begun(groups, (), None), self.context).walk

    def open(self, plan: Plan, timed: bool = False) -> Opened:
        """Open a plan's recipes in this process.

        Raises:
            UserError: a stack of it needs the resources of another machine.
        """
        needing = [group for group in groups_of(plan) if group.needs]
        if needing:
            raise UserError(
                f"{needing[0].who} needs {told(needing[0].needs)}: runtime.resources; this command "
                "runs stacks in its own process: start it on that machine, with --executor local"
            )
        return super().open(plan, timed)

    def look(
        self, choice: Choice, artifact: Artifact, feeds: Sequence[Feed], needs: Needs, size: int
    ) -> Looked:
        """Open a runtime on a node that has what it needs.

        Raises:
            UserError: no node has it, or the runtime cannot be opened there.
        """
        if not needs:
            return super().look(choice, artifact, feeds, needs, size)
        pool = self._pool(needs, f"runtime {choice.backend.name}")
        with self._cluster.reached():
            found: Looked = pool.probe(pack((choice, artifact, tuple(feeds), size)))
        return found

    def close(self) -> None:
        """End the workers; the connection stays until the process ends."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def described(self) -> dict[str, object]:
        """Return the name, the address, and for each stack the nodes where samples of it ran."""
        nodes = {
            stack: [asdict(node) | {"versions": dict(node.versions)} for node in found]
            for stack, found in self._ran.items()
        }
        return super().described() | {"nodes": nodes}

    def _begun(
        self, groups: Sequence[Group], items: Sequence[Item], watch: Watch | None
    ) -> list[WorkerPool]:
        """The workers of some arms, with their plan and the samples."""
        for group in groups:
            if any(isinstance(node.recipe, Adapted) for node in group.plan.nodes):
                raise UserError(
                    f"--executor ray: {group.who}: the network adapts to the samples in their "
                    "order, which needs one process; use --executor local"
                )
        pools = [self._pool(group.needs, group.who) for group in groups]
        for group, pool in zip(groups, pools, strict=True):
            stacks = tuple(dict.fromkeys(arm.stack for arm in group.plan.arms))
            pool.ran = partial(self._noted, stacks)
            apart, versions = _is_apart(groups), _versions(_used(group.plan))
            pool.begin(Work(group.plan, self.modality, watch, apart, versions), items)
        return pools

    def _pool(self, needs: Needs, who: str) -> WorkerPool:
        """The workers with some resources."""
        if needs not in self._pools:
            isolate = self.runtimes.isolation.when
            self._pools[needs] = WorkerPool(self._cluster, who, needs, self.workers, isolate)
        return self._pools[needs]

    def _noted(self, stacks: Iterable[str], node: Node) -> None:
        for stack in stacks:
            self._ran[stack].setdefault(node)


def _is_apart(groups: Sequence[Group]) -> bool:
    """Whether arms run on workers with resources of their own, and nothing of them runs here."""
    return len(groups) > 1 or bool(groups[0].needs)


def _done(item: Item, found: SampleResult | StageError) -> SampleResult:
    if isinstance(found, StageError):
        return SampleResult(item, (), str(found))
    return replace(found, item=item)


def _gathered(
    far: Far, item: Item, found: Sequence[ArmAnswers | StageError], watch: Watch | None
) -> SampleResult:
    try:
        return result_of(Gathered(far, item, found), item, watch)
    except StageError as error:
        return SampleResult(item, (), str(error))


def _used(plan: Plan) -> list[Recipe]:
    """The recipes of a plan's arms."""
    used = sorted({index for path in plan.paths for index in path})
    return [plan.nodes[index].recipe for index in used]


def _versions(recipes: Iterable[Recipe]) -> Mapping[str, Mapping[str, str | None]]:
    """The versions of the libraries that recipes use, by backend."""
    choices = (getattr(getattr(recipe, "infer", recipe), "choice", None) for recipe in recipes)
    return {choice.backend.name: registry.versions(choice.backend) for choice in choices if choice}
