"""FP8, MX, NVFP4 and NF4: bit for bit what torchao, ml_dtypes, ONNX Runtime and NNCF round to."""

import itertools

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import tiny
import torch
from onnx import TensorProto, helper

from backends.number_formats.formats import FORMATS
from simulator import registry
from simulator.contract import Stage
from simulator.errors import ModelError
from simulator.model.formats import OPENVINO_IR
from simulator.profile.precision import Precision
from simulator.testing import models

NOTHING = {"op_types": [], "nodes": [], "reason": ""}
RNG = np.random.default_rng(0)
MX = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4")
MODES = ("floor", "rceil", "even")
SPREAD = np.exp2(RNG.integers(-8, 8, (32, 96)))
VALUES = (RNG.normal(size=(32, 96)) * SPREAD).astype(np.float32)
VALUES[3, :32], VALUES[5, :32], VALUES[6, 32] = 0, 2.0**-40, 7.75
"""A block of zeros, one of tiny numbers, and one that is next to a power of two."""
HALVES = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
HALVES = HALVES[np.isfinite(HALVES)]
"""All numbers of FP16: ties and subnormal numbers of FP8 are among them."""


def offered(backend, stage, options):
    return next(
        offer
        for offer in registry.backend(backend).of(stage)
        if all(value in offer.options.get(name, ()) for name, value in options.items())
    )


def through(x, folder, opset=17, calibration=None, **options):
    """What a product with the identity makes of *x* when its activations are rounded."""
    eye = np.eye(x.shape[1], dtype=np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    rows = ["n", x.shape[1]]
    model = tiny.model([node], {"x": rows}, {"y": rows}, {"w": eye}, opset=opset)
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(model, str(source))
    maker = offered("float_quant", Stage.QUANTIZE, options).make({**options, "keep": NOTHING})
    maker.quantize(source, target, iter([{"x": x if calibration is None else calibration}]))
    onnx.checker.check_model(str(target))
    return ort.InferenceSession(str(target)).run(None, {"x": x})[0]


def blocks(name, **more):
    size = FORMATS[name].block
    return {"format": name, "activations": name, "granularity": "block", "block_size": size, **more}


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(("name", "mode"), list(itertools.product(MX, MODES)))
def test_mx_activations_are_torchaos(tmp_path, name, mode, opset):
    from torchao.prototype.mx_formats import constants
    from torchao.prototype.mx_formats.mx_tensor import MXTensor, ScaleCalculationMode

    kinds = (torch.float8_e4m3fn, torch.float8_e5m2, constants.DTYPE_FP6_E2M3,
             constants.DTYPE_FP6_E3M2, torch.float4_e2m1fn_x2)  # fmt: skip
    kind, scaling = kinds[MX.index(name)], ScaleCalculationMode[mode.upper()]
    want = MXTensor.to_mx(torch.tensor(VALUES), kind, block_size=32, scaling_mode=scaling)

    got = through(VALUES, tmp_path, opset, **blocks(name, scale_mode=mode))

    assert (got == want.dequantize(torch.float32).numpy()).all()


def test_nvfp4_activations_are_torchaos(tmp_path):
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    scale = per_tensor_amax_to_scale(torch.tensor(np.abs(VALUES).max()))
    want = NVFP4Tensor.to_nvfp4(torch.tensor(VALUES), per_tensor_scale=scale)

    got = through(VALUES, tmp_path, **blocks("nvfp4"))

    assert (got == want.dequantize(torch.float32).numpy()).all()


@pytest.mark.parametrize("overflow", ["saturate", "inf"])
@pytest.mark.parametrize(
    ("name", "kind", "largest"),
    [("fp8_e4m3", "FLOAT8E4M3FN", 448), ("fp8_e5m2", "FLOAT8E5M2", 57344)],
)
def test_fp8_activations_are_onnx_runtimes(tmp_path, name, kind, largest, overflow):
    """Calibrated so that the scale is 1. Without saturation ONNX Runtime 1.31 makes NaN, not
    infinity, of E5M2 from 61440 on, and 448, not NaN, of E4M3 from 480 to 496."""
    x = HALVES[:, None]
    element = getattr(TensorProto, kind)
    node = helper.make_node("Cast", ["x"], ["q"], to=element, saturate=int(overflow != "inf"))
    back = helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)
    cast = tiny.model([node, back], {"x": x.shape}, {"y": x.shape}, {}, opset=19)
    want = ort.InferenceSession(cast.SerializeToString()).run(None, {"x": x})[0]

    got = through(
        x, tmp_path, calibration=np.full((1, 1), largest, np.float32), format=name,
        activations=name, granularity="per_tensor", overflow=overflow, ranges="calibrated",
    )  # fmt: skip

    same = (got == want) | (np.isnan(got) & np.isnan(want))
    first, last = (61440, np.inf) if name == "fp8_e5m2" else (480, 496)
    wrong = (np.abs(x) >= first) & (np.abs(x) < last) & (overflow == "inf")
    assert same[~wrong].all()
    assert not np.isfinite(got[wrong]).any()


def test_a_scale_of_each_token_needs_no_other_token(tmp_path):
    asked = {"format": "fp8_e4m3", "activations": "fp8_e4m3", "granularity": "per_tensor"}
    asked |= {"overflow": "saturate", "ranges": "dynamic"}

    both, alone = through(VALUES, tmp_path, **asked), through(VALUES[:1], tmp_path, **asked)

    assert (both[:1] == alone).all()
    assert (both[3, :32] == 0).all()


def levels(exponent, mantissa, largest):
    """Every finite number by the formula of the OCP specifications, from its bits."""
    bias, made = 2 ** (exponent - 1) - 1, set()
    for e, m in itertools.product(range(2**exponent), range(2**mantissa)):
        scale = 2.0 ** (max(e, 1) - bias)
        made.add((bool(e) + m / 2**mantissa) * scale)
    return np.array(sorted(x for x in made if x <= largest))


@pytest.mark.parametrize(
    ("name", "bits"),
    [("fp8_e4m3", (4, 3, 448)), ("fp8_e5m2", (5, 2, 57344)), ("mxfp6_e2m3", (2, 3, 7.5)),
     ("mxfp6_e3m2", (3, 2, 28)), ("mxfp4", (2, 1, 6))],
)  # fmt: skip
@pytest.mark.parametrize("opset", [13, 21])
def test_every_number_of_a_format_is_stored_exactly(tmp_path, name, bits, opset):
    """Also with signs, and in a model that has no FLOAT8 and no UINT4."""
    own = levels(*bits)
    width = FORMATS[name].block or len(own)
    rows = [own[n : n + width - 1] for n in range(0, len(own), width - 1)]
    table = np.zeros((len(rows), width), np.float32)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)], row[-1] = values, -bits[2]
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    shapes = {"x": [width, width]}, {"y": [width, len(rows)]}
    onnx.save(tiny.model([node], *shapes, {"w": table.T}, opset=opset), str(tmp_path / "s.onnx"))
    asked = {"storage": name, "granularity": "block" if FORMATS[name].block else "per_tensor"}
    maker = offered("weight_only", Stage.CAST, asked).make
    more = {"block_size": 32, "scale_mode": "floor", "keep": NOTHING}
    maker({**asked, **more}).cast(tmp_path / "s.onnx", tmp_path / "t.onnx")

    x = np.eye(width, dtype=np.float32)
    got = ort.InferenceSession(str(tmp_path / "t.onnx")).run(None, {"x": x})[0]

    assert (table == got.T).all()
    kinds = {tensor.data_type for tensor in onnx.load(str(tmp_path / "t.onnx")).graph.initializer}
    packed = {"fp8_e4m3": TensorProto.FLOAT8E4M3FN, "fp8_e5m2": TensorProto.FLOAT8E5M2,
              "mxfp4": TensorProto.UINT4}.get(name, TensorProto.UINT8)  # fmt: skip
    assert (packed if opset == 21 else TensorProto.UINT8) in kinds


def test_nncf_scales_mxfp4_as_rceil_does(tmp_path):
    import openvino as ov

    weights = RNG.normal(size=(128, 64)).astype(np.float32)
    last = np.eye(64, dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("MatMul", ["h", "v"], ["y"], name="last"),
    ]
    shapes = {"x": [128, 128]}, {"h": [128, 64], "y": [128, 64]}
    onnx.save(tiny.model(nodes, *shapes, {"w": weights, "v": last}), str(tmp_path / "s.onnx"))
    asked = {"storage": "mxfp4", "granularity": "block", "block_size": 32}
    x, made = np.eye(128, dtype=np.float32), {}
    for backend, more in (("nncf", {"symmetric": True}), ("weight_only", {"scale_mode": "rceil"})):
        target = tmp_path / ("t.xml" if backend == "nncf" else "t.onnx")
        maker = offered(backend, Stage.CAST, {**asked, **more}).make
        maker({**asked, **more, "keep": NOTHING}).cast(tmp_path / "s.onnx", target)
        hints = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
        made[backend] = ov.Core().compile_model(str(target), "CPU", hints)(x)["h"]

    assert (made["nncf"] == made["weight_only"]).all()
    stored = [one.weights for one in OPENVINO_IR.describe(tmp_path / "t.xml").operators]
    assert "mxfp4" in stored


def test_a_format_is_the_storage_and_computes_in_fp32():
    quantizer = {"backend": "float_quant", "format": "mxfp4"}

    with pytest.raises(ValueError, match="makes storage mxfp4 and compute fp32"):
        Precision.model_validate({"storage": "int8", "compute": "int8", "quantizer": quantizer})


def test_nncf_says_to_keep_convolutions(tmp_path):
    onnx.save(models.build("rows1"), str(tmp_path / "s.onnx"))
    asked = {"storage": "mxfp4", "granularity": "block", "block_size": 32, "symmetric": True}
    maker = offered("nncf", Stage.CAST, asked).make({**asked, "keep": NOTHING})

    with pytest.raises(ModelError, match=r"name convolutions .* under precision\.cast\.keep"):
        maker.cast(tmp_path / "s.onnx", tmp_path / "t.xml")
    maker.options = {**asked, "keep": {**NOTHING, "op_types": ["Conv"]}}
    maker.cast(tmp_path / "s.onnx", tmp_path / "t.xml")
    stored = [one.weights for one in OPENVINO_IR.describe(tmp_path / "t.xml").operators]
    assert {"fp32", "mxfp8_e4m3"} <= set(stored)


def through_columns(folder, **options):
    """What a product whose weights stand first makes of (96, 2) activations."""
    eye = np.eye(96, dtype=np.float32)
    node = helper.make_node("MatMul", ["w", "x"], ["y"], name="product")
    model = tiny.model([node], {"x": [96, 2]}, {"y": [96, 2]}, {"w": eye})
    onnx.save(model, str(folder / "source.onnx"))
    maker = offered("float_quant", Stage.QUANTIZE, options).make({**options, "keep": NOTHING})
    maker.quantize(folder / "source.onnx", folder / "target.onnx", iter([]))
    return ort.InferenceSession(str(folder / "target.onnx")).run(None, {"x": VALUES[:2].T})[0]


def test_a_token_may_be_a_column(tmp_path):
    """Where weights stand first, a token is a column; blocks of channels are refused there."""
    asked = {"format": "fp8_e4m3", "activations": "fp8_e4m3", "granularity": "per_tensor"}
    asked |= {"overflow": "saturate", "ranges": "dynamic"}

    assert (through(VALUES[:2], tmp_path, **asked) == through_columns(tmp_path, **asked).T).all()
    with pytest.raises(ModelError, match=r"name it under precision\.quantizer\.keep"):
        through_columns(tmp_path, **blocks("mxfp4", scale_mode="floor"))


def test_a_tensor_may_go_into_a_convolution_and_a_product(tmp_path):
    """Each rounds it in its own way, and the file has every name once."""
    nodes = [
        helper.make_node("Conv", ["x", "c"], ["a"], name="conv"),
        helper.make_node("MatMul", ["x", "w"], ["b"], name="product"),
    ]
    weights = {"c": np.ones((2, 3, 1, 1), np.float32), "w": np.eye(4, dtype=np.float32)}
    outputs = {"a": [1, 2, 4, 4], "b": [1, 3, 4, 4]}
    onnx.save(tiny.model(nodes, {"x": [1, 3, 4, 4]}, outputs, weights), str(tmp_path / "s.onnx"))
    asked = blocks("mxfp4", scale_mode="floor")
    maker = offered("float_quant", Stage.QUANTIZE, asked).make({**asked, "keep": NOTHING})

    maker.quantize(tmp_path / "s.onnx", tmp_path / "t.onnx", iter([]))

    onnx.checker.check_model(str(tmp_path / "t.onnx"), full_check=True)
