"""INT8 with the accumulators of other processors, held against ONNX Runtime on those."""

import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import test_quantizers as quantizers
import tiny
from onnx import helper
from onnxruntime.quantization import quantize_dynamic

from backends.ort.integers import IntegerRuntime
from backends.ort.products import product
from simulator.contract import Stage, Unsupported
from simulator.model.probe import saturates
from simulator.profile.implementations import choose
from simulator.profile.load import load

RUN = """
import sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
x = numpy.load(sys.argv[1])
for file in sys.argv[2:]:
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    numpy.save(file + ".npy", session.run(None, {"x": x})[0])
"""
X = np.random.default_rng(1).uniform(0, 1, (1, 5, 16, 9)).astype(np.float32)
FORMS = [
    {"method": "minmax"},
    {"method": "minmax", "activations": "int8", "symmetric": True},
    {"method": "minmax", "weights": "per_tensor", "symmetric_weights": False},
    {"method": "minmax", "operators": "products", "scales": "power_of_two"},
    None,
]
"""Of the static quantizer; None: the dynamic one."""
HOW = {"accumulator": "int32", "overflow": "saturate", "rounding": "half_even", "device": "cpu"}
HASWELL = ["qemu-x86_64", "-cpu", "Haswell"]


def layers():
    """Odd numbers of channels, groups, strides, dilations, a depthwise layer, Gemm and MatMul."""
    rng = np.random.default_rng(3)
    shapes = {"w1": (7, 5, 3, 3), "w2": (7, 1, 3, 3), "w3": (6, 7, 1, 1), "w4": (8, 3, 3, 2),
              "w5": (336, 9), "w6": (9, 4)}  # fmt: skip
    constants = {name: np.float32(rng.uniform(-0.5, 1, shape)) for name, shape in shapes.items()}
    constants["b1"] = np.linspace(-1, 1, 7, dtype=np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1] * 4, strides=[2, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], group=7, auto_pad="SAME_UPPER"),
        helper.make_node("Conv", ["c", "w3"], ["d"]),
        helper.make_node("Conv", ["d", "w4"], ["e"], group=2, dilations=[1, 2]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("Gemm", ["f", "w5"], ["g"]),
        helper.make_node("MatMul", ["g", "w6"], ["y"]),
    ]
    return tiny.model(nodes, {"x": [1, 5, 16, 9]}, {"y": [1, 4]}, constants)


def made(folder):
    """A file of each form."""
    files = []
    for at, form in enumerate(FORMS):
        place = folder / str(at)
        place.mkdir()
        files.append(place / "target.onnx")
        if form:
            feeds = [X * np.float32(scale) for scale in np.linspace(0.5, 1, 8)]
            quantizers.quantized("onnxruntime", place, feeds, layers(), **form)
        else:
            onnx.save(layers(), str(place / "source.onnx"))
            quantize_dynamic(place / "source.onnx", files[-1], per_channel=True)
    return files


def theirs(files, before=()):
    """The outputs of ONNX Runtime in one process, behind a command."""
    np.save(files[0].with_name("x.npy"), X)
    told = [str(name) for name in (files[0].with_name("x.npy"), *files)]
    subprocess.run([*before, sys.executable, "-c", RUN, *told], check=True, capture_output=True)
    return [np.load(f"{file}.npy").tolist() for file in files]


def ours(files, accumulator):
    runtimes = [IntegerRuntime(file, HOW | {"accumulator": accumulator}) for file in files]
    assert {runtime.effective({}).compute for runtime in runtimes} == {"int8"}
    return [runtime.run({"x": X})["y"].tolist() for runtime in runtimes]


def test_onnxruntime_gives_the_same_bits_on_this_processor(tmp_path):
    files, cut = made(tmp_path), saturates(choose(load("ort_int8"))[Stage.RUNTIME])

    assert ours(files, "int16_pairs" if cut else "int32") == theirs(files)


@pytest.mark.prove
def test_onnxruntime_gives_the_same_bits_on_a_haswell(tmp_path):
    """QEMU emulates it, with ``vpmaddubsw`` and without VNNI."""
    if not shutil.which(HASWELL[0]):
        pytest.skip("qemu-x86_64 is not installed: apt-get install qemu-user")
    files = made(tmp_path)

    pairs = ours(files, "int16_pairs")

    assert pairs == theirs(files, HASWELL)
    assert all(one != other for one, other in zip(pairs, ours(files, "int32"), strict=True))


def sums(accumulator, overflow, x, w):
    zeros = np.uint8(0), np.int8(0)
    how = {"accumulator": accumulator, "overflow": overflow}
    return product(np.array([x], np.uint8), np.array([w], np.int8).T, zeros, how).tolist()


def test_sums_by_hand():
    """100 x 127 = 12,700. Three of them leave 16 bits, and what comes later comes from the end."""
    x, w = [100] * 4, [127, 127, 127, -127]

    assert sums("int32", "saturate", x, w) == [[25400]]
    assert sums("int24", "saturate", x, w) == [[25400]]
    assert sums("int16", "saturate", x, w) == [[32767 - 12700]]
    assert sums("int16", "wrap", x, w) == [[25400]]
    assert sums("int16", "wrap", x[:3], w[:3]) == [[38100 - 65536]]
    assert sums("int16_pairs", "saturate", x, w) == [[25400]]
    assert sums("int16_pairs", "saturate", [255] * 3, [127] * 3) == [[32767 + 32385]]
    assert sums("int16_pairs", "saturate", [255] * 2, [-127] * 2) == [[-32768]]


def test_a_product_that_is_not_emulated_is_named(tmp_path):
    rng = np.random.default_rng(0)
    codes, scales = rng.integers(0, 255, (8, 1, 16), np.uint8), np.ones((8, 1), np.float32)
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"],
        domain="com.microsoft", K=32, N=8, bits=4, block_size=32,
    )  # fmt: skip
    model = tiny.model(
        [node], {"x": [1, 32]}, {"y": [1, 8]}, {"w": codes, "s": scales}, domains=["com.microsoft"]
    )
    onnx.save(model, str(tmp_path / "m.onnx"))

    with pytest.raises(Unsupported, match="no arithmetic of our own for MatMulNBits"):
        IntegerRuntime(tmp_path / "m.onnx", HOW)
