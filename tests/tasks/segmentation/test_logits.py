import math
from dataclasses import replace
from fractions import Fraction

import cv2
import numpy as np
import onnxruntime
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from PIL import Image
from shared_data import shared
from torch.nn import functional

from simulator.errors import ModelError, SampleError
from simulator.modalities.image.cropping import Cut
from simulator.modalities.image.geometry import Geometry, Placement
from simulator.profile.postprocess import Postprocess
from simulator.tasks.segmentation.card import Sampling, SegmentationOutput, resolve
from simulator.tasks.segmentation.confusion import confusion, tally
from simulator.tasks.segmentation.logits import decode
from simulator.tasks.segmentation.sampling import in_image, resize, resized

SIZES = [((3, 4), (7, 9)), ((5, 6), (5, 6)), ((9, 7), (4, 3)), ((33, 33), (257, 65)),
         ((1, 4), (3, 1)), ((4, 8), (2, 4))]  # fmt: skip
NEAREST = {
    "half_pixel": "round_prefer_ceil",
    "align_corners": "round_prefer_ceil",
    "asymmetric": "floor",
}


def card(**fields):
    spec = {
        "scores": "y",
        "kind": "logits",
        "logits_upsample": {"mode": "bilinear", "coordinate_transformation_mode": "half_pixel"},
        "argmax": "after",
        "output_stride": 1,
        "mask_resize": {
            "of": "labels", "mode": "nearest", "coordinate_transformation_mode": "half_pixel",
        },
    } | fields  # fmt: skip
    return SegmentationOutput.model_validate({k: v for k, v in spec.items() if v is not None})


def run(scores, placement, asked=None, **fields):
    """Decode the output ``y`` of a network of the placement's size."""
    network = placement.network_height, placement.network_width
    chosen = resolve(card(**fields), Postprocess.model_validate(asked or {}), network)
    return decode({"y": scores}, chosen, placement)


def whole(height, width, network_height, network_width):
    """The placement of an image that was squashed."""
    geometry = Geometry("squash", network_height, network_width)
    return geometry.placement((height, width), (network_height, network_width))


def same(height, width):
    return whole(height, width, height, width)


def by_us(plane, size, mode, coordinates):
    sampling = Sampling(mode, coordinates)
    taps = (resized(*pair, sampling) for pair in zip(size, plane.shape, strict=True))
    return resize(plane, *taps)


def by_onnx(plane, size, mode, coordinates):
    options = {"nearest_mode": NEAREST[coordinates]} if mode == "nearest" else {}
    node = helper.make_node(
        "Resize", ["x", "", "", "sizes"], ["y"],
        mode=mode, coordinate_transformation_mode=coordinates, **options,
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, *plane.shape])
    sizes = helper.make_tensor_value_info("sizes", TensorProto.INT64, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x, sizes], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    feed = {"x": plane[None, None], "sizes": np.array([1, 1, *size])}
    return ReferenceEvaluator(model).run(None, feed)[0][0, 0]


def by_torch(plane, size, **options):
    return functional.interpolate(torch.from_numpy(plane)[None, None], size, **options)[0, 0]


def plane(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("coordinates", NEAREST)
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_bilinear_is_that_of_onnx(shape, size, coordinates):
    found = by_us(plane(shape), size, "bilinear", coordinates)

    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, by_onnx(plane(shape), size, "linear", coordinates), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_bilinear_is_that_of_torch(shape, size, align):
    found = by_us(plane(shape), size, "bilinear", "align_corners" if align else "half_pixel")
    exact = plane(shape).astype(np.float64)  # so that torch places pixels in float64, too
    expected = by_torch(exact, size, mode="bilinear", align_corners=align)

    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("coordinates", NEAREST)
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_nearest_is_that_of_onnx_with_the_rounding_that_is_documented(shape, size, coordinates):
    found = by_us(plane(shape), size, "nearest", coordinates)

    assert np.array_equal(found, by_onnx(plane(shape), size, "nearest", coordinates))


@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_nearest_is_that_of_the_libraries_that_are_named(shape, size):
    """Half-pixel: PyTorch's nearest-exact and Pillow; asymmetric: PyTorch's nearest and OpenCV."""
    values = plane(shape)
    half, plain = (by_us(values, size, "nearest", c) for c in ("half_pixel", "asymmetric"))

    assert np.array_equal(half, by_torch(values, size, mode="nearest-exact"))
    assert np.array_equal(
        half, Image.fromarray(values).resize(size[::-1], Image.Resampling.NEAREST)
    )
    assert np.array_equal(plain, by_torch(values, size, mode="nearest"))
    assert np.array_equal(plain, cv2.resize(values, size[::-1], interpolation=cv2.INTER_NEAREST))


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 70), st.integers(1, 70), st.sampled_from(sorted(NEAREST)))
def test_nearest_takes_the_pixel_that_fractions_say(count, size, coordinates):
    def pixel(i):
        if coordinates == "half_pixel":
            return math.floor(Fraction(2 * i + 1, 2) * Fraction(size, count))
        if coordinates == "asymmetric":
            return math.floor(Fraction(i * size, count))
        return math.floor(Fraction(i * (size - 1), max(count - 1, 1)) + Fraction(1, 2))

    found = resized(count, size, Sampling("nearest", coordinates)).low

    assert found.tolist() == [pixel(i) for i in range(count)]


def test_the_argmax_before_and_after_upsampling_by_hand():
    """Class 0 is 0 everywhere, class 1 is -4 then 2: asymmetric places 0, 1/2, 1, 1 give
    -4, -1, 2, 2, and nearest labels 0, 0, 1, 1; with -1 then 2 the half is 1/2, so it is class 1.
    """
    coordinates = {"coordinate_transformation_mode": "asymmetric"}
    fields = {"logits_upsample": {"mode": "bilinear", **coordinates}}
    for left, after in ((-4, [0, 0, 1, 1]), (-1, [0, 1, 1, 1])):
        scores = np.array([[[[0, 0]], [[left, 2]]]], np.float32)

        assert run(scores, same(1, 4), **fields).tolist() == [after]
        assert run(scores, same(1, 4), {"argmax": "before"}, **fields).tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize("coordinates", NEAREST)
def test_with_nearest_it_does_not_matter_when_classes_are_chosen(coordinates):
    scores = plane((1, 5, 6, 7))
    asked = {"logits_upsample": {"mode": "nearest", "coordinate_transformation_mode": coordinates}}
    place = whole(31, 45, 20, 24)

    assert np.array_equal(
        run(scores, place, asked), run(scores, place, asked | {"argmax": "before"})
    )


def test_the_resize_to_the_image_of_labels_and_of_logits():
    """Both are held against torch: upsample to 20x24, then on to 31x45."""
    scores = plane((1, 5, 6, 7))
    small = functional.interpolate(torch.from_numpy(scores), (20, 24), mode="bilinear")
    logits = functional.interpolate(small, (31, 45), mode="bilinear").argmax(1)[0]
    labels = functional.interpolate(small.argmax(1)[None].float(), (31, 45), mode="nearest-exact")
    place = whole(31, 45, 20, 24)
    asked = {"mask_resize": {"of": "logits", "mode": "bilinear"}}

    assert np.array_equal(run(scores, place), labels[0, 0])
    assert np.array_equal(run(scores, place, asked), logits)


def test_an_output_stride_chooses_classes_at_fewer_pixels():
    """Of 20x21 by 8, rounded up, 3x3 are left."""
    scores = plane((1, 4, 6, 7))
    small = functional.interpolate(torch.from_numpy(scores), (3, 3), mode="bilinear").argmax(1)
    expected = functional.interpolate(small[None].float(), (20, 21), mode="nearest-exact")[0, 0]

    assert np.array_equal(run(scores, same(20, 21), {"output_stride": 8}), expected)


@pytest.mark.parametrize("position", ["center", "top_left"])
@pytest.mark.parametrize("of", ["labels", "logits"])
def test_a_letterbox_is_cut_out_and_resized_alone(position, of):
    """37x80 pixels in 24x32: 15x32 (14.8 rounded), which begin in row 4 or 0."""
    geometry = Geometry("letterbox", 24, 32, rounding="dali", position=position)
    place = geometry.placement((37, 80), geometry.resized(37, 80))
    scores = plane((1, 6, 24, 32))
    top = 4 if position == "center" else 0
    cut = torch.from_numpy(scores[:, :, top : top + 15])
    if of == "logits":
        expected = functional.interpolate(cut, (37, 80), mode="bilinear").argmax(1)[0]
    else:
        labels = cut.argmax(1)[None].float()
        expected = functional.interpolate(labels, (37, 80), mode="nearest-exact")[0, 0]
    mode = "bilinear" if of == "logits" else "nearest"
    asked = {"mask_resize": {"of": of, "mode": mode}}

    found = run(scores, place, asked, logits_upsample=None)

    assert np.array_equal(found, expected)


def test_unletterbox_by_one_ratio_and_by_half_a_pixel():
    """5x8 in 6x8 begins in row 0, or exactly at 0.5: places 0.5 to 4.5, which round to 1 to 5.

    5x9 in 6x8 has 4 rows (4.44 down) from row 1 on. Resized by 4/5, its places are 0.9, 1.7, 2.5,
    3.3, 4.1; by the ratio 8/9 they are 0.94, 1.83, 2.72, 3.61 and 4.5, less than which is where
    the image ends: 1 + 4.44 - 1.
    """
    rows = np.arange(6)
    scores = -(np.abs(np.arange(6)[:, None] - rows).astype(np.float32))
    scores = np.broadcast_to(scores[None, :, :, None], (1, 6, 6, 8)).copy()
    geometry = Geometry("letterbox", 6, 8, rounding="floor")
    cases = [
        ((5, 8), {}, [0, 1, 2, 3, 4]),
        ((5, 8), {"offset": "exact"}, [1, 2, 3, 4, 5]),
        ((5, 9), {}, [1, 2, 3, 3, 4]),
        ((5, 9), {"scale": "ratio"}, [1, 2, 3, 4, 4]),
    ]
    for size, unletterbox, expected in cases:
        place = geometry.placement(size, geometry.resized(*size))
        found = run(scores, place, {"unletterbox": unletterbox}, logits_upsample=None)

        assert found[:, 0].tolist() == expected


def test_one_ratio_is_nothing_to_a_squashed_image():
    scores, place = plane((1, 5, 6, 7)), whole(31, 45, 20, 24)

    assert np.array_equal(
        run(scores, place), run(scores, place, {"unletterbox": {"scale": "ratio"}})
    )


def test_pixels_that_were_cropped_away_have_no_answer():
    """8x16 pixels scaled to 4x8, of which columns 2 to 5 are kept: 4 to 11 of the image."""
    geometry = Geometry("short_side_crop", 4, 4, short_side=4)
    place = geometry.placement((8, 16), geometry.resized(8, 16))
    scores = plane((1, 5, 4, 4))

    found = run(scores, place, logits_upsample=None)

    labels = scores[0].argmax(0)
    assert np.array_equal(found[:, 4:12], labels.repeat(2, 0).repeat(2, 1))
    assert (found[:, :4] == 255).all()
    assert (found[:, 12:] == 255).all()


def test_pixels_that_were_cut_off_before_the_resize_have_no_answer():
    """The middle 4 x 8 of 8 x 13 pixels, resized to 4 x 8: rows 1 to 4 and columns 3 to 10."""
    place = replace(whole(4, 8, 4, 8), cut=Cut(1, 3, 3, 2))
    scores = plane((1, 5, 4, 8))

    found = run(scores, place, logits_upsample=None)

    assert found.shape == (8, 13)
    assert np.array_equal(found[1:5, 3:11], scores[0].argmax(0))
    assert (found == 255).sum() == 8 * 13 - 4 * 8


def test_a_crop_is_placed_by_an_independent_rule():
    """Odd sizes, three strides: each image pixel by fractions, in plain Python."""
    geometry = Geometry("short_side_crop", 15, 13, short_side=17)
    place = geometry.placement((23, 31), geometry.resized(23, 31))
    for stride in (1, 2, 4):
        size = -(-15 // stride), -(-13 // stride)
        scores = plane((1, 4, *size))
        labels = scores[0].argmax(0)
        expected = np.full((23, 31), 255)
        for i in range(23):
            for j in range(31):
                y = Fraction(2 * i + 1, 2) * Fraction(place.rows, 23) + place.top
                x = Fraction(2 * j + 1, 2) * Fraction(place.columns, 31) + place.left
                if 0 <= y < 15 and 0 <= x < 13:
                    expected[i, j] = labels[int(y * size[0] / 15), int(x * size[1] / 13)]

        found = run(scores, place, logits_upsample=None, output_stride=stride)

        assert np.array_equal(found, expected)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.tuples(*[st.integers(1, 40)] * 4),
    st.sampled_from(["squash", "letterbox"]),
    st.sampled_from(sorted(NEAREST)),
    st.sampled_from(["labels", "logits"]),
    st.sampled_from([{"scale": "ratio"}, {"offset": "exact"}]),
    st.integers(1, 9),
)
def test_every_image_gets_a_mask_of_its_size(sizes, kind, coordinates, of, unletterbox, stride):
    height, width, *network = sizes
    geometry = Geometry(kind, *network)
    place = geometry.placement((height, width), geometry.resized(height, width))
    asked = {
        "mask_resize": {
            "of": of, "mode": "bilinear" if of == "logits" else "nearest",
            "coordinate_transformation_mode": coordinates,
        },
        "unletterbox": unletterbox,
        "output_stride": stride,
    }  # fmt: skip

    found = run(plane((1, 3, 4, 5)), place, asked)

    assert (found.shape, found.dtype) == ((height, width), np.uint8)
    assert found.max() < 3


def test_a_very_long_image_is_placed_without_overflow():
    """10,000,019 pixels (a prime) in a row, and a network of 16384x16384."""
    place = Placement(1, 10_000_019, 1, 16384, 8191, 0, 16384, 16384, True)
    chosen = resolve(
        card(), Postprocess.model_validate({"unletterbox": {"scale": "ratio"}}), (16384, 16384)
    )
    (_, _), (columns, seen) = in_image(place, chosen)

    assert (columns.low[0], columns.low[-1], seen.all()) == (0, 16383, True)
    assert (np.diff(columns.low) >= 0).all()


def test_of_equal_scores_the_lowest_class_wins():
    scores = np.array([1, 3, 3, 2, 3], np.float32).reshape(1, 5, 1, 1)

    assert run(scores, same(2, 2)).tolist() == [[1, 1], [1, 1]]


def test_channels_may_be_last_and_scores_may_be_integers():
    scores = np.random.default_rng(1).integers(0, 255, (1, 5, 6, 7), np.uint8)
    expected = run(scores.astype(np.float32), same(12, 14))

    assert np.array_equal(run(scores, same(12, 14), kind="probabilities"), expected)
    last = scores.transpose(0, 2, 3, 1)
    assert np.array_equal(run(last, same(12, 14), layout="NHWC"), expected)


LABELS = {"kind": "labels", "logits_upsample": None, "argmax": None}


@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 1, 2, 3), (1, 2, 3, 1)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float32])
def test_labels_of_a_model_with_argmax_inside(shape, dtype):
    values = np.array([[0, 7, 254], [1, 2, 3]])

    found = run(values.reshape(shape).astype(dtype), same(2, 3), **LABELS)

    assert found.dtype == np.uint8
    assert np.array_equal(found, values)


@pytest.mark.parametrize("strange", [-1, 255, 0.5])
def test_labels_that_are_none_are_refused(strange):
    with pytest.raises(ModelError, match="'y': labels are whole numbers from 0 to 254, got"):
        run(np.full((1, 2, 2), strange, np.float32), same(2, 2), **LABELS)


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "an inf"), (-np.inf, "an inf")]
)
def test_numbers_that_are_none_are_the_samples_fault(value, name):
    scores = plane((1, 3, 4, 5))
    scores[0, 1, 2, 3] = value

    with pytest.raises(SampleError, match=f"the model gave {name}"):
        run(scores, same(4, 5))


@pytest.mark.parametrize(
    ("scores", "fields", "words"),
    [
        (np.zeros((1, 3, 4)), {}, r"'y': logits are \(1, C, H, W\), got \(1, 3, 4\)"),
        (np.zeros((2, 3, 4, 5)), {}, r"got \(2, 3, 4, 5\)"),
        (np.zeros((1, 1, 4, 5)), {}, "1 classes, but a mask can have 2 to 255"),
        (np.zeros((1, 256, 4, 5)), {}, "256 classes"),
        (np.full((1, 3, 4, 5), 1.5), {"kind": "probabilities"}, "says probabilities"),
        (np.zeros((1, 3, 4, 5), bool), {}, "expected numbers, got bool"),
        (np.zeros((1, 3, 4, 4)), {"logits_upsample": None}, r"chosen at 4x5, but it is \(4, 4\)"),
    ],
)
def test_an_output_that_the_card_does_not_promise(scores, fields, words):
    with pytest.raises(ModelError, match=words):
        run(scores, same(4, 5), **fields)


def test_an_output_that_is_not_there():
    with pytest.raises(ModelError, match="no output 'y'; the model gave other"):
        decode({"other": plane((1, 3, 4, 5))}, resolve(card(), Postprocess(), (4, 5)), same(4, 5))


DEEPLAB = yaml.safe_load("""
scores: t179
kind: logits
logits_upsample: {mode: bilinear, coordinate_transformation_mode: align_corners}
argmax: after
output_stride: 1
mask_resize: {of: labels, mode: nearest, coordinate_transformation_mode: half_pixel}
""")


@pytest.mark.prove
def test_the_three_measured_figures_of_deeplab():
    """README of the shared data: align_corners .396, half-pixel .390, nearest .381."""
    coco, model = shared("coco"), shared("models") / "deeplabv3_257_logits33.onnx"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    asked = {
        0.396: {},
        0.390: {"coordinate_transformation_mode": "half_pixel"},
        0.381: {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
    }
    spec = SegmentationOutput.model_validate(DEEPLAB)
    chosen = {
        figure: resolve(spec, Postprocess.model_validate({"logits_upsample": words}), (257, 257))
        for figure, words in asked.items()
    }
    rows = {figure: [] for figure in asked}
    for file in sorted((coco / "voc21_masks").glob("*.png")):
        truth = np.asarray(Image.open(file))
        image = Image.open(coco / "images" / f"{file.stem}.jpg").convert("RGB")
        pixels = np.asarray(image.resize((257, 257), Image.Resampling.BILINEAR), np.float32)
        scores = session.run(None, {"input": (pixels / 127.5 - 1).transpose(2, 0, 1)[None]})[0]
        for figure, one in chosen.items():
            mask = decode({"t179": scores}, one, whole(*truth.shape, 257, 257))
            rows[figure].append(confusion(truth, mask, 21))

    assert len(rows[0.396]) == 149
    for figure, found in rows.items():
        assert round(tally(found, 21).values(range(21))["mIoU"], 3) == figure
