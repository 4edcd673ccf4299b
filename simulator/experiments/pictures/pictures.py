"""What a modality, or a task whose answers are seen or heard, shows of a pair's samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from simulator.contract import U8
from simulator.contract.recipe import Chain
from simulator.contract.stage import named
from simulator.data.folder import Item
from simulator.experiments.session import Session
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.store import RunWriter


@dataclass(frozen=True, slots=True)
class ShownPair:
    """The pair whose samples are shown.

    Attributes:
        session: the model and the samples.
        stacks: train and deploy.
        arms: their indices in the plan.
        differing: the axes on which they differ.
        prefix: of the names of its chains in the plan.
        opened: closes temporary files when the run ends.
        quick: whether no stack is made with one axis alone.
    """

    session: Session
    stacks: Sequence[Stack]
    arms: tuple[int, int]
    differing: Sequence[str]
    prefix: str
    opened: ExitStack
    quick: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """A run whose samples are all through.

    Attributes:
        session: the model and the samples.
        ran: the samples that went through.
        seen: what :meth:`Pictures.see` returned, by sample.
        summary: of the run; entries are added in place.
        run: files are written to it.
    """

    session: Session
    ran: Sequence[Item]
    seen: Mapping[str, Any]
    summary: dict[str, Any]
    run: RunWriter

    def warn(self, words: str) -> None:
        """Add to the summary that pictures are missing."""
        self.summary["warnings"].append(Notice(Kind.MISSING_PICTURE, words))


class Pictures(ABC):
    """One kind of pictures of a pair's samples; plain data, so that it can be pickled.

    The function that plans them takes a :class:`ShownPair` and returns None where there is nothing
    to show. A modality or a task names it in ``pictures``.

    Attributes:
        name: of the observer; two kinds in one run have different names.
        first: of how many first samples data are kept.
        worst: of how many of the worst flips data are kept.
        strips: whether of clips the frames around them are shown, too.
    """

    name: ClassVar[str]
    first: ClassVar[int] = 0
    worst: ClassVar[int] = 0
    strips: ClassVar[bool] = False

    def asides(self) -> dict[str, Chain]:
        """Return the chains that are needed besides the arms, by their names in the plan."""
        return {}

    @abstractmethod
    def see(self, walk: Walk) -> Any:
        """Return the data of one sample, None where there are none; it runs in any process."""

    def lost(self, why: str) -> Any:
        """Return what is shown of a sample that cannot be read again; None: nothing."""
        return None

    @abstractmethod
    def draw(self, finished: Finished) -> None:
        """Write the files, and add them to the summary."""


def canvas(session: Session, stack: Stack, items: Iterable[Item]) -> Iterator[U8] | None:
    """Return what answers of a stack are drawn on, one by one; None where none is drawn."""
    made = session.card.modality.canvas
    found: Iterator[U8] | None = named(made)(session, stack, items) if made else None
    return found


def pictures_of(pair: ShownPair) -> tuple[Pictures, ...]:
    """Plan what is shown of a pair: what its task names, or else its modality."""
    card = pair.session.card
    planned = (named(plan)(pair) for plan in card.task.pictures or card.modality.pictures)
    return tuple(one for one in planned if one is not None)
