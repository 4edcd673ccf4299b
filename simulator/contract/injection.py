"""Faults in a network while it runs: a bit of a stored weight, or of a value between two layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from pathlib import Path

from simulator.closing import Closing
from simulator.contract.backend import Options
from simulator.contract.bits import WIDTHS, Kind
from simulator.contract.frame import Array


class Target(StrEnum):
    """What of a layer a fault hits."""

    WEIGHTS = "weights"
    BIASES = "biases"
    NEURONS = "neurons"
    INPUT = "input"


@dataclass(frozen=True, slots=True)
class Site:
    """One tensor that a fault may hit, as the artifact has it when it runs.

    Attributes:
        layer: the name of the node, as the artifact or the runtime has it; unique with *target*.
        operator: its kind, for example ``Conv``; ``Input`` for the network's input.
        target: what of the layer it is.
        storage: the type of its elements, a key of :data:`simulator.contract.bits.WIDTHS`.
        shape: of the tensor; of neurons and of the input with their batch of 1.
    """

    layer: str
    operator: str
    target: Target
    storage: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many elements the tensor has."""
        return prod(self.shape)

    @property
    def bits(self) -> int:
        """How many bits an element has."""
        return WIDTHS[self.storage]


@dataclass(frozen=True, slots=True)
class BitFault:
    """What happens to one bit of one element of a site.

    Attributes:
        index: of the element in the flattened tensor.
        bit: from 0, the least significant one.
        kind: what happens to it.
        site: which one of the sites that a :class:`Suffix` starts from.
    """

    index: int
    bit: int
    kind: Kind = Kind.FLIP
    site: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Faulty:
    """One inference with faults.

    Attributes:
        outputs: by the runtime's names.
        finite: whether all values that were looked at between layers are finite; the outputs are
            not among them.
        changes: the hit elements before and after, in the order of the faults.
    """

    outputs: Mapping[str, Array]
    finite: bool
    changes: tuple[tuple[float, float], ...]


Trace = Mapping[str, Array]
"""What an inference without faults computed, as far as faulty ones need it."""


class Suffix(Closing, ABC):
    """The part of a network from one or several sites on; one thread uses it at a time."""

    @abstractmethod
    def run(self, trace: Trace, faults: Sequence[BitFault] = ()) -> Faulty:
        """Run the rest of the network with faults at its sites; the next call has none of them.

        A site that follows another one is hit after the faults there have reached it.

        Without faults it gives the outputs that faulty ones are compared with: those of the same
        code on the same values.

        Args:
            trace: of a sample.
            faults: at these sites; those of one site are applied one after the other.
        """


class Injector(ABC):
    """Puts faults into one artifact as its runtime runs it.

    A trace is made once a sample, and only what follows the hit sites is run again for each fault.
    :meth:`trace` and the suffixes of different sites may be used by several threads at once.

    Args:
        artifact: the file that the runtime opens.
        options: of the runtime, as :class:`simulator.contract.Runtime` gets them.

    Attributes:
        method: how faults are put in, in one line, with what differs from the runtime's own way.
        tap: where NaN and Inf are looked for, in one line.
        sites: in the order in which they are computed.

    Raises:
        Unsupported: this artifact cannot be reached; the message says why.
    """

    method: str
    tap: str
    sites: tuple[Site, ...]

    def __init__(self, artifact: Path, options: Options) -> None:
        self.artifact, self.options = artifact, options
        self._open(artifact)

    @abstractmethod
    def trace(self, feeds: Mapping[str, Array]) -> Trace:
        """Run the network once without faults and keep what the suffixes need.

        Args:
            feeds: one array per input by the runtime's name, of one sample.
        """

    @abstractmethod
    def golden(self, trace: Trace) -> Faulty:
        """Return what a trace says of the inference without faults."""

    @abstractmethod
    def stored(self, site: Site) -> Array:
        """Return a copy of the weights or biases of a site.

        Raises:
            ValueError: it is of neurons or of the input, which are stored nowhere.
        """

    @abstractmethod
    def at(self, *sites: Site) -> Suffix:
        """Open the rest of the network from sites on.

        Args:
            sites: at least one, in any order, each once; :attr:`BitFault.site` counts them.
        """

    @abstractmethod
    def close(self) -> None:
        """Free what it holds; closing twice is allowed."""

    @abstractmethod
    def _open(self, artifact: Path) -> None: ...
