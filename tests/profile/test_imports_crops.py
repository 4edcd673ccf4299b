"""Accuracy Checker's crops of a part of the image, against the lines of its crop.py."""

import cv2
import numpy as np
from importing import checker, photo, written
from PIL import Image

from simulator.importers import convert


def test_a_central_fraction_in_opencv(imports):
    """crop.py: new = int(side * fraction), start = (side - new) // 2; 46 of 53 rows from 3."""
    steps = ["type: bgr_to_rgb", "type: crop, central_fraction: 0.875", "type: resize, size: 32"]
    image = photo(53, 50)
    profile = imports.profile(checker(steps, reader="opencv_imread"), "a.yml")

    tensor = imports.tensor(profile, image, 32)

    wanted = cv2.resize(image[3 : 3 + 46, 3 : 3 + 43], (32, 32), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))
    assert written(profile, "geometry") == {
        "kind": "squash", "crop_before_resize": {"fraction": 0.875, "rounding": "floor"},
    }  # fmt: skip


def test_a_central_fraction_in_pillow(imports):
    """crop.py: i = int(round((height - new) / 2.0)): 7 / 2 is 4 rows; Image.crop, then resize."""
    steps = [
        "type: crop, central_fraction: 0.875, use_pillow: true",
        "type: resize, size: 32, use_pillow: true, interpolation: BICUBIC",
    ]
    image = photo(53, 50)
    profile = imports.profile(checker(steps), "a.yml")

    tensor = imports.tensor(profile, image, 32)

    cropped = Image.fromarray(image).crop((4, 4, 4 + 43, 4 + 46))
    wanted = np.asarray(cropped.resize((32, 32), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))
    assert profile.spec.evidence["geometry"].kind == "emulated"


def test_the_largest_square(imports):
    """max_square: 37 of 50 columns from (50 - 37) // 2."""
    steps = ["type: crop, max_square: true", "type: resize, size: 32"]
    image = photo(37, 50)
    profile = imports.profile(checker(steps, reader="opencv_imread"), "a.yml")

    tensor = imports.tensor(profile, image, 32)

    wanted = cv2.resize(image[:, 6:43, ::-1], (32, 32), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))


def test_all_of_the_image_is_no_crop(imports):
    steps = ["type: crop, central_fraction: 1.0", "type: resize, size: 32"]

    assert written(imports.profile(checker(steps), "a.yml"), "geometry") == {"kind": "squash"}


def test_an_execution_provider_is_named(imports):
    """NNCF's files run ONNX Runtime on OpenVINO; here its own CPU kernels stand in."""
    launcher = (
        "{framework: onnx_runtime, adapter: x, execution_providers: [OpenVINOExecutionProvider]}"
    )
    kind, steps = "evidence.runtime.kind", ["type: resize, size: 8"]
    wanted = {"runtime.backend": "onnxruntime", kind: "assumed"}
    said = "stand in for OpenVINOExecutionProvider"
    imports.gives(wanted, checker(steps, launcher=launcher), "a.yml", said)
    plain = launcher.replace("OpenVINO", "CPU")
    imports.gives({kind: "native"}, checker(steps, launcher=plain), "c.yml")


def test_the_keys_of_a_launcher_that_is_replaced_are_set_aside(imports):
    """OpenVINO's fork for TVM: session and vm are that launcher's own."""
    launcher = "{framework: tvm, adapter: x, session: local, vm: false}"
    text = convert(imports.file(checker(["type: resize, size: 8"], launcher=launcher), "a.yml"))

    assert "session=local: of the launcher tvm" in text
