"""What networks say of their own input: TFLite Metadata and KerasHub's image converters."""

import contextlib
import copy
import io
import zipfile

import numpy as np
import pytest
from importing import normalization, photo, written
from network_files import CHANNELS, CONVERTER, GRAY, NO_NUMBERS, PLAIN, PREPROCESSOR, network
from shared_data import shared

from backends.tensorflow_library import tf_of_one_thread
from simulator.errors import ProfileError
from simulator.importers import convert, entries


def bundle(suffix=".tflite", **files):
    """A MediaPipe .task bundle: a zip file of networks."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as made:
        for name, data in files.items():
            made.writestr(f"{name}{suffix}", data)
    return raw.getvalue()


def test_numbers_for_each_channel(imports):
    wanted = {
        "normalize.mean": pytest.approx([123.675, 116.28, 103.53], abs=1e-5),
        "normalize.std": pytest.approx([58.395, 57.12, 57.375], abs=1e-5),
        "color.order": "rgb", "evidence.resize.kind": "assumed", "runtime.backend": "litert",
    }  # fmt: skip
    imports.gives(
        wanted, network(CHANNELS), "net.tflite", "height: 224, width: 224, layout: NHWC",
        "associated file labels.txt: labels are the model card's",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metadata", "more", "numbers"),
    [
        (PLAIN, {}, ([127.0] * 3, [128.0] * 3, "fused_multiply_add")),
        # uint8: the network computes (x - 128) * 0.0078125
        (NO_NUMBERS, {"kind": 3, "scale": 0.0078125, "zero": 128},
         ([128.0] * 3, [128.0] * 3, "multiply")),
    ],
)  # fmt: skip
def test_one_number_is_for_all_channels(imports, metadata, more, numbers):
    assert normalization(imports.profile(network(metadata, **more), "net.tflite")) == numbers


@pytest.mark.parametrize("file", ["mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq"])
def test_corals_own_networks(imports, file):
    """Google's files: uint8 networks whose metadata says [-1, 1]."""
    raw = (shared("models") / f"coral_{file}.tflite").read_bytes()
    wanted = {
        "normalize.mean": [127.5] * 3, "normalize.std": [127.5] * 3,
        "evidence.precision.kind": "assumed",
    }  # fmt: skip
    imports.gives(wanted, raw, f"{file}.tflite", "imagenet_labels.txt")


def test_a_bundle_of_networks(imports):
    raw = bundle(detector=network(PLAIN, (1, 128, 128, 3)), mesh=network(CHANNELS))
    path = imports.file(raw, "face.task")

    assert entries(path) == ["detector.tflite", "mesh.tflite"]
    with pytest.raises(ProfileError, match=r"--entry 1: detector\.tflite; --entry 2: mesh"):
        convert(path)
    assert "name: detector" in convert(path, entry=1)
    assert "height: 224" in convert(path, entry=2)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (lambda: network(None), "no TFLITE_METADATA"),
        (lambda: network(GRAY), "a gray image"),
        (lambda: network(PLAIN, (1, 224, 224, 1)), "a gray image"),
        (lambda: network(PLAIN, (1, -1, -1, 3)), "one size expected"),
        (lambda: network(PLAIN, (1, 16)), "no color image"),
        (lambda: network(NO_NUMBERS), "no NormalizationOptions"),
        (lambda: network(PLAIN[:100]), "a damaged .tflite"),
        (lambda: network(NO_NUMBERS, kind=3, scale=np.inf), "no NormalizationOptions"),
        (lambda: network(b""), "a damaged .tflite"),
        (lambda: bundle(".txt", a=b"text"), "a bundle without a .tflite"),
        (lambda: bundle(a=b"text"), "a damaged .tflite"),
        (lambda: bundle(a=network(PLAIN))[:-30], "a damaged bundle"),
    ],
)
def test_what_is_no_image_or_damaged_gets_one_line(imports, raw, said):
    (line,) = imports.refused(raw(), "net.tflite")

    assert said in line


def test_no_bytes_crash_it(imports):
    """Every byte of the file set to 255, one after the other: a list or one line."""
    whole = network(PLAIN)
    told = []
    for at in range(8, len(whole)):
        path = imports.file(whole[:at] + b"\xff" + whole[at + 1 :], "net.tflite")
        with contextlib.suppress(ProfileError):
            told += entries(path)

    assert set(told) == {"net.tflite"}


def test_a_keras_preprocessor(imports):
    """(x - 123.675) / 58.395 is x * 0.0171 - 2.118; the crop has the network's ratio of sides."""
    made = imports.profile(PREPROCESSOR, "preprocessor.json")

    assert made.spec.normalize.mean == pytest.approx([123.675, 116.28, 103.53])
    assert made.spec.normalize.std == pytest.approx([58.395, 57.12, 57.375])
    assert written(made, "geometry") == {
        "kind": "squash", "crop_before_resize": {"aspect": "network", "rounding": "floor"},
    }  # fmt: skip
    assert made.spec.resize.interpolation == "bicubic"
    assert made.spec.evidence["decode"].kind == "assumed"
    alone = imports.profile(CONVERTER, "image_converter.json")
    assert written(alone, "normalize") == written(made, "normalize")


def test_the_tensor_is_keras_own(imports):
    """keras.layers.Resizing on TensorFlow, then x * scale + offset, as in image_converter.py."""
    tf = tf_of_one_thread()
    document = copy.deepcopy(PREPROCESSOR)
    config = document["config"]["image_converter"]["config"]
    config |= {"image_size": [32, 32], "interpolation": "bilinear"}
    image = photo(53, 70)

    tensor = imports.tensor(imports.profile(document, "preprocessor.json"), image, 32)

    layer = tf.keras.layers.Resizing(32, 32, interpolation="bilinear", crop_to_aspect_ratio=True)
    scale, offset = (np.float32(config[key]) for key in ("scale", "offset"))
    wanted = np.asarray(layer(image.astype(np.float32))) * scale + offset
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pad_to_aspect_ratio": True}, "it pads before the resize"),
        ({"interpolation": "lanczos5"}, "a profile cannot express this"),
        ({"image_size": None}, "not written; it is the network's size"),
        ({"image_size": 224}, "[height, width] expected"),
        ({"scale": 0}, "numbers above 0 expected"),
        ({"norm_mean": [1, 2, 3]}, "unknown key"),
    ],
)
def test_a_keras_converter_that_does_more(imports, change, said):
    document = copy.deepcopy(CONVERTER)
    document["config"] |= change

    (line,) = imports.refused(document, "image_converter.json")

    assert said in line
