"""Faults in the graph that ONNX Runtime makes of an artifact."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import TensorProto
from onnx.numpy_helper import to_array

from backends.onnx_cut import read
from backends.onnx_injector import CutInjector, Run
from backends.ort.library import ort, plainly, session_options
from simulator.contract import Array, Unsupported

_HIGHEST = "extended"
_BELOW = ("disable_all", "basic", _HIGHEST)


class OrtInjector(CutInjector):
    """Takes the graph as ONNX Runtime optimizes it, on the CPU.

    Its tensors are those that exist while it runs: batch normalization is merged, layers are fused
    with activations, QDQ pairs became integer kernels. Levels above ``extended`` reorder the
    weights for the processor at hand. Sites are then named before that, and what follows a site is
    optimized at the profile's level: the hit tensor is an input of it, so nothing has a copy.
    """

    fuses: ClassVar[bool] = False
    tap = (
        "NaN and Inf in the floating-point outputs of the hit layer and of all layers after it, "
        "behind the activation that ONNX Runtime fused with them, some seen in sums of them; its "
        "activations keep NaN and may end Inf; integer outputs have neither"
    )

    def _read(self) -> onnx.ModelProto:
        provider, level = self.options["provider"], self.options["graph_optimization_level"]
        if provider != "cpu":
            raise Unsupported(f"faults are put in on the CPU only, not with provider: {provider}")
        used = level if level in _BELOW else _HIGHEST
        self.method = (
            f"the graph that ONNX Runtime optimizes at {used}, cut at the hit tensor; what follows "
            f"runs again at {level} with that tensor as an input"
        )
        if used != level:
            self.method += (
                "; layers are not fused across the cut, so last bits may differ from the whole "
                "network's"
            )
        with tempfile.TemporaryDirectory() as folder, plainly():
            target = Path(folder) / "optimized.onnx"
            options = self._session_options(used)
            options.optimized_model_filepath = str(target)
            ort.InferenceSession(read(self.artifact).SerializeToString(), options, providers=_CPU)
            model = onnx.load(str(target))
        self._shared = dict(_moved(model))
        return model

    def _value(self, name: str) -> Array:
        """Return a stored tensor; the larger ones are not in the model."""
        found = self._shared.get(name)
        return super()._value(name) if found is None else np.asarray(found.numpy())

    def _runner(self, model: onnx.ModelProto) -> Run:
        options = self._session_options(self.options["graph_optimization_level"])
        used = [t.name for t in model.graph.initializer if t.name in self._shared]
        shared = [self._shared[name] for name in used]
        options.add_external_initializers(used, shared)
        with plainly():
            session = ort.InferenceSession(model.SerializeToString(), options, providers=_CPU)
        return _Session(model, session, shared)

    def _session_options(self, level: str) -> Any:
        return session_options(self.options["threads"], level)


class _Session:
    """A session with the memory of the stored tensors that it shares with others."""

    def __init__(self, model: onnx.ModelProto, session: Any, shared: list[Any]) -> None:
        self._inputs = [value.name for value in model.graph.input]
        self._outputs = [value.name for value in model.graph.output]
        self._session, self._shared = session, shared

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        feeds = dict(zip(self._inputs, arrays, strict=True))
        with plainly():
            found: Sequence[Array] = self._session.run(self._outputs, feeds)
        return found


def _moved(model: onnx.ModelProto) -> Iterator[tuple[str, Any]]:
    """Move the larger stored tensors out of a model, so that every session shares them."""
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) >= _LARGE and tensor.data_type in _SHARED:
            yield tensor.name, ort.OrtValue.ortvalue_from_numpy(to_array(tensor))
            place = {"location": tensor.name, "offset": "0", "length": str(len(tensor.raw_data))}
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)


_CPU = ["CPUExecutionProvider"]
_LARGE = 1024
_SHARED = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT32,
)
