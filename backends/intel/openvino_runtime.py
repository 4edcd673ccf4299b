"""OpenVINO on the CPU: the runtime; its preprocessing is in openvino_pixels."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.intel import openvino_state
from backends.intel.libraries import ov
from backends.intel.openvino_pixels import OFFERS as PIXELS
from backends.intel.openvino_settings import settings
from backends.sound.openvino_stft import OFFERS as SOUND
from backends.storages import STORED
from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Backend,
    Effective,
    Injector,
    Offer,
    Port,
    Runtime,
    Stage,
)

_COMPUTES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "u8": "int8", "i8": "int8"}
_STORED_AS = (
    "u8", "i8", "u4", "i4", "u2", "i2", "f16", "bf16", "nf4", "f4e2m1", "f8e4m3", "f8e5m2",
)  # fmt: skip
_HEAVY = ("Convolution", "GroupConvolution", "MatMul", "FullyConnected", "Deconvolution")


class OpenVinoRuntime(Runtime):
    """``openvino.Core().compile_model`` with all settings explicit.

    The default inference precision on a CPU with BF16 instructions is BF16, so the hint is always
    set. For INT8 models it is ``f32``, the precision of the layers that are not quantized. A group
    size of 0 prevents OpenVINO from rounding the activations of weight-only layers to INT8. Each
    thread has its own infer request. With ``stateful``, inputs ``past_key_values`` and outputs
    ``present`` become variables of the model (``apply_make_stateful_transformation``); a model
    that has variables is stateful as it is.
    """

    batches: ClassVar[tuple[str, ...]] = ("fixed", "dynamic")
    bit_stable: ClassVar[tuple[str, ...]] = ("fp32", "int8")
    also_takes: ClassVar[tuple[str, ...]] = ("openvino_ir", "tflite")

    @classmethod
    def injector(cls) -> type[Injector]:
        """Cut the ONNX file, and compile what follows a site."""
        from backends.intel.openvino_injector import OpenVinoInjector

        return OpenVinoInjector

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._artifact = artifact
        core = ov.Core()
        model = core.read_model(str(artifact))
        if self.options.get("stateful"):
            openvino_state.keep(model, self.options["attention"] == "fused")
        self.is_stateful = bool(model.get_sinks())
        self._model = core.compile_model(model, "CPU", settings(self.options) | self._kept_as())
        self._local = threading.local()
        ports = tuple(_port(port) for port in self._model.inputs)
        return (
            tuple(port for port in ports if port.name != openvino_state.BEAMS),
            tuple(_port(port) for port in self._model.outputs),
        )

    def _kept_as(self) -> dict[str, str]:
        """OpenVINO's own setting of how keys and values are kept."""
        kind = self.options.get("kv_cache")
        own = {"fp32": "f32", "fp16": "f16"}.get(str(kind), kind)
        return {"KV_CACHE_PRECISION": str(own)} if kind else {}

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        request = getattr(self._local, "request", None)
        if request is None:
            request = self._local.request = self._model.create_infer_request()
        if self.is_stateful:
            self._local.seen, more = openvino_state.follow(
                request, getattr(self._local, "seen", 0), feeds
            )
            feeds = {**feeds, **more}
        request.infer(dict(feeds), share_inputs=True, share_outputs=True)
        return {
            port.name: request.get_output_tensor(index).data
            for index, port in enumerate(self.outputs)
        }

    def inner(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Give the model every floating-point tensor as an output; see the contract."""
        core = ov.Core()
        model = core.read_model(str(self._artifact))
        floats = [
            output
            for op in model.get_ordered_ops()
            if op.get_type_name() not in ("Constant", "Parameter", "Result", "Convert")
            for output in op.outputs()
            if output.get_element_type().is_real()
        ]
        names = [_name(output) for output in floats]  # an output without a name gets a new one
        for output in floats:
            model.add_outputs([output])  # one that is an output stays where it is
        places = {
            _place(result.input_value(0)): at for at, result in enumerate(model.get_results())
        }
        request = core.compile_model(model, "CPU", settings(self.options)).create_infer_request()
        request.infer(dict(feeds))
        return {
            name: np.array(request.get_output_tensor(places[_place(output)]).data)
            for name, output in zip(names, floats, strict=True)
        }

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read back the properties and the execution graph's ``runtimePrecision``."""
        layers, heavy = Counter[tuple[str, str]](), Counter[str]()
        rounds = str(self._model.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE")) != "0"
        weights_only = self.options["compute"] != "int8" and not rounds
        for op in self._model.get_runtime_model().get_ops():
            info = op.get_rt_info()
            kind, precision = (info[k].astype(str) for k in ("layerType", "runtimePrecision"))
            layers[kind, precision] += 1
            if kind in _HEAVY:
                if weights_only and precision in _STORED_AS:  # it tells the weights' type there
                    precision = info["primitiveType"].astype(str).rpartition("_")[2]
                heavy[_COMPUTES.get(precision, precision)] += 1
        kinds = {kind for kind, _ in layers}
        fused = "fused" if "ScaledDotProductAttention" in kinds else "plain"
        hint = str(self._model.get_property("KV_CACHE_PRECISION").to_dtype())
        kept = {"float32": "fp32", "float16": "fp16", "uint8": "u8"}
        in_use = {
            "stateful": True, "attention": fused,
            "kv_cache": kept.get(hint, hint) if fused == "fused" else "fp32",
        } if self.is_stateful else {}  # fmt: skip
        return Effective(
            products=heavy,
            options={
                "device": "cpu",
                "threads": self._model.get_property("INFERENCE_NUM_THREADS"),
                **in_use,
            },
            details={
                "hint": str(self._model.get_property("INFERENCE_PRECISION_HINT")),
                "layers": {f"{kind}({p})": n for (kind, p), n in sorted(layers.items())},
            },
        )

    def _close(self) -> None:
        del self._local, self._model


def _place(output: Any) -> tuple[str, int]:
    return output.get_node().get_friendly_name(), output.get_index()


def _name(output: Any) -> str:
    """Return the name that the file gives a tensor, or that of its operator."""
    names = sorted(output.get_names())
    return str(names[0]) if names else ":".join(map(str, _place(output)))


def _port(port: Any) -> Port:
    shape = tuple(d.get_length() if d.is_static else None for d in port.get_partial_shape())
    return Port(port.get_any_name(), np.dtype(port.get_element_type().to_dtype()), shape)


_RUN: dict[str, Admits] = {"device": ("cpu",), "threads": AtLeast(1)}
_KEPT: tuple[dict[str, Admits], ...] = (
    {"stateful": (False,)},
    {"stateful": (True,), "attention": ("plain",), "kv_cache": ("fp32",)},
    {"stateful": (True,), "attention": ("fused",), "kv_cache": ("fp32", "fp16", "u8")},
)
_PRECISIONS: tuple[dict[str, Admits], ...] = (
    {"storage": STORED, "compute": ("fp32", "bf16", "fp16")},
    {"storage": ("int8",), "compute": ("int8",)},
)

BACKEND = Backend(
    name="openvino",
    summary="OpenVINO, CPU plugin: FP32, BF16 and FP16 hints, QDQ INT8; its preprocessing",
    library=ov,
    offers=(
        *(
            Offer(Stage.RUNTIME, {**_RUN, **kept, **precision}, OpenVinoRuntime)
            for kept in _KEPT
            for precision in _PRECISIONS
        ),
        *PIXELS,
        *SOUND,
    ),
    may_be_left_out=("stateful",),
    fields={
        "stateful": "whether the network's KV cache becomes variables that OpenVINO keeps",
        "attention": "as the network's operators, or as OpenVINO's one operator with a cache",
        "kv_cache": "the type in which keys and values are kept",
    },
)
