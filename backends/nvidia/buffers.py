"""The part of CUDA's runtime that TensorRT needs: buffers, a stream, and two timing events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.nvidia.driver import cuda_device
from simulator.contract import Array, Library

CUDA = Library("cuda.bindings.runtime", distribution="cuda-bindings", extra="tensorrt")
if TYPE_CHECKING:
    from cuda.bindings import runtime as cuda
else:
    cuda = CUDA


def call(result: tuple[Any, ...]) -> Any:
    """Unpack the result of a cuda-bindings function.

    Raises:
        RuntimeError: the call failed; the message is CUDA's own.
    """
    code, *values = result
    if int(code):
        raise RuntimeError(f"CUDA: {cuda.cudaGetErrorString(code)[1].decode()} ({int(code)})")
    return values[0] if values else None


def gpu() -> dict[str, str]:
    """Return the name of the first CUDA device and its compute capability.

    Raises:
        MissingLibrary: no driver, no device, or no cuda-bindings.
    """
    name = cuda_device()
    attributes = cuda.cudaDeviceAttr
    major, minor = (
        call(cuda.cudaDeviceGetAttribute(attribute, 0))
        for attribute in (
            attributes.cudaDevAttrComputeCapabilityMajor,
            attributes.cudaDevAttrComputeCapabilityMinor,
        )
    )
    return {"gpu": name, "compute_capability": f"{major}.{minor}"}


class Stream:
    """A CUDA stream with named buffers on the device, and the time of what runs between copies.

    Attributes:
        milliseconds: the time of the device's work in the last `run`, between two CUDA events,
            without copies to and from the device.
    """

    def __init__(self) -> None:
        self._stream = call(cuda.cudaStreamCreate())
        self._events = [call(cuda.cudaEventCreate()) for _ in range(2)]
        self._host: dict[str, Array] = {}
        self._device: dict[str, int] = {}
        self.milliseconds: float | None = None

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> int:
        """Allocate a buffer; return its address on the device."""
        self._host[name] = np.empty(shape, dtype)
        self._device[name] = int(call(cuda.cudaMalloc(self._host[name].nbytes)))
        return self._device[name]

    def run(self, enqueue: Callable[[int], bool], feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Copy *feeds* in, run, and copy every other buffer out.

        Args:
            enqueue: puts the work into the given stream; returns False if it cannot.
            feeds: inputs by the name of their buffer.

        Returns:
            The other buffers' memory on the host, which the next run overwrites.
        """
        before, after = self._events
        for name, array in feeds.items():
            np.copyto(self._host[name], array)
            self._copy(name, cuda.cudaMemcpyKind.cudaMemcpyHostToDevice)
        call(cuda.cudaEventRecord(before, self._stream))
        started = enqueue(int(self._stream))
        call(cuda.cudaEventRecord(after, self._stream))
        if not started:
            raise RuntimeError("the GPU's work could not be enqueued")
        outputs = [name for name in self._host if name not in feeds]
        for name in outputs:
            self._copy(name, cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost)
        call(cuda.cudaStreamSynchronize(self._stream))
        self.milliseconds = float(call(cuda.cudaEventElapsedTime(before, after)))
        return {name: self._host[name] for name in outputs}

    def close(self) -> None:
        """Free the buffers, the events and the stream."""
        for address in self._device.values():
            call(cuda.cudaFree(address))
        for event in self._events:
            call(cuda.cudaEventDestroy(event))
        call(cuda.cudaStreamDestroy(self._stream))

    def _copy(self, name: str, kind: cuda.cudaMemcpyKind) -> None:
        host, device = self._host[name], self._device[name]
        ends = (device, host.ctypes.data)
        to, source = ends if kind == cuda.cudaMemcpyKind.cudaMemcpyHostToDevice else ends[::-1]
        call(cuda.cudaMemcpyAsync(to, source, host.nbytes, kind, self._stream))
