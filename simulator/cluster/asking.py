"""Questions to a worker beside its chunks: of a runtime, and of single samples."""

from __future__ import annotations

from typing import Any

from simulator.cluster.chunks import DEATHS
from simulator.cluster.crew import Crew
from simulator.cluster.member import Member
from simulator.cluster.messages import Failed, Lacking, Raw, Stopped
from simulator.cluster.parcel import Parcel, content
from simulator.data.folder import Item
from simulator.errors import UserError


def look(crew: Crew, parcel: Parcel) -> Any:
    """Return what a worker says of a runtime that it opens.

    Args:
        crew: of the worker.
        parcel: a choice, its artifact, the card's inputs and the samples of an inference.

    Raises:
        UserError: the worker refuses it, or dies of it.
    """
    units = {unit.digest: unit for unit in parcel.units}
    for _ in range(DEATHS):
        member = crew.settled()
        try:
            with crew.reached():
                lacking = crew.ray.get(member.actor.missing.remote(parcel))
                sent = {digest: content(units[digest]) for digest in lacking}
                found = crew.ray.get(member.actor.look.remote(parcel, sent))
        except crew.ray.exceptions.RayTaskError:
            raise
        except crew.ray.exceptions.RayError:
            crew.bury(member)
            continue
        if isinstance(found, Failed):
            raise found.error(member.place)
        return found
    raise UserError(f"{crew.who}: killed its worker {DEATHS} times while it was opened")


def again(crew: Crew, item: Item) -> Raw | Stopped:
    """Run the arms on a sample."""
    found: Raw | Stopped = _ask(crew, item, "again")
    return found


def aside(crew: Crew, item: Item, name: str) -> Any:
    """Return the value at the end of an aside for a sample.

    Raises:
        StageError: a stage failed, or its worker dies of it.
    """
    found = _ask(crew, item, "aside", name)
    if isinstance(found, Stopped):
        raise found.error()
    return found


def _ask(crew: Crew, item: Item, name: str, *given: Any) -> Any:
    """Call a worker's method with a sample, and wait for it."""
    deaths = 0
    while True:
        member = crew.ready()
        try:
            with crew.reached():
                found = _answer(crew, member, item, name, given)
        except crew.ray.exceptions.RayTaskError:
            raise
        except crew.ray.exceptions.RayError as error:
            crew.bury(member)
            deaths += 1
            if deaths == DEATHS:
                return crew.killed(error)
            continue
        if isinstance(found, Failed):
            raise found.error(member.place)
        if not isinstance(found, Stopped):
            crew.heard(member)
        return found


def _answer(crew: Crew, member: Member, item: Item, name: str, given: tuple[Any, ...]) -> Any:
    """The answer of a worker; where it cannot read a file, that is sent."""
    method, mates = getattr(member.actor, name), crew.mates.of([item])
    while True:
        (sample,) = member.samples([item])
        found = crew.ray.get(method.remote(sample, member.samples(mates), *given))
        if not isinstance(found, Lacking) or member.blind:
            return found
        member.blind = True
