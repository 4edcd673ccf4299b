"""Find out which arithmetic a runtime really uses, by running one small model.

The model is a 1x1 convolution whose outputs are exact in FP32; in a lower precision the error
tells which one. Every output is a sum of a few products of powers of two and can be stored in all
of the formats, so an error comes from an operand or from the sum.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from simulator import cache, machine, registry
from simulator.contract import Array, MissingLibrary, Runtime
from simulator.contract.model_format import suffix_of
from simulator.model.store import digest, makers
from simulator.profile.implementations import Choice

BITS = {"bf16": 7, "fp16": 10, "fp32": 23}
"""Stored bits of the mantissa (IEEE 754-2019; BF16 and TF32: vendors' documentation)."""

CHANNELS, SIDE = 96, 8
ADDENDS = 64
SLACK = 2.0**-16
"""Relative tolerance; Qualcomm's HTP emulator returns every value times 1 + 2**-23."""
LARGE = 4096.0
"""From here on FP16 stores only multiples of 4: 4096 + 1 gives 4096."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The precision of a runtime's convolution.

    Attributes:
        compute: the precision of the activations in a product: ``fp32``, ``tf32``, ``fp16``,
            ``bf16``, or ``less``; None if the weights are less precise than all of these, because
            then nothing is known of the activations.
    """

    compute: str | None
    weights: str
    accumulation: str

    def details(self) -> dict[str, str | None]:
        """Return the findings for the manifest."""
        return asdict(self)


def model() -> tuple[Array, Array]:
    """Return the convolution's weights (16, 96, 1, 1) and its input (1, 96, 8, 8), float32.

    Outputs 0-2: 2**-k if an activation of 1 + 2**-k was kept, for k of BF16, FP16 and FP32.
    Outputs 3-5: the same for a weight. Output 6: 2**-16 if an activation of 2**-30 was kept;
    output 7: the same for a weight. 2**-30 is too small for FP16, but not for TF32. Output 8: the
    sum.
    """
    x = np.zeros(CHANNELS, np.float32)
    w = np.zeros((16, CHANNELS), np.float32)
    x[:5] = [*(1 + 2.0**-k for k in BITS.values()), 1, 2**-30]
    for row, k in enumerate(BITS.values()):
        w[row, [row, 3]] = 1, -1
        x[5 + 2 * row : 7 + 2 * row] = 1
        w[3 + row, 5 + 2 * row : 7 + 2 * row] = 1 + 2.0**-k, -1
    w[6, 4] = 2**14
    x[11], w[7, 11] = 2**14, 2**-30
    x[12], x[13 : 13 + ADDENDS] = LARGE, 1
    w[8, 12 : 13 + ADDENDS] = 1
    feed = np.broadcast_to(x[None, :, None, None], (1, CHANNELS, SIDE, SIDE))
    return w[:, :, None, None], np.ascontiguousarray(feed)


def read(outputs: Array) -> Probe:
    """Return the precision shown by the outputs of :func:`model`, (16, ...) float32."""
    y = outputs.reshape(16, -1)[:, 0].astype(np.float64)
    weights = _precision(y[3:6], y[7])
    return Probe(
        None if weights == "less" else _precision(y[0:3], y[6]),
        weights,
        "fp32" if abs(y[8] - (LARGE + ADDENDS)) < 0.5 else "less",
    )


def _precision(kept: Array, tiny: float) -> str:
    found = "less"
    for (name, bits), value in zip(BITS.items(), kept, strict=True):
        if abs(value * 2.0**bits - 1) < SLACK:
            found = name
    return "tf32" if found == "fp16" and abs(tiny * 2.0**16 - 1) < SLACK else found


def probe(choice: Choice) -> Probe | None:
    """Probe a runtime with its own options; the result is cached per kind of processor.

    Returns:
        The precision found; None if no probe model can be made for the runtime.
    """
    try:
        found = _once(choice, "convolution", lambda: _probed(choice))
    except MissingLibrary:  # the library that writes the model is missing; do not cache that
        return None
    return Probe(**found) if found else None


def rounds(choice: Choice, dtype: str) -> bool:
    """Whether a runtime really rounds in a Cast to *dtype* (``fp16`` or ``bf16``) and back.

    A runtime may remove the pair as redundant; a graph that rounds on purpose then runs in FP32.
    """
    return bool(_once(choice, f"cast {dtype}", lambda: _rounded(choice, dtype)))


def saturates(choice: Choice) -> bool:
    """Whether a runtime cuts the sum of two 8-bit products to 16 bits, on this processor.

    A product of 255 and 127 is 32,385; two of them are more than the 32,767 that ``vpmaddubsw`` of
    AVX2 and AVX-512 holds. Processors with VNNI sum in 32 bits. A 1x1 convolution of such numbers,
    between QuantizeLinear and DequantizeLinear, then gives about half of the exact sum.

    Source:
        https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html ("When and why
        do I need to try reduce_range"); https://oneapi-src.github.io/oneDNN/
        dev_guide_int8_computations.html; https://docs.openvino.ai/latest/pot_saturation_issue.html
    """
    on_cpu = choice.options.get("device") == "cpu" and choice.offer.make.takes == "onnx"
    return on_cpu and bool(_once(choice, "saturation", lambda: _saturated(choice)))


def _saturated(choice: Choice) -> bool:
    exact = CHANNELS * 255 * 127
    constants: dict[str, ArrayLike] = {
        "one": np.float32(1), "zero": np.array(0, np.uint8), "signed": np.array(0, np.int8),
        "scale": np.float32(exact / 255), "w": np.full((16, CHANNELS, 1, 1), 127, np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "one", "zero"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "one", "signed"], ["b"]),
        helper.make_node("Conv", ["a", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["d", "scale", "zero"], ["y"]),
    ]
    found = _ran(choice, _onnx(nodes, 16, constants), 255)
    return bool(found.min() < 0.9 * exact)


def _rounded(choice: Choice, dtype: str) -> bool:
    """Cast 1 + 2**-12, then add 0: return whether the small part is lost."""
    kind = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}[dtype]
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        helper.make_node("Cast", ["narrow"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["wide", "wide"], ["y"]),
    ]
    return bool((_ran(choice, _onnx(nodes, CHANNELS), 1 + 2.0**-12) == 2).all())


def _onnx(
    nodes: Sequence[onnx.NodeProto], features: int, constants: Mapping[str, ArrayLike] | None = None
) -> onnx.ModelProto:
    """Make a model from x, (1, 96, 8, 8) float32, to y, (1, *features*, 8, 8)."""
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size, SIDE, SIDE])
        for name, size in (("x", CHANNELS), ("y", features))
    ]
    values = [numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "probe", ports[:1], ports[1:], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _ran(choice: Choice, model: onnx.ModelProto, fill: float) -> Array:
    """Run a model of :func:`_onnx` on an input of one value."""
    x = np.full((1, CHANNELS, SIDE, SIDE), fill, np.float32)
    with tempfile.TemporaryDirectory(prefix="simulate-probe-") as folder:
        path = Path(folder) / "probe.onnx"
        onnx.save(model, str(path))
        return _outputs(choice, path, x, Path(folder))


def _once(choice: Choice, what: str, find: Callable[[], Any]) -> Any:
    processor = machine.processor()
    place = registry.compile_identity(choice.backend, choice.offer)
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA")
    key = digest([choice.identity(), processor, limit, place, what, CHANNELS, SIDE, makers()])
    name = f"probes/{choice.backend.name}-{key[:24]}"

    def write(draft: Path) -> None:
        (draft / "probe.json").write_text(json.dumps(find()))

    return json.loads((cache.entry(name, write) / "probe.json").read_text())


def _probed(choice: Choice) -> dict[str, str | None] | None:
    real: type[Runtime] = choice.offer.make
    weights, x = model()
    with tempfile.TemporaryDirectory(prefix="simulate-probe-") as folder:
        source = Path(folder) / f"probe{suffix_of(real.takes)}"
        try:
            (save if real.takes == "onnx" else real.save_conv)(weights, source)
        except NotImplementedError:
            return None
        out = _outputs(choice, source, x, Path(folder))
    return read(out[0] if out.shape[1] == 16 else out[0].transpose(2, 0, 1)).details()


def _outputs(choice: Choice, source: Path, x: Array, folder: Path) -> Array:
    """Run a model of one input and one output, in the runtime's layout."""
    if choice.offer.make.compiled_by is not None:
        compiled = folder / "compiled"
        compiled.mkdir()
        registry.compile(choice.backend, choice.offer, source, compiled, choice.options)
        source = compiled
    runtime: Runtime = choice.make(source)
    try:
        (port,) = runtime.inputs
        given = x if port.shape == x.shape else x.transpose(0, 2, 3, 1)
        (out,) = runtime.run({port.name: np.ascontiguousarray(given)}).values()
    finally:
        runtime.close()
    return out


def save(weights: Array, path: Path) -> None:
    """Write a Relu and a 1x1 convolution as ONNX; some runtimes do not round a graph's input."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Conv", ["r", "w"], ["y"])]
    onnx.save(_onnx(nodes, len(weights), {"w": weights}), str(path))
