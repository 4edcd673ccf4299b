"""ONNX Runtime: its execution providers, and its tools that quantize."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.ort import quantizer, weights
from backends.ort.library import LEVELS, ort, plainly, session_options, session_ports
from backends.sound.ort_stft import OFFERS as SOUND
from backends.storages import STORED
from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Backend,
    Effective,
    Injector,
    MissingLibrary,
    Offer,
    Options,
    Pairs,
    Port,
    Runtime,
    Stage,
    Unsupported,
)
from simulator.contract.installing import install

_COMPUTES = {
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "uint8": "int8",
    "int8": "int8",
}
_HEAVY = ("Conv", "Gemm", "MatMul")
_ROUNDS = ("DynamicQuantizeMatMul", "DynamicQuantizeLSTM")
"""Kernels that take floats and multiply integers."""


class OrtRuntime(Runtime):
    """``onnxruntime.InferenceSession`` on one execution provider.

    ONNX Runtime runs nodes that the provider does not support on the CPU. It is an error if no
    convolution or matrix product runs on the requested provider.
    """

    batches: ClassVar[tuple[str, ...]] = ("fixed", "dynamic")
    bit_stable: ClassVar[tuple[str, ...]] = ("fp32",)

    @classmethod
    def injector(cls) -> type[Injector]:
        """Cut the graph that ONNX Runtime optimized."""
        from backends.ort.injector import OrtInjector

        return OrtInjector

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._artifact = artifact
        self._provider = _PROVIDERS[self.options["provider"]]
        _present(self._provider)
        self._session = self._opened(self._session_options())
        if self._session.get_providers()[:1] != [self._provider]:
            raise MissingLibrary(
                f"onnxruntime lists {self._provider} but runs on "
                f"{', '.join(self._session.get_providers())}: its device or driver is missing"
            )
        return session_ports(self._session)

    def _opened(self, options: Any) -> Any:
        providers = [(self._provider, asked(self.options))]
        with plainly():
            return ort.InferenceSession(str(self._artifact), options, providers=providers)

    def _session_options(self) -> Any:
        return session_options(self.options["threads"], self.options["graph_optimization_level"])

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        if not self.options["io_binding"]:
            with plainly():
                return self._named(self._session.run(None, dict(feeds)))
        binding = self._session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(array))
        for port in self.outputs:
            binding.bind_output(port.name, self.options["device"])
        with plainly():
            self._session.run_with_iobinding(binding)
        return self._named(binding.copy_outputs_to_cpu())

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read back the session's settings; kernels and types come from ONNX Runtime's profiler."""
        options = self._session.get_session_options()
        levels = {getattr(ort.GraphOptimizationLevel, v): k for k, v in LEVELS.items()}
        kernels = self._kernels(feeds)
        heavy, places = Counter[str](), Counter[str]()
        for (op, kind, provider), count in kernels.items():
            if any(name in op for name in _HEAVY):
                heavy["int8" if op in _ROUNDS else _COMPUTES.get(kind, kind)] += count
                places[provider] += count
        if places and not places[self._provider]:
            raise Unsupported(
                f"{self._provider} was requested, but every convolution and matrix product of "
                f"this model runs on {', '.join(places)}"
            )
        own = self._session.get_provider_options().get(self._provider, {})
        in_force: dict[str, Any] = {
            "device": self.options["device"],
            "provider": self.options["provider"],
            "threads": options.intra_op_num_threads,
            "graph_optimization_level": levels[options.graph_optimization_level],
        }
        if "use_tf32" in own:
            in_force["use_tf32"] = own["use_tf32"] == "1"
        return Effective(
            products=heavy,
            options=in_force,
            details={
                "products_by_provider": dict(places),
                "provider_options": own,
                "kernels": {f"{op}({kind})": n for (op, kind, _), n in sorted(kernels.items())},
            },
        )

    def _kernels(self, feeds: Mapping[str, Array]) -> Counter[tuple[str, str, str]]:
        """Count the kernels of one inference by (operator, type of first input, provider)."""
        with tempfile.TemporaryDirectory() as folder:
            options = self._session_options()
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder) / "profile")
            session = self._opened(options)
            with plainly():
                session.run(None, dict(feeds))
            events = json.loads(Path(session.end_profiling()).read_text())
        found = Counter[tuple[str, str, str]]()
        for event in events:
            arguments = event.get("args", {})
            if event.get("cat") == "Node" and arguments.get("input_type_shape"):
                kind = next(iter(arguments["input_type_shape"][0]))
                found[arguments["op_name"], kind, arguments.get("provider", "")] += 1
        return found

    def _close(self) -> None:
        del self._session


def _present(provider: str) -> None:
    """Make sure that this build of ONNX Runtime has an execution provider.

    Raises:
        MissingLibrary: it has not.
    """
    available = ort.get_available_providers()
    if provider not in available:
        raise MissingLibrary(
            f"onnxruntime {ort.version} here has no {provider} (it has {', '.join(available)}); "
            f"for CUDA: pip uninstall -y onnxruntime, then {install('gpu')}; "
            "any build in a Python of its own: simulate backends install onnxruntime --python PATH"
        )


def asked(options: Options) -> dict[str, str]:
    """Return what the execution provider is told, in its own words."""
    own: dict[str, str] = dict(_ASKS.get((options["provider"], options["compute"]), {}))
    if "use_tf32" in options:
        own["use_tf32"] = str(int(options["use_tf32"]))
    own |= options.get("provider_options", {})
    return own


def _offers() -> Iterator[Offer]:
    """Yield one offer for every provider, ``io_binding`` and kind of precision.

    The default provider is the CPU, and the default ``io_binding`` is none.
    """
    checks = {name: partial(_present, _PROVIDERS[name]) for name in _OWN}
    for io_binding, (provider, own) in product((False, True), _OWN.items()):
        run: dict[str, Admits] = {
            "provider": (provider,),
            "io_binding": (io_binding,),
            "threads": AtLeast(1),
            "graph_optimization_level": tuple(LEVELS),
            **own,
        }
        for precision in _PRECISIONS[provider]:
            yield Offer(
                Stage.RUNTIME, {**run, **precision}, OrtRuntime, source=_EP + provider,
                present=checks[provider],
            )  # fmt: skip


_PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
}
_OWN: dict[str, dict[str, Admits]] = {
    "cpu": {"device": ("cpu",)},
    "openvino": {"device": ("cpu",), "provider_options": Pairs()},
    "cuda": {"device": ("cuda",), "provider_options": Pairs(), "use_tf32": (False, True)},
    "tensorrt": {"device": ("cuda",), "provider_options": Pairs()},
}
_IN_FP32: dict[str, Admits] = {"storage": STORED, "compute": ("fp32",)}
_IN_FP16: dict[str, Admits] = {"storage": ("fp32", "fp16"), "compute": ("fp16",)}
_HALF: dict[str, Admits] = {"storage": ("fp16",), "compute": ("fp16",)}
_IN_INT8: dict[str, Admits] = {"storage": ("int8",), "compute": ("int8",)}
_ASKS = {
    ("tensorrt", "fp16"): {"trt_fp16_enable": "1"},
    ("tensorrt", "int8"): {"trt_int8_enable": "1"},
    ("openvino", "fp32"): {"precision": "FP32"},
    ("openvino", "fp16"): {"precision": "FP16"},
}
_PRECISIONS = {
    "cpu": (_IN_FP32, _IN_INT8),
    "openvino": (_IN_FP32, _IN_FP16, _IN_INT8),
    "cuda": (_IN_FP32, _HALF, _IN_INT8),
    "tensorrt": (_IN_FP32, _IN_FP16, _IN_INT8),
}
_EP = "https://onnxruntime.ai/docs/execution-providers/ "

BACKEND = Backend(
    name="onnxruntime",
    summary="ONNX Runtime, its execution providers by name; static and dynamic INT8, INT4 blocks",
    library=ort,
    offers=(*_offers(), *quantizer.OFFERS, *weights.OFFERS, *SOUND),
    may_be_left_out=(
        "provider",
        "io_binding",
        "target",
        "operators",
        "symmetric_weights",
        "bias_correction",
    ),
    fields={
        "scales": "any, or rounded up to powers of two: all, or those of activations",
        "symmetric_weights": "whether weight ranges are symmetric around zero",
        "operators": "which operators are rounded: all that can be, or products with weights",
        "target": "tensorrt: zero points of 0, FP32 weights and biases",
        "reduce_range": "7-bit weights, against overflow of AVX2",
        "num_bins": "histogram bins of entropy, percentile and mse",
        "percentile": "the percentage of values inside the range",
        "provider": "the execution provider",
        "io_binding": "whether inputs and outputs are bound to memory on the device",
        "graph_optimization_level": "which graph optimizations ONNX Runtime applies",
        "provider_options": "the provider's own, as texts",
        "use_tf32": "whether convolutions and matrix products may run in TF32",
    },
)
