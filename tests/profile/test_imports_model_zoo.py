"""Open Model Zoo: what ``model.yml`` says of the IR that an ``accuracy-check.yml`` runs.

Its files have each network twice: in its own framework, where every step is written, and as an IR,
where Model Optimizer has put mean, scale and channel order inside. Both must give one tensor.
"""

import cv2
import numpy as np
import pytest
from importing import checker, normalization, photo, written
from PIL import Image

from simulator.cli import main

RESIZE = ["type: resize, size: 256, aspect_ratio_scale: greater, use_pillow: true",
          "type: crop, size: 224, use_pillow: true"]  # fmt: skip
IR = "{framework: dlsdk, adapter: classification}"


def zoo(*arguments, **keys):
    """A ``model.yml``."""
    keys = {"framework": "caffe", "task_type": "classification", **keys}
    lines = [f"{key}: {value}\n" for key, value in keys.items()]
    listed = [f"  - {one}\n" for one in arguments]
    return "".join(["description: >-\n  a network\n", *lines, "model_optimizer_args:\n", *listed])


@pytest.mark.parametrize(
    ("own", "ir", "reader", "arguments"),
    [
        # mobilenet-v2-pytorch: Pillow's RGB is reversed for an IR that reverses it back
        ([*RESIZE, "type: normalization, std: 255",
          "type: normalization, mean: '(0.485, 0.456, 0.406)', std: '(0.229, 0.224, 0.225)'"],
         [*RESIZE, "type: rgb_to_bgr"], "pillow_imread",
         ["--framework=onnx", "--input=data", "--mean_values=data[123.675,116.28,103.53]",
          "--scale_values=data[58.395,57.12,57.375]", "--reverse_input_channels"]),
        # mobilenet-v1-1.0-224-tf
        (["type: bgr_to_rgb", "type: resize, size: 224",
          "type: normalization, mean: 127.5, std: 127.5"],
         ["type: resize, size: 224"], "opencv_imread",
         ["--reverse_input_channels", "--input_shape=[1,224,224,3]",
          "--mean_values=input[127.5,127.5,127.5]", "--scale_values=input[127.5]"]),
        # squeezenet1.1
        (["type: resize, size: 227", "type: normalization, mean: '104, 117, 123'"],
         ["type: resize, size: 227"], "opencv_imread", ["--mean_values=data[104.0,117.0,123.0]"]),
        # yolo-v3-tf, and as mo.py is called by hand
        (["type: bgr_to_rgb", "type: resize, size: 416", "type: normalization, std: 255"],
         ["type: resize, size: 416"], "opencv_imread",
         ["--scale_values=input_1[255]", "--reverse_input_channels"]),
        (["type: resize, size: 416", "type: normalization, std: 255"],
         ["type: resize, size: 416"], "opencv_imread", ["--scale=255"]),
    ],
)  # fmt: skip
def test_an_ir_gets_what_its_network_gets(imports, own, ir, reader, arguments):
    framework = "{framework: onnx_runtime, model: m.onnx, adapter: classification}"
    wanted = imports.profile(checker(own, reader=reader, launcher=framework), "own.yml")
    imports.file(zoo(*arguments), "model.yml")

    profile = imports.profile(checker(ir, reader=reader, launcher=IR), "accuracy-check.yml")

    assert written(wanted, "normalize")["arithmetic"] == "divide"
    assert written(profile, "normalize") == {
        **written(wanted, "normalize"), "arithmetic": "multiply",
    }  # fmt: skip
    assert profile.spec.color.order == wanted.spec.color.order
    assert profile.spec.runtime.backend == "openvino"
    assert profile.spec.evidence["normalize"].kind == "emulated"
    text = imports.text(checker(ir, reader=reader, launcher=IR), "accuracy-check.yml")
    assert all(f"from model.yml: {one}" in text or f"; {one}" in text
               for one in arguments if "values" in one)  # fmt: skip


def test_the_tensor_of_an_ir(imports):
    """Model Optimizer's order: channels are reversed, then means and scales are applied."""
    imports.file(
        zoo("--mean_values=data[10,20,30]", "--scale_values=data[2,4,8]",
            "--reverse_input_channels"), "model.yml",
    )  # fmt: skip
    steps = ["type: resize, size: 32", "type: normalization, mean: [1, 2, 3], std: 2"]
    image = photo(40, 50)
    made = imports.profile(checker(steps, reader="opencv_imread", launcher=IR), "a.yml")

    tensor = imports.tensor(made, image, 32)

    bgr = cv2.resize(image[..., ::-1], (32, 32), interpolation=cv2.INTER_LINEAR)
    fed = (bgr.astype(np.float64) - [1, 2, 3]) / 2
    inside = (fed[..., ::-1] - [10, 20, 30]) / [2, 4, 8]
    np.testing.assert_allclose(tensor, inside.transpose(2, 0, 1), atol=1e-5)


def test_what_accuracy_checker_has_converted(imports):
    """``mo_params`` and ``mo_flags`` are Model Optimizer's; ``model.yml`` is of another IR."""
    imports.file(zoo("--mean_values=data[1,1,1]"), "model.yml")
    launcher = ("{framework: dlsdk, caffe_model: n.prototxt, caffe_weights: n.caffemodel, "
                "mo_params: {mean_values: 'data(104,117,123)', data_type: FP16}, "
                "mo_flags: [reverse_input_channels], adapter: classification}")  # fmt: skip
    wanted = {
        "color.order": "bgr", "normalize.mean": [104.0, 117.0, 123.0],
        "normalize.std": [1.0] * 3, "normalize.arithmetic": "multiply",
    }  # fmt: skip
    imports.gives(wanted, checker(["type: resize, size: 8"], launcher=launcher), "a.yml")


def test_an_ir_of_which_nothing_is_said(imports, capsys):
    """As its card says, assumed, and told when it is imported."""
    file = imports.file(checker(["type: resize, size: 8"], launcher=IR), "a.yml")
    made = imports.folder / "made.yaml"

    assert main(["profiles", "import", str(file), "--out", str(made)]) == 0

    wanted = dict.fromkeys(("color.order", "normalize.mean", "normalize.std"), "model")
    wanted |= dict.fromkeys(("evidence.color.kind", "evidence.normalize.kind"), "assumed")
    imports.gives(wanted, file.read_text(), "a.yml")
    told = capsys.readouterr().err
    assert "note: normalize is assumed: mean, scale and channel order inside of the IR" in told
    assert "no model.yml beside it; taken to give the network what its model card says" in told


def test_an_ir_of_which_nothing_is_said_but_the_steps_normalize(imports):
    steps = ["type: resize, size: 8", "type: normalization, std: 255"]
    profile = imports.profile(checker(steps, launcher=IR), "a.yml")

    assert profile.spec.normalize.std == [255.0] * 3
    assert "as if it had none" in profile.spec.evidence["normalize"].source


@pytest.mark.parametrize(
    ("launcher", "beside", "why"),
    [
        (IR, "framework: dldt\nfiles: []\n", "model.yml has no model_optimizer_args"),
        ("{framework: openvino, model: n.xml, adapter: x}", None, "no model.yml beside it"),
    ],
)
def test_a_ready_ir_is_assumed(imports, launcher, beside, why):
    """Intel's own networks come as an IR; ``framework: dldt``."""
    if beside:
        imports.file(beside, "model.yml")
    profile = imports.profile(checker(["type: resize, size: 8"], launcher=launcher), "a.yml")

    assert why in profile.spec.evidence["normalize"].source


def test_an_onnx_file_has_nothing_inside(imports):
    launcher = "{framework: openvino, model: n.onnx, adapter: x}"
    profile = imports.profile(checker(["type: resize, size: 8"], launcher=launcher), "a.yml")

    assert normalization(profile) == ([0.0] * 3, [1.0] * 3, "divide")
    assert "normalize" not in profile.spec.evidence


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--mean_values=data[1,2,3],info[4]"], "numbers of several inputs"),
        (["--mean_values=data[1,2]"], "one number or three expected"),
        (["--scale_values=data[0]"], "numbers above 0 expected"),
        (["--mean_file=m.binaryproto"], "a mean for every pixel"),
        (["7"], "model_optimizer_args: a list of texts expected"),
    ],
)
def test_what_a_profile_cannot_say_of_an_ir(imports, arguments, problem):
    imports.file(zoo(*arguments), "model.yml")

    (line,) = imports.refused(checker(["type: resize, size: 8"], launcher=IR), "a.yml")

    assert "model.yml:" in line
    assert problem in line


def test_a_picture_of_the_reader_stays(imports):
    """Pillow reads RGB; an IR that reverses takes BGR: both reversals leave what Pillow read."""
    imports.file(zoo("--reverse_input_channels"), "model.yml")
    steps = ["type: resize, size: 8, use_pillow: true", "type: rgb_to_bgr"]
    image = photo(16, 16, seed=1)
    made = imports.profile(checker(steps, launcher=IR), "a.yml")

    wanted = np.asarray(Image.fromarray(image).resize((8, 8), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(imports.tensor(made, image, 8), wanted.transpose(2, 0, 1))
