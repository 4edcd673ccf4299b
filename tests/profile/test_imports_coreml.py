"""Core ML: networks in bytes by Apple's Model.proto, and what coremltools itself means by them."""

import made_coreml as made
import pytest
from importing import normalization

from simulator.importers import convert
from simulator.profile.load import load

UNTURNED, TURNED = [64.0, 128.0, 192.0], [192.0, 128.0, 64.0]


@pytest.mark.parametrize(
    ("raw", "order", "mean"),
    [
        (made.classifier(), "rgb", UNTURNED), (made.pipeline(), "rgb", UNTURNED),
        (made.program(), "rgb", UNTURNED),
        # redBias is of red, wherever the channel is; a program has its numbers as the tensor has
        (made.classifier(made.BGR), "bgr", TURNED), (made.program(made.BGR), "bgr", UNTURNED),
    ],
)  # fmt: skip
def test_scale_and_bias(imports, raw, order, mean):
    """x / 64 with a bias of -1, -2, -3 takes 64, 128 and 192 away."""
    wanted = {"color.order": order, "geometry.kind": "squash", "evidence.precision.kind": "assumed"}
    imports.gives(wanted, raw, "net.mlmodel", "height: 32, width: 24")

    assert normalization(imports.profile(raw, "net.mlmodel")) == (mean, [64.0] * 3, "multiply_add")


def test_a_package(tmp_path):
    inside = tmp_path / "net.mlpackage" / "Data" / "com.apple.CoreML"
    inside.mkdir(parents=True)
    (inside / "model.mlmodel").write_bytes(made.program())
    (tmp_path / "made.yaml").write_text(convert(tmp_path / "net.mlpackage"))

    assert load(str(tmp_path / "made.yaml")).name == "net"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (made.classifier(made.GRAY), ": image: a gray image; "),
        (made.classifier()[:40], ": not a Core ML model: "),
        (b"", ": not a Core ML model: it has no description"),
        (made.field(1, 4) + made.field(2, made.field(1, made.field(1, "x"))),
         ": 0 inputs are images (inputs: x), and one is expected"),
    ],
)  # fmt: skip
def test_refused(imports, raw, problem):
    imports.refuses(problem, raw, "net.mlmodel")
