"""A worker as the driver sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from simulator.cluster.chunks import Chunk
from simulator.cluster.messages import Node, Sample, sample_of, with_data
from simulator.data.folder import Item


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a worker has not answered.

    Attributes:
        ref: what is awaited.
        name: of the method of :class:`simulator.cluster.hand.Hand`.
        chunk: the samples of ``run``.
    """

    ref: Any
    name: str
    chunk: Chunk = range(0)


@dataclass(slots=True)
class Member:
    """A worker of a crew; it takes its calls in order.

    Attributes:
        actor: Ray's handle.
        node: where it runs; None until it has said so.
        opened: whether it has opened the parcel of the crew.
        blind: whether it cannot read the samples' files, so that their bytes are sent.
        queue: its calls, in order.
    """

    actor: Any
    node: Node | None = None
    opened: bool = False
    blind: bool = False
    queue: deque[Call] = field(default_factory=deque)

    @property
    def place(self) -> str:
        """The name of its machine, for messages."""
        return self.node.host if self.node else "a node of the cluster"

    def call(self, name: str, *given: Any, chunk: Chunk = range(0)) -> None:
        """Call a method, and queue what is awaited."""
        self.queue.append(Call(getattr(self.actor, name).remote(*given), name, chunk))

    def samples(self, items: Iterable[Item]) -> list[Sample]:
        """Return samples as this worker needs them."""
        found = map(sample_of, items)
        return [with_data(sample) for sample in found] if self.blind else list(found)
