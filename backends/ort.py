"""ONNX Runtime: its CPU execution provider, and its static quantizer."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    Offer,
    Port,
    Quantizer,
    Runtime,
    Stage,
    Unsupported,
)

ort = Library("onnxruntime", distribution="onnxruntime", extra="onnxruntime")
quantization = Library("onnxruntime.quantization", distribution="onnxruntime", extra="onnxruntime")

_DTYPES = {"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(uint8)": "u1"}
_LEVELS = {
    "disable_all": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
_COMPUTES = {
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "uint8": "int8",
    "int8": "int8",
}
HISTOGRAM_BATCH = 16
"""Samples whose activations are all held at once by the histogram methods, about 1.2 GB."""

_METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
_HEAVY = ("Conv", "Gemm", "MatMul")


class OrtRuntime(Runtime):
    """``onnxruntime.InferenceSession`` on the CPU provider."""

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._artifact = artifact
        self._session = ort.InferenceSession(
            str(artifact), self._session_options(), providers=["CPUExecutionProvider"]
        )
        return (
            tuple(_port(node) for node in self._session.get_inputs()),
            tuple(_port(node) for node in self._session.get_outputs()),
        )

    def _session_options(self) -> Any:
        level = _LEVELS[self.options["graph_optimization_level"]]
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.options["threads"]
        options.inter_op_num_threads = 1
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.log_severity_level = 3
        return options

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        names = [port.name for port in self.outputs]
        return dict(zip(names, self._session.run(names, dict(feeds)), strict=True))

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read the session back; kernel input types come from ONNX Runtime's own profile."""
        options = self._session.get_session_options()
        levels = {getattr(ort.GraphOptimizationLevel, v): k for k, v in _LEVELS.items()}
        kernels = self._kernels(feeds)
        heavy = Counter[str]()
        for (op, kind), count in kernels.items():
            if any(name in op for name in _HEAVY):
                heavy[_COMPUTES.get(kind, kind)] += count
        return Effective(
            products=heavy,
            options={
                "device": "cpu" if self._session.get_providers()[:1] == [_CPU] else "other",
                "threads": options.intra_op_num_threads,
                "graph_optimization_level": levels[options.graph_optimization_level],
            },
            details={
                "providers": self._session.get_providers(),
                "kernels": {f"{op}({kind})": n for (op, kind), n in sorted(kernels.items())},
            },
        )

    def _kernels(self, feeds: Mapping[str, Array]) -> Counter[tuple[str, str]]:
        """Count the kernels of one inference by (operator, type of first input)."""
        with tempfile.TemporaryDirectory() as folder:
            options = self._session_options()
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder) / "profile")
            session = ort.InferenceSession(str(self._artifact), options, providers=[_CPU])
            session.run(None, dict(feeds))
            events = json.loads(Path(session.end_profiling()).read_text())
        found = Counter[tuple[str, str]]()
        for event in events:
            arguments = event.get("args", {})
            if event.get("cat") == "Node" and arguments.get("input_type_shape"):
                kind = next(iter(arguments["input_type_shape"][0]))
                found[arguments["op_name"], kind] += 1
        return found

    def _close(self) -> None:
        del self._session


class OrtQuantizer(Quantizer):
    """Static QDQ quantization by ``onnxruntime.quantization``.

    ``entropy`` at ONNX Runtime's default of 128 histogram bins equals ``minmax`` exactly, so
    fewer than 129 bins are refused.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write QuantizeLinear / DequantizeLinear pairs."""
        from onnxruntime.quantization.calibrate import create_calibrator, save_tensors_data
        from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry
        from onnxruntime.quantization.shape_inference import quant_pre_process

        options = self.options
        operators = list({**QLinearOpsRegistry, **QDQRegistry})
        method = getattr(quantization.CalibrationMethod, _METHODS[options["method"]])
        types = quantization.QuantType
        with tempfile.TemporaryDirectory() as folder:
            prepared, ranges = Path(folder) / "prepared.onnx", Path(folder) / "ranges.json"
            quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
            calibrator = create_calibrator(
                prepared,
                operators,
                augmented_model_path=str(Path(folder) / "augmented.onnx"),
                calibrate_method=method,
                extra_options={k: options[k] for k in ("num_bins", "percentile") if k in options},
            )
            if options["method"] == "minmax":
                calibrator.collect_data(_reader(feeds))
            else:
                while batch := list(islice(feeds, HISTOGRAM_BATCH)):
                    calibrator.collect_data(_reader(iter(batch)))
            save_tensors_data(calibrator.compute_data(), ranges)
            quantization.quantize_static(
                str(prepared),
                str(target),
                calibration_cache_path=ranges,
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=operators,
                per_channel=options["weights"] == "per_channel",
                activation_type=types.QUInt8 if options["activations"] == "uint8" else types.QInt8,
                weight_type=types.QInt8,
                calibrate_method=method,
                extra_options={"ActivationSymmetric": options["symmetric"]},
            )


def _reader(feeds: Iterator[Mapping[str, Array]]) -> Any:
    base: Any = quantization.CalibrationDataReader

    class Reader(base):  # type: ignore[misc]
        def get_next(self) -> Any:
            return next(feeds, None)

    return Reader()


def _port(node: Any) -> Port:
    if node.type not in _DTYPES:
        raise Unsupported(f"{node.name!r} is {node.type}; taken are {', '.join(_DTYPES)}")
    shape = tuple(d if isinstance(d, int) else None for d in node.shape)
    return Port(node.name, np.dtype(_DTYPES[node.type]), shape)


_CPU = "CPUExecutionProvider"
_RUN: dict[str, Admits] = {
    "device": ("cpu",),
    "threads": AtLeast(1),
    "graph_optimization_level": tuple(_LEVELS),
}
_QUANTIZE: dict[str, Admits] = {
    "weights": ("per_channel", "per_tensor"),
    "activations": ("uint8", "int8"),
    "symmetric": (False, True),
}
_SOURCE = "https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html"

BACKEND = Backend(
    name="onnxruntime",
    summary="ONNX Runtime, CPU execution provider; static QDQ quantizer",
    library=ort,
    offers=(
        Offer(
            Stage.RUNTIME, {**_RUN, "storage": ("fp32", "fp16"), "compute": ("fp32",)}, OrtRuntime
        ),
        Offer(Stage.RUNTIME, {**_RUN, "storage": ("int8",), "compute": ("int8",)}, OrtRuntime),
        Offer(Stage.QUANTIZE, {**_QUANTIZE, "method": ("minmax",)}, OrtQuantizer, source=_SOURCE),
        Offer(
            Stage.QUANTIZE,
            {**_QUANTIZE, "method": ("entropy",), "num_bins": AtLeast(129)},
            OrtQuantizer,
            source=_SOURCE,
        ),
        Offer(
            Stage.QUANTIZE,
            {
                **_QUANTIZE,
                "method": ("percentile",),
                "num_bins": AtLeast(2),
                "percentile": (99.0, 99.9, 99.99, 99.999),
            },
            OrtQuantizer,
            source=_SOURCE,
        ),
    ),
)
