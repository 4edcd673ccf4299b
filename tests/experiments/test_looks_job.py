"""Pictures of what the networks saw, held against Pillow, OpenCV and numpy directly."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import test_recording
import tiny
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from PIL import Image

from simulator import compare
from simulator.errors import SampleError
from simulator.experiments.pictures import feature_maps, gallery
from simulator.experiments.pictures.looks import stem_of
from simulator.modalities.image.shown import thumbnail

NEAREST = "deploy.resize={backend: opencv, interpolation: nearest, antialias: false, domain: rgb}"
BGR = "deploy.color.order=bgr"
CEIL = "train.graph.pooling.ceil_mode=ceil"
ORANGE = [213, 94, 0]


@pytest.fixture
def run(card, data, cache, tmp_path):
    def run_with(*overrides, **options):
        given = {"model": card, "data": data, "out": tmp_path / "run", **options}
        return compare("pillow_fp32", "pillow_fp32", overrides=overrides, **given)

    return run_with


def shown(found, path):
    return np.array(Image.open(found.folder / path))


def decoded(data, look):
    return np.array(Image.open(data / look["sample"]).convert("RGB"))


def bicubic(image, size=32):
    return np.array(Image.fromarray(image).resize((size, size), Image.Resampling.BICUBIC))


def nearest(image, size=32):
    return cv2.resize(image, (size, size), interpolation=cv2.INTER_NEAREST)


def numbers(a, b):
    levels = np.abs(a.astype(float) - b)
    return {
        "values_changed": pytest.approx(np.mean(levels > 0)),
        "mean": pytest.approx(levels.mean(), rel=1e-5),
        "max": pytest.approx(levels.max(), rel=1e-5),
    }


def flat(folder, names, size=(40, 48)):
    """Images without labels."""
    folder.mkdir()
    for seed, name in enumerate(names):
        (folder / name).write_bytes(tiny.encoded(tiny.picture((90, 120, 150), size, seed)))
    return folder


def test_pictures_are_what_the_libraries_give(run, data):
    found = run(NEAREST)

    looks = found.summary["pictures"]
    assert len(looks) == 4
    for look in looks:
        image = decoded(data, look)
        train, deploy = bicubic(image), nearest(image)
        assert (shown(found, look["picture"]) == image).all() and look["scale"] == 1
        assert (shown(found, look["train"]) == train).all()
        assert (shown(found, look["deploy"]) == deploy).all()
        assert look["difference"] == numbers(train, deploy)
        assert list(look["axes"]) == ["resize"]
        assert (shown(found, look["axes"]["resize"]["picture"]) == deploy).all()
        assert (look["size"], look["window"]) == ([32, 32], None)
        assert look["notes"] == look["missing"] == look["maps"] == []


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_order_layout_mean_and_std_are_undone(run, data, tmp_path, layout):
    """Into the network go B, G, R; the picture is as the eye knows it."""
    nodes, shape = list(tiny.classifier().graph.node), [1, 3, 32, 32]
    if layout == "NHWC":
        shape = [1, 32, 32, 3]
        nodes.insert(0, helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]))
        nodes[1].input[0] = "t"
    model = tiny.model(nodes, {"x": shape}, constants={"w": np.eye(3, dtype=np.float32)})
    spec = {**tiny.SPEC["input"], "layout": layout, "order": "bgr", "top": 1,
            "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.25, 0.3]}  # fmt: skip

    found = run(NEAREST, model=tiny.card(tmp_path / "bgr", model, input=spec))

    look = found.summary["pictures"][0]
    assert (shown(found, look["train"]) == bicubic(decoded(data, look))).all()
    assert (shown(found, look["deploy"]) == nearest(decoded(data, look))).all()


def test_numbers_are_those_of_the_axes(run):
    """Of one image they are the same."""
    found = run(BGR, NEAREST, limit=1)

    (look,) = found.summary["pictures"]
    assert set(look["axes"]) == {"color", "resize"}
    for axis in found.summary["axes"]:
        one = look["axes"][axis["axis"]]
        assert {key: axis["effect"][key] for key in ("values_changed", "mean", "max")} == {
            key: one[key] for key in ("values_changed", "mean", "max")
        }


def test_swapped_channels_are_seen_as_the_network_takes_them(run, data):
    found = run(BGR)

    look = found.summary["pictures"][0]
    assert (shown(found, look["deploy"]) == bicubic(decoded(data, look))[..., ::-1]).all()


def test_what_is_outside_of_8_bits_is_clipped_and_said(run, data):
    """Half the std is twice the distance from the mean of 127, for a network trained on 64."""
    found = run("deploy.normalize.std=[32.0, 32.0, 32.0]")

    look = found.summary["pictures"][0]
    levels = (bicubic(decoded(data, look)).astype(float) - 127) * 2 + 127
    outside = int(((levels < 0) | (levels > 255)).sum())
    assert outside > 300
    assert (shown(found, look["deploy"]) == np.clip(levels, 0, 255)).all()
    assert look["axes"]["normalize"]["max"] == pytest.approx(np.abs(levels - 127).max() / 2)
    assert look["notes"] == [
        f"{name}: {outside:,} of its 3,072 values are outside 0 to 255 and are clipped in its "
        "picture"
        for name in ("deploy", "normalize")
    ]


def test_worst_flips_come_first_and_then_the_first_images(run, tmp_path):
    """Red becomes blue and blue red, green stays."""
    summary = run(BGR, data=tiny.data(tmp_path / "few", 1)).summary

    flips = [flip["sample"] for flip in summary["worst_flips"]]
    assert sorted(flips) == ["blue/blue0.jpg", "red/red0.jpg"]
    assert [(look["sample"], look["why"]) for look in summary["pictures"]] == [
        (flips[0], "worst flip"),
        (flips[1], "worst flip"),
        ("green/green0.jpg", "one of the first images"),
    ]


def test_equal_stacks_show_equal_pictures_once(run):
    found = run()

    assert [look["sample"] for look in found.summary["pictures"]] == [
        "blue/blue0.jpg", "blue/blue1.jpg", "green/green0.jpg", "green/green1.jpg",
    ]  # fmt: skip
    for look in found.summary["pictures"]:
        assert look["why"] == "one of the first images" and look["train"] == look["deploy"]
        assert look["difference"] == {"values_changed": 0, "mean": 0, "max": 0}
    files = [p for p in (found.folder / "looks").rglob("*") if p.is_file()]
    assert len(files) == 8


def test_overwriting_removes_what_was_there(run):
    run()
    found = run(limit=1, overwrite=True)

    assert len(found.summary["pictures"]) == len(list((found.folder / "looks").iterdir())) == 1


def test_large_pictures_shrink_and_large_tensors_are_cut_to_their_middle(run, tmp_path):
    spec = {**tiny.SPEC["input"], "height": 400, "width": 400}
    card = tiny.card(tmp_path / "large", tiny.classifier(400), input=spec)
    data = flat(tmp_path / "photos", ["a.jpg"], (700, 1100))

    found = run(NEAREST, model=card, data=data)

    (look,) = found.summary["pictures"]
    image = decoded(data, look)
    small = shown(found, look["picture"])
    assert look["scale"] == 4 and small.shape == (175, 275, 3)  # 700 / 4 and 1100 / 4
    for row, column in ((0, 0), (100, 200), (174, 274), (174, 7)):
        block = image[4 * row : 4 * row + 4, 4 * column : 4 * column + 4].reshape(-1, 3)
        assert small[row, column] == pytest.approx(block.mean(axis=0), abs=0.5)
    train, deploy = bicubic(image, 400), nearest(image, 400)
    assert look["window"] == [320, 320]
    assert (shown(found, look["train"]) == train[40:360, 40:360]).all()
    assert (shown(found, look["deploy"]) == deploy[40:360, 40:360]).all()
    assert look["difference"] == numbers(train, deploy)  # of all 400 x 400


def test_names_of_files_are_no_paths(run, tmp_path):
    names = [
        "<img src=x onerror=alert(1)>.jpg", "a..jpg", "a\nb;$(reboot).jpg", "𝒳" * 60 + ".jpg",
    ]  # fmt: skip
    data = flat(tmp_path / "photos", names)

    found = run(NEAREST, data=data)

    looks = found.summary["pictures"]
    assert sorted(look["sample"] for look in looks) == sorted(names)
    for look in looks:
        for path in (look["picture"], look["train"], look["deploy"]):
            assert re.fullmatch(r"looks/\d\d-[\w.-]+/[a-z]+\.png", path, re.ASCII)
            assert (found.folder / path).is_file()
    assert str(tmp_path) not in str(looks)


def test_of_recorded_answers_only_the_other_side_is_shown(run, card, data, tmp_path):
    np.savez(tmp_path / "dump.npz", **test_recording.logits(data))
    manifest = test_recording.write(tmp_path, card)

    look = run(test_recording.RECORDED.format(manifest)).summary["pictures"][0]

    assert look["train"] and look["picture"]
    assert (look["deploy"], look["difference"], look["axes"]) == (None, None, {})
    assert look["missing"] == ["the input of deploy is not shown: its outputs were recorded"]


def test_of_two_recordings_nothing_is_left_to_show(run, card, data, tmp_path):
    np.savez(tmp_path / "dump.npz", **test_recording.logits(data))
    manifest = test_recording.write(tmp_path, card)
    sides = [f"{side}.{test_recording.RECORDED.partition('.')[2]}" for side in ("train", "deploy")]

    found = run(*(side.format(manifest) for side in sides))

    look = found.summary["pictures"][0]
    assert (look["picture"], look["train"], look["deploy"]) == (None, None, None)
    assert look["missing"] == [
        "the input of train is not shown: its outputs were recorded",
        "the input of deploy is not shown: its outputs were recorded",
        "the images are not shown: both stacks were recorded",
    ]
    assert not (found.folder / "looks").exists()


def test_recorded_tensors_are_shown_and_their_axes_are_not(run, card, data, tmp_path):
    tensors = {
        name: np.full((1, 3, 32, 32), 0.5, np.float32) for name in test_recording.names(data)
    }
    tensors["blue/blue0.jpg"][0, 0, 0, 0] = np.nan
    np.savez(tmp_path / "dump.npz", **tensors)
    manifest = test_recording.write(tmp_path, card, "tensors")
    side = f"deploy.front_end={{backend: recorded, recording: {manifest}}}"

    found = run(side)

    for look in found.summary["pictures"]:
        deploy = shown(found, look["deploy"])
        broken = look["sample"] == "blue/blue0.jpg"
        assert deploy[0, 0, 0] == (0 if broken else 159)
        assert (deploy.reshape(-1)[1:] == 159).all()  # 127 + 0.5 * 64
        assert any("not finite" in note for note in look["notes"]) == broken
        assert list(look["axes"]) == ["front_end"] and look["missing"] == []


def test_a_look_that_fails_is_no_reason_to_lose_a_run(run, data, monkeypatch, tmp_path):
    image = decoded(data, {"sample": "blue/blue1.jpg"})

    def gone(rgb):
        if (rgb == image).all():
            raise SampleError("is gone by now")
        return thumbnail(rgb)

    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(gallery, "thumbnail", gone)
    monkeypatch.setattr(feature_maps, "opened", broken)
    card = tiny.card(tmp_path / "pooled", tiny.pooled())

    summary = run(CEIL, model=card).summary

    first, second, *_ = summary["pictures"]
    assert first["train"] and not first["notes"]
    assert (second["train"], second["notes"]) == (None, ["the rest is not shown: is gone by now"])
    assert first["missing"] == ["pooling: no feature maps: a bug"]


def tensor(data, look):
    return (bicubic(decoded(data, look)).astype(np.float64).transpose(2, 0, 1) - 127) / 64


def gray(values, low, high):
    return np.rint((values - low) / (high - low) * 255)


def test_the_row_that_only_rounding_up_makes_is_marked(run, data, tmp_path):
    """32 becomes 16 with ceil and 15 without; the windows that both have are the same."""
    found = run(CEIL, model=tiny.card(tmp_path / "pooled", tiny.pooled()))

    look = found.summary["pictures"][0]
    first, last = look["maps"]
    x = tensor(data, look)
    up = np.array(
        [[x[:, i : i + 3, j : j + 3].max(axis=(1, 2)) for j in range(0, 32, 2)]
         for i in range(0, 32, 2)]
    )  # fmt: skip
    mean = up.mean(axis=2)
    assert first["node"] == "MaxPool 'pool'" and last["node"] == "Relu 'last'"
    assert (first["first"], last["first"], first["by"]) == (True, False, "onnxruntime")
    for one in (first, last):
        assert (one["train_size"], one["deploy_size"], one["window"]) == ([16, 16], [15, 15], None)
        assert one["values_changed"] == one["mean"] == one["max"] == one["peak"] == 0
        difference = shown(found, one["picture"])
        assert difference.shape == (16, 16, 3) and not difference[:15, :15].any()
        assert (difference[15] == ORANGE).all() and (difference[:, 15] == ORANGE).all()
    assert (first["low"], first["high"]) == pytest.approx((mean.min(), mean.max()), abs=1e-6)
    train = gray(mean, mean.min(), mean.max())
    assert np.abs(shown(found, first["train"]) - train).max() <= 1  # float32 against float64
    assert (shown(found, first["deploy"]) == shown(found, first["train"])[:15, :15]).all()


def test_maps_of_equal_size_are_subtracted(run, data, tmp_path):
    """At an edge 3 of 9 values are padding, in a corner 5."""
    model = tiny.pooled("AveragePool", strides=[1, 1], pads=[1, 1, 1, 1])
    sides = [f"{s}.graph.pooling.count_include_pad={w}"
             for s, w in (("train", "include"), ("deploy", "exclude"))]  # fmt: skip

    found = run(*sides, model=tiny.card(tmp_path / "padded", model))

    look = found.summary["pictures"][0]
    padded, ones = (
        np.pad(values, ((0, 0), (1, 1), (1, 1)))
        for values in (tensor(data, look), np.ones((1, 32, 32)))
    )
    sums, counts = (
        sum(values[:, i : i + 32, j : j + 32] for i in range(3) for j in range(3))
        for values in (padded, ones)
    )
    levels = np.abs(sums / 9 - sums / counts)
    one = look["maps"][0]
    assert one["values_changed"] == pytest.approx((32**2 - 30**2) / 32**2)
    assert one["max"] == pytest.approx(levels.max(), rel=1e-5)
    assert one["mean"] == pytest.approx(levels.mean(), rel=1e-5)
    difference = levels.mean(axis=0)
    assert one["peak"] == pytest.approx(difference.max(), rel=1e-5)
    made = shown(found, one["picture"])
    assert made.shape == (32, 32)  # gray: nothing is marked
    assert np.abs(made - gray(difference, 0, difference.max())).max() <= 1


def test_an_upsampled_map(run, data, tmp_path):
    """Of 2x2 cells; linear, half-pixel: 1/4 and 3/4 between them, the ends repeated."""
    nodes = [
        helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[16, 16], strides=[16, 16]),
        helper.make_node("Resize", ["p", "", "s"], ["u"], name="up", mode="nearest"),
        helper.make_node("GlobalAveragePool", ["u"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    constants = {"w": np.eye(3, dtype=np.float32), "s": np.float32([1, 1, 2, 2])}
    card = tiny.card(tmp_path / "up", tiny.model(nodes, constants=constants))

    found = run("deploy.graph.upsample.mode=linear", model=card)

    look = found.summary["pictures"][0]
    (one,) = look["maps"]  # the first is the last
    cells = tensor(data, look).reshape(3, 2, 16, 2, 16).mean(axis=(2, 4))
    weights = np.array([[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]])
    levels = np.abs(cells.repeat(2, 1).repeat(2, 2) - weights @ cells @ weights.T)
    assert (one["axis"], one["node"], one["train_size"]) == ("upsample", "Resize 'up'", [4, 4])
    assert one["max"] == pytest.approx(levels.max(), rel=1e-4)
    assert one["mean"] == pytest.approx(levels.mean(), rel=1e-4)


@pytest.mark.parametrize("quick", [True, False])
def test_a_map_of_integers(run, data, tmp_path, quick):
    """Weights of one are exact in INT8: the input and the map are rounded, to a step of 1/255."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="same"),
        helper.make_node("GlobalAveragePool", ["c"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    eye = np.eye(3, dtype=np.float32)
    model = tiny.model(nodes, constants={"w": eye, "k": eye[..., None, None]})
    images = [tensor(data, {"sample": p.relative_to(data)}) for p in sorted(data.rglob("*.jpg"))]
    step = (max(map(np.max, images)) - min(map(np.min, images))) / 255

    found = compare(
        "pillow_fp32", "ort_int8", model=tiny.card(tmp_path / "conv", model), data=data,
        quick=quick, out=tmp_path / "run",
    )  # fmt: skip

    look = found.summary["pictures"][0]
    one = look["maps"][0]
    assert (one["axis"], one["node"], one["by"]) == ("precision", "Conv 'same'", "onnxruntime")
    assert one["values_changed"] > 0.8 and 0.2 * step < one["mean"] < one["max"] < 1.05 * step
    assert shown(found, one["picture"]).max() == 255


def test_maps_larger_than_the_window():
    """The end is kept where sizes differ, for the mark; else the middle."""
    small, large = np.zeros((1, 340, 400)), np.zeros((1, 341, 400))
    large[0, 170, 200] = 1.0

    found, pictures = feature_maps.compared(small, large)
    assert found["window"] == [320, 320]
    assert (pictures["difference"][319] == ORANGE).all()
    assert pictures["difference"][170 - 21, 200 - 80].tolist() == [255, 255, 255]

    found, pictures = feature_maps.compared(large, np.zeros_like(large))
    assert np.argwhere(pictures["difference"]).tolist() == [[170 - 10, 200 - 40]]
    assert pictures["train"].shape == pictures["deploy"].shape == (320, 320)


@given(st.integers(1, 40), st.integers(321, 1100), st.booleans())
def test_a_thumbnail_fits_and_keeps_the_mean_of_its_blocks(short, long, turned):
    image = np.random.default_rng(long).integers(0, 256, (short, long, 3), dtype=np.uint8)
    image = image.swapaxes(0, 1) if turned else image
    factor = -(-long // 320)

    small, scale = thumbnail(image)

    rows, columns = (-(-side // factor) for side in image.shape[:2])
    assert scale == factor and small.shape == (rows, columns, 3) and max(rows, columns) <= 320
    last = image[(rows - 1) * factor :, (columns - 1) * factor :].reshape(-1, 3)
    assert small[-1, -1] == pytest.approx(last.mean(axis=0), abs=0.5)


def test_the_folder_of_an_image_has_a_name_that_any_system_takes():
    assert stem_of("a/b/photo 1.jpg", "image") == "photo_1"
    assert stem_of("../..", "image") == stem_of("..jpg", "image") == "image"
    assert Path(stem_of("x" * 300 + ".jpg", "image")).name == "x" * 60
