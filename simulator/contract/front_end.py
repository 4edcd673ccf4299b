"""The contract of front ends that are not ours: code, programs, dumps of a device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from simulator.contract.backend import Admits, AtLeast, Implementation, Implied, Options, Text
from simulator.contract.frame import Array
from simulator.errors import Unsupported

MOST = 2**30
"""Bytes of what may be made of a sample: no network takes more, and it is held in memory."""


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A sample as it lies in a file.

    Attributes:
        name: the path below the data folder, for messages.
        path: the file; None where a sample has none of its own: it is a part of an archive, or a
            condition changed it. Then its bytes are in *data*.
        data: the bytes, where there is no *path*.
    """

    name: str
    path: Path | None
    data: bytes | None


class FrontEnd(Implementation):
    """All steps from a sample's file to the network's input, done by what is not ours.

    It runs in worker processes of its own, as many as samples are processed at once.

    Attributes:
        runs_code: whether it runs code that the profile names; then a document that others wrote
            must not, see :mod:`simulator.command.allowed`.
    """

    runs_code: ClassVar[bool] = False

    @abstractmethod
    def tensors(self, sample: SampleFile) -> Array | Mapping[str, Array]:
        """Return the network's input of a sample, as it was made: one array, or several by name.

        Raises:
            SampleError: it cannot be made.
        """

    @classmethod
    def called(cls, options: Options) -> str:
        """Return what messages call it."""
        return cls.__name__

    def gives(self, _: None = None) -> str:
        """Return what it says that it gives: ``outputs`` or ``answer``; empty: the input."""
        return ""

    def several(self, samples: Sequence[SampleFile]) -> list[Array | Mapping[str, Array]]:
        """Return the inputs of samples that it takes at once, see :meth:`at_once`."""
        return [self.tensors(sample) for sample in samples]

    @classmethod
    def at_once(cls, options: Options) -> int:
        """Return how many samples it takes at once."""
        return 1

    @classmethod
    def python(cls, options: Options) -> str | None:
        """Return the interpreter of its worker; None: ours."""
        return None

    @classmethod
    def seconds(cls, options: Options) -> float | None:
        """Return how long a call may take; None: as for every worker."""
        return None


class OwnRuntime:
    """All of a stack up to the network's outputs or to the answer, done by what is not ours.

    The engine runs it as the front end of the same backend and options.
    """

    takes: ClassVar[str] = "sample"
    runs_code: ClassVar[bool] = False
    OPTIONS: ClassVar[Mapping[str, Admits]] = {
        "gives": ("outputs", "answer"),
        "device": Text(),
        "threads": AtLeast(1),
        "storage": Implied(Text(), "fp32"),
        "compute": Implied(Text(), "fp32"),
    }

    def __init__(self, options: Options) -> None:
        raise Unsupported("it runs samples, and no model file")


def array_words(array: Array) -> str:
    """Return an array's type and shape, for messages; and the range of one with integers."""
    shape = "x".join(map(str, array.shape)) or "a single value"
    if array.dtype.kind in "iu" and array.size:
        return f"{array.dtype} {shape} of {array.min()} to {array.max()}"
    return f"{array.dtype} {shape}"
