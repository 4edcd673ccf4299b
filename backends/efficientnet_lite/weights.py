"""Reads a PyTorch weight file of before 2020 (the format without a zip) without PyTorch.

It is five pickles (a magic number, a version, the machine, the tensors, the names of the
storages), then for each storage its length as int64 and its numbers, little-endian. Only what such
a file needs is unpickled: nothing in it can run code.

Source: torch/serialization.py, ``_legacy_save``.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAGIC = 0x1950A86A20F9469CFC6C
DTYPES: dict[str, np.dtype[Any]] = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor whose storage has not been read yet; *offset* and *strides* count numbers."""

    storage: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _tensor(
    storage: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> _Tensor:
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


class _Unpickler(pickle.Unpickler):
    """Knows tensors and ordered dictionaries, and refuses everything else."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.dtypes: dict[str, np.dtype[Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return what a pickle may name."""
        known: dict[tuple[str, str], Callable[..., Any] | str] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            **{("torch", storage): storage for storage in DTYPES},
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of a file of weights")
        return known[module, name]

    def persistent_load(self, saved: Any) -> str:
        """Return the name of a storage."""
        _, kind, key, *_ = saved
        self.dtypes[key] = DTYPES[kind]
        return str(key)


def read(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a weight file by name, float32 or int64.

    Raises:
        pickle.UnpicklingError: it is not such a file, or it holds something besides tensors.
    """
    with path.open("rb") as file:
        if _Unpickler(file).load() != MAGIC:
            raise pickle.UnpicklingError(f"{path} is no PyTorch file without a zip")
        for _ in ("version", "machine"):
            _Unpickler(file).load()
        body = _Unpickler(file)
        tensors = body.load()
        storages = {}
        for key in _Unpickler(file).load():
            (count,) = np.frombuffer(file.read(8), "<i8")
            dtype = body.dtypes[key]
            storages[key] = np.frombuffer(file.read(int(count) * dtype.itemsize), dtype)
    return {name: _view(storages[tensor.storage], tensor) for name, tensor in tensors.items()}


def _view(storage: NDArray[Any], tensor: _Tensor) -> NDArray[Any]:
    size = storage.itemsize
    strides = [step * size for step in tensor.strides]
    found = np.ndarray(tensor.shape, storage.dtype, storage, tensor.offset * size, strides)
    return np.ascontiguousarray(found).reshape(tensor.shape)
