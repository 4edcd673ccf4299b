"""Questions to a worker beside its chunks: of a runtime, and of single samples."""

from __future__ import annotations

from typing import Any

from simulator.cluster.chunks import DEATHS
from simulator.cluster.crew import Crew, killed
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
            lacking = crew.ray.get(member.actor.missing.remote(parcel))
            sent = {digest: content(units[digest]) for digest in lacking}
            found = crew.ray.get(member.actor.look.remote(parcel, sent))
        except crew.ray.exceptions.RayActorError:
            crew.bury(member)
            continue
        if isinstance(found, Failed):
            raise found.error(member.place)
        return found
    raise UserError(f"{crew.who}: killed its worker {DEATHS} times while it was opened")


def again(crew: Crew, item: Item) -> Raw:
    """Run the arms on a sample.

    Raises:
        StageError: a stage failed, or its worker dies of it.
    """
    found: Raw = _ask(crew, item, "again")
    return found


def aside(crew: Crew, item: Item, name: str) -> Any:
    """Return the value at the end of an aside for a sample.

    Raises:
        StageError: a stage failed, or its worker dies of it.
    """
    return _ask(crew, item, "aside", name)


def _ask(crew: Crew, item: Item, name: str, *given: Any) -> Any:
    mates, ended = crew.mates.of([item]), None
    for _ in range(DEATHS):
        member = crew.ready()
        call = getattr(member.actor, name)
        try:
            found = crew.ray.get(call.remote(*_both(member, item, mates), *given))
            if isinstance(found, Lacking):
                member.blind = True
                found = crew.ray.get(call.remote(*_both(member, item, mates), *given))
        except crew.ray.exceptions.RayActorError as error:
            crew.bury(member)
            ended = error
            continue
        if isinstance(found, Failed):
            raise found.error(member.place)
        if isinstance(found, Stopped):
            raise found.error()
        crew.heard(member)
        return found
    raise killed(ended).error()


def _both(member: Any, item: Item, mates: list[Item]) -> tuple[Any, Any]:
    (sample,) = member.samples([item])
    return sample, member.samples(mates)
