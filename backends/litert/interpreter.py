"""The interpreter of LiteRT and of its predecessor, tflite-runtime."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.litert import inner, probe
from backends.litert.tensor import Tensor
from backends.quiet import quiet
from simulator.contract import Admits, Array, AtLeast, Effective, Library, Port, Runtime

litert = Library("ai_edge_litert.interpreter", distribution="ai-edge-litert", extra="litert")
tflite = Library("tflite_runtime.interpreter", distribution="tflite-runtime", extra="litert")
newest = tflite if litert.version is None and tflite.version is not None else litert
"""LiteRT, or its predecessor if only that is installed."""

_RESOLVERS = {
    "xnnpack": "BUILTIN",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
RUN: dict[str, Admits] = {"device": ("cpu",), "threads": AtLeast(1), "kernels": tuple(_RESOLVERS)}
FLOAT: dict[str, Admits] = {"storage": ("fp32", "fp16", "int8"), "compute": ("fp32",)}
INTEGER: dict[str, Admits] = {"storage": ("int8",), "compute": ("int8",)}

_HEAVY = {
    "CONV_2D": (0, 1),
    "DEPTHWISE_CONV_2D": (0, 1),
    "FULLY_CONNECTED": (0, 1),
    "CONV_3D": (0, 1),
    "BATCH_MATMUL": (0, 1),
    "TRANSPOSE_CONV": (2, 1),
}
"""The positions of data and weights among the inputs of each convolution and product."""
_COMPUTES = {"float32": "fp32", "int8": "int8", "uint8": "int8"}


class InterpreterRuntime(Runtime):
    """``Interpreter`` on a ``.tflite`` file; each thread has its own.

    Inputs and outputs are float32, whatever the file stores (see `Tensor`). The library reports
    neither its number of threads nor whether it uses its own or the reference kernels.
    """

    takes: ClassVar[str] = "tflite"
    batches: ClassVar[tuple[str, ...]] = ("fixed", "dynamic")
    resizes: ClassVar[bool] = True

    @property
    def _library(self) -> Library:
        return newest

    @classmethod
    def save_conv(cls, weights: Array, path: Path) -> None:
        """Write ``Conv2D`` as a ``.tflite`` file."""
        probe.save_conv(weights, path)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._path = str(artifact)
        self._local = threading.local()
        with quiet():
            first = self._session()
        self._takes = [Tensor.of(detail).batched() for detail in first.get_input_details()]
        self._gives = [Tensor.of(detail).batched() for detail in first.get_output_details()]
        return self._ports()

    def _ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        return (
            tuple(tensor.port for tensor in self._takes),
            tuple(Port(t.name, t.outside, t.shape) for t in self._gives),
        )

    def _session(self) -> Any:
        session = getattr(self._local, "session", None)
        if session is None:
            resolver = _RESOLVERS[self.options["kernels"]]
            session = self._library.Interpreter(
                model_path=self._path,
                num_threads=self.options["threads"],
                experimental_op_resolver_type=getattr(self._library.OpResolverType, resolver),
            )
            session.allocate_tensors()
            self._local.session = session
        return session

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        session = self._session()
        shapes = {detail["index"]: tuple(detail["shape"]) for detail in session.get_input_details()}
        for tensor in self._takes:
            value = tensor.store(feeds[tensor.name])
            if shapes[tensor.index] != value.shape:
                session.resize_tensor_input(tensor.index, value.shape)
                session.allocate_tensors()
            session.set_tensor(tensor.index, value)
        session.invoke()
        return {t.name: t.load(session.get_tensor(t.index)) for t in self._gives}

    def inner(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Give the file every tensor between operators as an output; see the contract."""
        with tempfile.TemporaryDirectory(prefix="simulate-inner-") as folder:
            file = Path(folder) / "inner.tflite"
            inner.save(Path(self._path), file)
            runtime = type(self)(file, self.options)
            try:
                return runtime.run(feeds)
            finally:
                runtime.close()

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read back the operators: the types of their tensors, and which ones XNNPACK runs."""
        self._run(feeds)
        session = self._session()
        types = {t["index"]: np.dtype(t["dtype"]).name for t in session.get_tensor_details()}
        ops = session._get_ops_details()
        own = _own(ops, [tensor.index for tensor in self._gives])
        products, taken, left = Counter[str](), Counter[str](), Counter[str]()
        for op in ops:
            name = op["op_name"]
            if name != "DELEGATE":
                (left if op["index"] in own else taken)[name] += 1
            if name in _HEAVY:
                products[_compute(*(types[op["inputs"][place]] for place in _HEAVY[name]))] += 1
        asked, total = self.options["kernels"], sum(products.values())
        delegated = sum(taken[name] for name in _HEAVY)
        without = "builtin" if total and asked == "xnnpack" else asked
        return Effective(
            products=products,
            options={"device": "cpu", "kernels": "xnnpack" if 2 * delegated > total else without},
            details={
                "xnnpack": dict(sorted(taken.items())),
                "own_kernels": dict(sorted(left.items())),
                "file_takes": {t.name: f"{t.dtype} {t.shape}" for t in self._takes},
            },
        )

    def _close(self) -> None:
        del self._local


def _own(ops: Sequence[Mapping[str, Any]], outputs: Iterable[int]) -> set[int]:
    """Return the operators that are really executed: those from which an output can be reached.

    The list has every operator of the file, followed by the delegates; the output of a delegate
    does not come from the operators that it replaced.
    """
    maker = {tensor: op for op in ops for tensor in op["outputs"]}
    found, waiting = set[int](), list(outputs)
    while waiting:
        op = maker.pop(waiting.pop(), None)
        if op is not None:
            waiting.extend(op["inputs"])
            if op["op_name"] != "DELEGATE":
                found.add(op["index"])
    return found


def _compute(data: str, weights: str) -> str:
    """Return the arithmetic's type; float data is quantized before integer weights."""
    if data == "int16":
        return "int16x8"
    kind = weights if data == "float32" else data
    return _COMPUTES.get(kind, kind)
