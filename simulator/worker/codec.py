"""Values of the contract as JSON, with arrays and bytes in a shared memory file."""

from __future__ import annotations

import dataclasses
import fcntl
import importlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from enum import Enum, EnumMeta
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Effective, Encoded, Frame, Matrix, PixelFormat, Port, Range
from simulator.errors import RunError

_OURS = {cls.__name__: cls for cls in (Effective, Encoded, Frame, Port, Matrix, PixelFormat, Range)}
"""Our own classes by name; classes of other packages are sent as ``module:name``."""
_ALIGN = 64
Message = dict[str, Any]
"""What one process says to another: a call, a value, or an error."""


class Memory:
    """A shared memory file that two processes map; only one of them writes, and none can cut it.

    Args:
        file: an open file descriptor, which this object then owns.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self._map: mmap.mmap | None = None
        self._used = 0

    def begin(self) -> None:
        """Discard the arrays of the previous message."""
        self._used = 0

    def put(self, array: np.ndarray[Any, Any]) -> int:
        """Copy a C-contiguous array into the memory; return its offset in bytes."""
        if array.dtype.hasobject:
            raise TypeError("an array of Python objects cannot be sent to another process")
        start = -(-self._used // _ALIGN) * _ALIGN
        self._used = start + array.nbytes
        if self._used > self.size:
            try:
                os.posix_fallocate(self.file, 0, 2 * self._used)
            except OSError as error:
                raise RunError(
                    f"a worker needs {2 * self._used >> 20} MiB of memory: {error.strerror}"
                ) from error
            self.follow(2 * self._used)
        if array.nbytes:
            np.copyto(self._view(array.dtype, array.shape, start), array)
        return start

    def get(self, dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> np.ndarray[Any, Any]:
        """Return a copy of an array."""
        return self._view(dtype, shape, start).copy() if 0 not in shape else np.empty(shape, dtype)

    @property
    def size(self) -> int:
        """The number of mapped bytes."""
        return len(self._map) if self._map is not None else 0

    def follow(self, size: int) -> None:
        """Map the file again, after it grew to *size* bytes."""
        if size > os.fstat(self.file).st_size:
            raise ValueError(f"{size} bytes of a file of {os.fstat(self.file).st_size}")
        if size > self.size:
            self._map = mmap.mmap(self.file, size)

    def _view(self, dtype: Any, shape: tuple[int, ...], start: int) -> np.ndarray[Any, Any]:
        assert self._map is not None
        return np.ndarray(shape, dtype, self._map, start)


def memory() -> Memory:
    """Return an empty file in RAM, which only grows: reading what was cut off kills a process."""
    file = os.memfd_create("simulate", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return Memory(file)


def encode(message: Mapping[str, object], memory: Memory) -> bytes:
    """Return a message as one line of JSON; its arrays are copied into *memory*."""
    memory.begin()
    body = {name: _encode(value, memory) for name, value in message.items()}
    return json.dumps({**body, "size": memory.size}).encode() + b"\n"


def decode(line: bytes, memory: Memory) -> Message:
    """Return the message of a line; its arrays are copied out of *memory*."""
    message = json.loads(line)
    memory.follow(message.pop("size"))
    return {name: _decode(value, memory) for name, value in message.items()}


def _name(kind: type[Any]) -> str:
    """Return the name under which a class is sent."""
    ours = _OURS.get(kind.__name__) is kind
    return kind.__name__ if ours else f"{kind.__module__}:{kind.__qualname__}"


def _named(name: str) -> Any:
    """Return the class that was sent under a name: a dataclass or an enum."""
    module, colon, inside = name.partition(":")
    if not colon:
        return _OURS[name]
    kind: Any = importlib.import_module(module)
    for part in inside.split("."):
        kind = getattr(kind, part)
    if not (dataclasses.is_dataclass(kind) or isinstance(kind, EnumMeta)):
        raise TypeError(f"{name} is neither a dataclass nor an enum")
    return kind


def _encode(value: Any, memory: Memory) -> Any:  # noqa: PLR0911  one kind of value each
    if isinstance(value, Enum):
        return {"$enum": [_name(type(value)), value.value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value).reshape(value.shape)
        return {"$array": [array.dtype.str, list(array.shape), memory.put(array)]}
    if isinstance(value, bytes):
        return {"$bytes": [len(value), memory.put(np.frombuffer(value, np.uint8))]}
    if isinstance(value, np.dtype):
        return {"$dtype": value.str}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return {"$path": os.path.abspath(value)}
    if isinstance(value, tuple):
        return {"$tuple": [_encode(inner, memory) for inner in value]}
    if isinstance(value, list):
        return [_encode(inner, memory) for inner in value]
    if isinstance(value, Iterator):
        return {"$iterator": [_encode(inner, memory) for inner in value]}
    if isinstance(value, Mapping):
        return {"$map": [[_encode(k, memory), _encode(v, memory)] for k, v in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return {"$record": [_name(type(value)), _encode(fields, memory)]}
    raise TypeError(f"a {type(value).__name__} cannot be sent to another process")


def _decode(value: Any, memory: Memory) -> Any:  # noqa: PLR0911  one kind of value each
    if isinstance(value, list):
        return [_decode(inner, memory) for inner in value]
    if not isinstance(value, dict):
        return value
    ((tag, body),) = value.items()
    match tag:
        case "$array":
            dtype = np.dtype(body[0])
            if dtype.hasobject:
                raise TypeError("an array of Python objects, which are addresses")
            return memory.get(dtype, tuple(body[1]), body[2])
        case "$bytes":
            return memory.get(np.dtype(np.uint8), (body[0],), body[1]).tobytes()
        case "$dtype":
            return np.dtype(body)
        case "$enum":
            return _named(body[0])(body[1])
        case "$path":
            return Path(body)
        case "$tuple":
            return tuple(_decode(inner, memory) for inner in body)
        case "$iterator":
            return iter([_decode(inner, memory) for inner in body])
        case "$map":
            return {_decode(k, memory): _decode(v, memory) for k, v in body}
        case _:
            return _named(body[0])(**_decode(body[1], memory))
