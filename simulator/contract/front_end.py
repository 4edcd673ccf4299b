"""The contract of front ends that are not ours: code, programs, dumps of a device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from simulator.contract.backend import Implementation, Options
from simulator.contract.frame import Array


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
            must not, see :mod:`simulator.profile.trust`.
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

    @classmethod
    def python(cls, options: Options) -> str | None:
        """Return the interpreter of its worker; None: ours."""
        return None

    @classmethod
    def seconds(cls, options: Options) -> float | None:
        """Return how long a call may take; None: as for every worker."""
        return None
