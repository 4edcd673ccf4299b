"""A model file whose graph normalizes itself gets pixels: nothing is done twice."""

import numpy as np
import onnx
import openvino as ov
import pytest
import refusals
import tiny
from one_stack import outputs
from onnx import TensorProto, helper, numpy_helper
from openvino.preprocess import ColorFormat, PrePostProcessor, ResizeAlgorithm
from PIL import Image

import simulator
from simulator.profile.load import load

MEAN, STD = [127.0, 126.0, 125.0], [64.0, 63.0, 62.0]
"""On 0-255, in the order of the network's channels."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A card of a network with a convolution that tells the channels apart."""
    weights = np.random.default_rng(0).normal(size=(3, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["y"]),
    ]
    given = dict(tiny.SPEC["input"], mean=MEAN, std=STD)
    folder = tmp_path_factory.mktemp("embedded")
    return tiny.card(folder, tiny.model(nodes, constants={"k": weights}), input=given)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return tiny.data(tmp_path_factory.mktemp("photos"), each=1)


def pixels(photos):
    """The first photograph as pillow_fp32 sizes it, by Pillow itself."""
    assert load("pillow_fp32").spec.resize.interpolation == "bicubic"
    file = sorted(photos.rglob("*.jpg"))[0]
    return np.asarray(Image.open(file).convert("RGB").resize((32, 32), Image.Resampling.BICUBIC))


def prepared(made, name, prepare, compress=False):
    """Let OpenVINO write its own preprocessing into an IR."""
    steps = PrePostProcessor(ov.convert_model(made.parent / "model.onnx"))
    steps.input().model().set_layout(ov.Layout("NCHW"))
    prepare(steps.input())
    path = made.parent / f"{name}.xml"
    ov.save_model(steps.build(), path, compress_to_fp16=compress)
    return path


def normalized(given):
    given.preprocess().convert_element_type(ov.Type.f32).mean(MEAN).scale(STD)


def of_bytes(given):
    given.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    normalized(given)


def of_bgr(given):
    given.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    given.tensor().set_color_format(ColorFormat.BGR)
    given.preprocess().convert_color(ColorFormat.RGB)
    normalized(given)


def of_floats(given):
    given.preprocess().mean(MEAN).scale(STD)


def of_units(given):
    given.preprocess().mean([one / 255 for one in MEAN]).scale([one / 255 for one in STD])


def nhwc(rgb):
    return rgb[None]


CASES = {
    "bytes": (of_bytes, False, nhwc),
    "bytes, weights and constants in FP16": (of_bytes, True, nhwc),
    "bytes in the order BGR": (of_bgr, False, lambda rgb: rgb[None, ..., ::-1]),
    "pixels as floats": (of_floats, False, lambda rgb: rgb.transpose(2, 0, 1)[None].astype("f4")),
    "pixels from 0 to 1": (
        of_units, False, lambda rgb: rgb.transpose(2, 0, 1)[None].astype("f4") / np.float32(255)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("prepare", "compress", "fed"), CASES.values(), ids=CASES)
def test_openvino_normalizes_in_the_graph(made, photos, cache, prepare, compress, fed):
    path = prepared(made, f"{prepare.__name__}{compress}", prepare, compress)

    tensor, stack, found = outputs(made, photos, "pillow_fp32", f"precision.artifact={path}")

    wanted = np.ascontiguousarray(fed(pixels(photos)))
    threads = stack.profile.spec.runtime.threads
    asked = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    model = ov.Core().compile_model(path, "CPU", asked)
    assert tensor.dtype == wanted.dtype
    np.testing.assert_array_equal(tensor, wanted)
    np.testing.assert_array_equal(next(iter(found.values())), model(wanted)[0])
    _, _, usual = outputs(made, photos, "pillow_fp32")
    np.testing.assert_allclose(next(iter(found.values())), usual["y"], atol=5e-3)
    assert any(f"{path.name} normalizes its input itself" in one.text for one in stack.notices)
    assert not any("other numbers than in training" in one.text for one in stack.notices)


def onnx_of_bytes(made, mean=MEAN):
    """The network behind Cast, Transpose, Sub and Div, as exporters write them."""
    model = onnx.load(made.parent / "model.onnx")
    graph = model.graph
    graph.input[0].CopyFrom(helper.make_tensor_value_info("raw", TensorProto.UINT8, [1, 32, 32, 3]))
    shape = (1, 3, 1, 1)
    for name, values in (("mean", mean), ("std", STD)):
        array = np.array(values, np.float32).reshape(shape)
        graph.initializer.append(numpy_helper.from_array(array, name))
    steps = [
        helper.make_node("Cast", ["raw"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["f"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Sub", ["t", "mean"], ["s"]),
        helper.make_node("Div", ["s", "std"], ["x"]),
    ]
    nodes = [*steps, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    path = made.parent / "raw.onnx"
    onnx.save(model, path)
    return path


def test_an_onnx_file_normalizes_in_the_graph(made, photos, cache):
    path = onnx_of_bytes(made)

    tensor, _, found = outputs(made, photos, "pillow_fp32", f"precision.artifact={path}")

    np.testing.assert_array_equal(tensor, pixels(photos)[None])
    _, _, usual = outputs(made, photos, "pillow_fp32")
    np.testing.assert_allclose(found["y"], usual["y"], atol=1e-5)


def test_another_mean_in_the_file_is_told(made, photos, cache):
    path = onnx_of_bytes(made, mean=[103.0, 116.0, 123.0])

    _, stack, _ = outputs(made, photos, "pillow_fp32", f"precision.artifact={path}")

    told = [one.text for one in stack.notices if "other numbers than in training" in one.text]
    assert told == [
        "raw.onnx computes (x - [103, 116, 123]) / [64, 63, 62] of pixels x, and the model card "
        "has [127, 126, 125] and [64, 63, 62]: the network gets other numbers than in training"
    ]


def test_numbers_of_the_profile_are_not_applied_as_well(made, photos, cache):
    path = onnx_of_bytes(made)
    own = [f"normalize.mean={MEAN}", f"normalize.std={STD}"]
    asked = f"precision.artifact={path}"

    tensor, *_ = outputs(made, photos, "pillow_fp32", asked, *own)
    (line,) = refusals.refused(
        outputs, made, photos, "pillow_fp32", asked, "normalize.mean=[1, 2, 3]"
    )

    np.testing.assert_array_equal(tensor, pixels(photos)[None])
    assert "normalize: raw.onnx normalizes its input itself" in line
    assert "write mean: model, std: model" in line


def resizing(given):
    given.tensor().set_spatial_static_shape(48, 48)
    given.preprocess().resize(ResizeAlgorithm.RESIZE_LINEAR)


def of_nv12(given):
    given.tensor().set_element_type(ov.Type.u8).set_color_format(ColorFormat.NV12_TWO_PLANES)
    given.preprocess().convert_color(ColorFormat.RGB).convert_element_type(ov.Type.f32)
    given.preprocess().convert_layout(ov.Layout("NCHW"))


@pytest.mark.parametrize(
    ("prepare", "words"),
    [(resizing, "its graph resizes its input"), (of_nv12, "its graph converts NV12 to RGB")],
)
def test_what_cannot_be_left_out_is_refused(made, photos, cache, prepare, words):
    path = prepared(made, "steps", prepare)

    (line,) = refusals.refused(outputs, made, photos, "pillow_fp32", f"precision.artifact={path}")

    assert line.startswith(f"steps.xml: {words}")


def test_a_reversal_that_left_no_trace_is_found_by_the_answers(made, photos, cache, tmp_path):
    """OpenVINO folds it into the first weights; a mean of equal numbers does not tell it either."""
    card = tiny.card(tmp_path, onnx.load(made.parent / "model.onnx"))
    gray, unit = [127.0] * 3, [64.0] * 3

    def of_gray_bgr(given):
        given.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
        given.tensor().set_color_format(ColorFormat.BGR)
        given.preprocess().convert_color(ColorFormat.RGB)
        given.preprocess().convert_element_type(ov.Type.f32).mean(gray).scale(unit)

    path = prepared(made, "gray", of_gray_bgr)
    asked = f"precision.artifact={path}"

    _, stack, _ = outputs(card, photos, "pillow_fp32", asked)
    _, right, _ = outputs(card, photos, "pillow_fp32", asked, "color.order=bgr")

    (told,) = [one.text for one in stack.notices if "outputs differ" in one.text]
    assert told.endswith("; fed otherwise, by 0.00%: --set STACK.color.order=bgr")
    (told,) = [one.text for one in right.notices if "outputs differ" in one.text]
    assert "by 0.00%" in told and "otherwise" not in told


def test_another_network_of_the_same_shapes_is_told(made, photos, cache):
    path = made.parent / "other.onnx"
    onnx.save(tiny.classifier(), path)

    _, stack, _ = outputs(made, photos, "pillow_fp32", f"precision.artifact={path}")

    (told,) = [one for one in stack.notices if "outputs differ" in one.text]
    assert told.text.endswith(": another network, or fed with other numbers than in training")
    assert told.is_strict


def test_a_quantizer_written_as_arithmetic_is_no_normalization(made, photos, cache):
    """x / step, rounded, times step: as DoReFa's and PACT's files begin."""
    model = onnx.load(made.parent / "model.onnx")
    held = {"step": 0.02, "low": -127.0, "high": 127.0}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.float32(value), name) for name, value in held.items()
    )
    model.graph.node[0].input[0] = "rounded"
    for kind, given, made_of in (
        ("Mul", ["codes", "step"], "rounded"), ("Round", ["held"], "codes"),
        ("Clip", ["scaled", "low", "high"], "held"), ("Div", ["x", "step"], "scaled"),
    ):  # fmt: skip
        model.graph.node.insert(0, helper.make_node(kind, given, [made_of]))
    path = made.parent / "codes.onnx"
    onnx.save(model, path)

    (right, *_), (found, stack, *_) = (
        outputs(made, photos, "pillow_fp32", *more) for more in ([], [f"precision.artifact={path}"])
    )
    np.testing.assert_array_equal(found, right)
    assert not [one for one in stack.notices if "normalizes" in one.text]


def test_a_diagnosis_feeds_both_networks_alike(made, photos, cache, tmp_path):
    """One is fed numbers, the other pixels: what turns one into the other is between them."""
    result = simulator.diagnose(
        "pillow_fp32", "opencv_fp32", deploy_artifact=onnx_of_bytes(made), model=made, data=photos,
        out=tmp_path / "run",
    )  # fmt: skip

    states = {part.part: part.state for part in result.summary.parts}
    assert states["front end"] == "differs"
    assert states["network"] in ("equal", "rounding")


def test_boxes_are_not_suppressed_twice(made, photos, cache):
    model = onnx.load(made.parent / "model.onnx")
    boxes = numpy_helper.from_array(np.zeros((1, 4, 4), np.float32), "boxes")
    scores = numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "scores")
    model.graph.initializer.extend([boxes, scores])
    model.graph.node.append(helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["kept"]))
    path = made.parent / "nms.onnx"
    onnx.save(model, path)

    (line,) = refusals.refused(outputs, made, photos, "pillow_fp32", f"precision.artifact={path}")

    assert line.startswith("nms.onnx suppresses boxes in its graph (NonMaxSuppression)")
