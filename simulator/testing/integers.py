"""The arithmetic of INT8 files: scales of quantizers, and sums of runtimes that emulate others."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from simulator.contract import Array
from simulator.testing.subject import Subject, expect, words
from simulator.testing.work import first_job, load, run, working

_SCALED = ("QuantizeLinear", "DequantizeLinear")
TERMS = 512
_EXACT = TERMS * 255 * 127
SUMS = {
    ("int32", "saturate"): _EXACT,
    ("int16_pairs", "saturate"): TERMS // 2 * (2**15 - 1),
    ("int24", "saturate"): 2**23 - 1,
    ("int24", "wrap"): _EXACT - 2**24,
    ("int16", "saturate"): 2**15 - 1,
    ("int16", "wrap"): _EXACT - 253 * 2**16,
}
"""What 512 products of 255 and 127 give in each accumulator."""
ROUNDED = {"half_even": (0, 2, 2, 0), "half_away": (1, 2, 3, -1)}
"""What becomes of 0.5, 1.5, 2.5 and -0.5."""


def scales_are_as_asked(subject: Subject) -> str | None:
    """With ``scales: power_of_two`` every stored scale of an ONNX file is a power of two."""
    for variant in working(subject):
        if variant.options.get("scales") == "power_of_two" and subject.offer.make.format == "onnx":
            graph = onnx.load_from_string(first_job(variant)[0].tobytes()).graph
            used = {n.input[1] for n in graph.node if n.op_type in _SCALED}
            for tensor in graph.initializer:
                if tensor.name in used:
                    halves = np.frexp(to_array(tensor))[0]
                    expect((halves == 0.5).all(), f"{words(variant)}: {tensor.name} is none")
    return None


def sums_are_as_asked(subject: Subject) -> str | None:
    """Products of 255 and 127 show the ``accumulator``, sums between two codes the ``rounding``."""
    if "accumulator" not in subject.options:
        return None
    large, small = np.full((TERMS, 4), 127, np.int8), np.zeros((TERMS, 4), np.int8)
    small[0] = 1, 3, 5, -1
    bright, one = np.full((1, TERMS), 255, np.float32), np.eye(1, TERMS, dtype=np.float32)
    for variant in (subject, *(first for first, *_ in subject.variants())):
        options = variant.options
        want = SUMS.get((options["accumulator"], options["overflow"]))
        if want is not None:
            _gives(variant, large, bright, (want,) * 4, 0)
        _gives(variant, small, one, ROUNDED[options["rounding"]], 2)
    return None


def _gives(variant: Subject, weights: Array, x: Array, want: tuple[int, ...], step: int) -> None:
    """Demand the output of a matrix product of codes, which are stored in steps, if any."""
    names = {"one": np.float32(1), "step": np.float32(step or 1), "w": weights}
    names |= {"none": np.array(0, np.uint8), "signed": np.array(0, np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "none"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "one", "none"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "one", "signed"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["c" if step else "y"]),
        helper.make_node("QuantizeLinear", ["c", "step", "signed"], ["d"]),
        helper.make_node("DequantizeLinear", ["d", "one", "signed"], ["y"]),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in (("x", TERMS), ("y", 4))
    ]
    stored = [from_array(np.asarray(value), name) for name, value in names.items()]
    graph = helper.make_graph(nodes if step else nodes[:4], "sums", ports[:1], ports[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = variant.workshop.scratch("sums.onnx")
    onnx.save(model, str(file))
    runtime = load(variant, file, "sums")
    try:
        got = tuple(run(runtime, x)[0].tolist())
    finally:
        runtime.close()
    expect(got == want, f"{words(variant)}: {want} expected, got {got}")
