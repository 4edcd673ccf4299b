"""The executor ``ray``: samples run in processes of a Ray cluster, on this machine or on many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from simulator import registry
from simulator.cluster.asking import look
from simulator.cluster.connection import Needs, connect, told
from simulator.cluster.crew import Crew, turn
from simulator.cluster.groups import Far, Gathered, Group, groups_of
from simulator.cluster.messages import Judged, Node, Stopped, Work
from simulator.cluster.parcel import pack
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.modality import Feed, Modality
from simulator.model.artifact import Artifact
from simulator.pipeline.adapted import Adapted
from simulator.pipeline.executor import (
    DEFAULT_MEMORY,
    Done,
    Executor,
    done_of_arms,
    outcomes_of,
    reasons,
)
from simulator.pipeline.look import Looked
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened, StageError, Walk, Watch
from simulator.profile.implementations import Choice
from simulator.spent import Work as Spent
from simulator.spent import spending


class RayExecutor(Executor):
    """Processes of a Ray cluster; each takes one sample at a time and opens its own runtimes.

    Args:
        modality: reads the samples.
        runtimes: of this process, where some samples are run again for pictures.
        workers: how many samples are processed at once.
        memory: not used: a worker has one sample at a time.
        place: ``HOST:PORT`` or ``//HOST:PORT`` of a cluster; empty: one is started here.

    Raises:
        MissingLibrary: Ray is not installed.
        UserError: the cluster cannot be joined.
    """

    name: ClassVar[str] = "ray"
    placed: ClassVar[bool] = True
    finds: ClassVar[bool] = True

    def __init__(
        self,
        modality: Modality,
        runtimes: RuntimePool,
        workers: int,
        memory: int = DEFAULT_MEMORY,
        place: str = "",
    ) -> None:
        super().__init__(modality, runtimes, workers, memory, place)
        self._cluster = connect(place)
        self._crews: dict[Needs, Crew] = {}
        self._ran: dict[str, dict[Node, None]] = defaultdict(dict)

    def run(
        self, plan: Plan, items: Iterable[Item], watch: Watch | None = None
    ) -> Generator[Done, None, None]:
        """Run every arm on every sample.

        Workers call a copy of *watch*, without what it knows of other samples; where the arms run
        on different workers, it is called here.
        """
        every = items if isinstance(items, Sequence) else tuple(items)
        groups = groups_of(plan)
        apart = _is_apart(groups)
        crews = self._begun(groups, every, None if apart else watch)
        far = Far(plan, groups, crews, self.context)
        for item in every:
            with self._cluster.reached():
                found = _awaited(crews)
            if apart:
                yield _gathered(far, item, found, watch)
            else:
                yield _done(item, len(plan.arms), found[0])

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
        crew = self._crew(needs, f"runtime {choice.backend.name}")
        found: Looked = look(crew, pack((choice, artifact, tuple(feeds), size)))
        return found

    def close(self) -> None:
        """End the workers; the connection stays until the process ends."""
        for crew in self._crews.values():
            crew.close()
        self._crews.clear()

    def described(self) -> dict[str, Any]:
        """Return the name, the address, and for each stack the nodes where samples of it ran."""
        nodes = {
            stack: [asdict(one) | {"versions": dict(one.versions)} for one in found]
            for stack, found in self._ran.items()
        }
        return super().described() | {"nodes": nodes}

    def _begun(
        self, groups: Sequence[Group], items: Sequence[Item], watch: Watch | None
    ) -> list[Crew]:
        """The crews of some arms, with their plan and the samples."""
        return [self._begin(group, items, watch, _is_apart(groups)) for group in groups]

    def _crew(self, needs: Needs, who: str) -> Crew:
        """The workers with some resources."""
        if needs not in self._crews:
            isolate = self.runtimes.isolation.when
            self._crews[needs] = Crew(self._cluster, who, needs, self.workers, isolate)
        return self._crews[needs]

    def _begin(self, group: Group, items: Sequence[Item], watch: Watch | None, apart: bool) -> Crew:
        for node in group.plan.nodes:
            if isinstance(node.recipe, Adapted):
                raise UserError(
                    f"--executor ray: {group.who}: the network adapts to the samples in their "
                    "order, which needs one process; use --executor local"
                )
        crew = self._crew(group.needs, group.who)
        stacks = tuple(dict.fromkeys(arm.stack for arm in group.plan.arms))
        crew.ran = lambda node: [self._ran[stack].setdefault(node) for stack in stacks]
        work = Work(group.plan, self.modality, watch, apart, _versions(group.plan))
        crew.begin(work, items)
        return crew


def _is_apart(groups: Sequence[Group]) -> bool:
    """Whether arms run on workers with resources of their own, and nothing of them runs here."""
    return len(groups) > 1 or bool(groups[0].needs)


def _awaited(crews: Sequence[Crew]) -> list[Any]:
    """What each crew has of the next sample; they go on with others."""
    while not all(crew.chunks.ready for crew in crews):
        for crew in crews:
            crew.fill()
        with spending(Spent.ELSEWHERE):
            turn(crews)
    found = [crew.chunks.pop() for crew in crews]
    for crew in crews:
        crew.fill()
    return found


def _done(item: Item, arms: int, found: Stopped | Judged) -> Done:
    if isinstance(found, Stopped):
        return Done(item, (), str(found.error()))
    return done_of_arms(item, arms, found.outcomes, found.failed, found.seen)


def _gathered(far: Far, item: Item, found: Sequence[Any], watch: Watch | None) -> Done:
    try:
        walk = Gathered(far, item, found)
        outcomes = outcomes_of(walk)
        seen = watch(walk, outcomes) if watch else None
        return done_of_arms(item, len(far.plan.arms), outcomes, reasons(walk), seen)
    except StageError as error:
        return Done(item, (), str(error))


def _versions(plan: Plan) -> Mapping[str, Mapping[str, str | None]]:
    """The versions of the libraries that the arms use, by backend."""
    used = sorted({index for path in plan.paths for index in path})
    recipes = (plan.nodes[index].recipe for index in used)
    choices = (getattr(getattr(one, "infer", one), "choice", None) for one in recipes)
    return {choice.backend.name: registry.versions(choice.backend) for choice in choices if choice}
