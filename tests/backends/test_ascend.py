"""Ascend: what can be known without the device and without CANN."""

from pathlib import Path

import numpy as np
import pytest
import sums

from backends.ascend.dvpp import INTERPOLATION, jpegd_strides, nv12_planes, vpc_strides
from backends.ascend.model import atc_arguments
from simulator import registry
from simulator.contract import Stage
from simulator.errors import MissingLibrary, ProfileError
from simulator.profile.implementations import choose
from simulator.profile.load import load

BACKEND = registry.backend("ascend")
HALF, SINGLE = BACKEND.of(Stage.RUNTIME)
OPTIONS = {"soc_version": "Ascend310P3", "precision_mode": "force_fp16"}


def test_atc_gets_the_arguments_of_its_manual():
    """As in the vendor's examples: atc --framework=5 --input_shape="input:1,3,224,224" ..."""
    got = atc_arguments(Path("m.onnx"), Path("out/m"), [("input", [1, 3, 224, 224])], OPTIONS)

    assert got == [
        "--framework=5",
        "--model=m.onnx",
        "--output=out/m",
        "--input_shape=input:1,3,224,224",
        "--soc_version=Ascend310P3",
        "--precision_mode=force_fp16",
        "--output_type=FP32",
        "--log=error",
    ]


def test_atc_separates_inputs_by_semicolons():
    got = atc_arguments(Path("m"), Path("o"), [("a", [1, 3]), ("b", [2])], OPTIONS)

    assert "--input_shape=a:1,3;b:2" in got


@pytest.mark.parametrize(
    ("soc", "across"),
    [
        ("Ascend310", 768),
        ("Ascend910A", 768),
        ("Ascend910ProB", 768),
        ("Ascend310P3", 704),
        ("Ascend310B1", 704),
        ("Ascend910B4", 704),
        ("Ascend910_9392", 704),
    ],
)
def test_jpegd_strides(soc, across):
    """
    pyACL "JPEGD: Functions and Restrictions", table 2: 128 on Atlas 200/300/500 and training
    products (6 x 128 = 768), 64 on later ones (11 x 64 = 704);
    rows to a multiple of 16 (24 x 16 = 384).
    """
    assert jpegd_strides(700, 375, soc) == (across, 384)


@pytest.mark.parametrize(
    ("size", "strides"), [((224, 224), (224, 224)), ((167, 25), (176, 25)), ((10, 6), (32, 6))]
)
def test_vpc_strides(size, strides):
    """ "VPC Restrictions": YUV400 width aligned to 16, at least 32; height as it is."""
    assert vpc_strides(*size) == strides


def test_vpc_interpolation_codes():
    """acldvppSetResizeConfigInterpolation: 1 bilinear, 2 nearest, both like OpenCV's."""
    assert INTERPOLATION == {"bilinear": 1, "nearest": 2}


def test_planes_are_cut_out_of_a_buffer_with_strides():
    """A 4x2 picture in strides of 8 bytes and 4 rows: U and V of each pair follow each other."""
    luma = np.full((4, 8), 255, np.uint8)
    luma[:2, :4] = [[1, 2, 3, 4], [5, 6, 7, 8]]
    chroma = np.full((2, 8), 255, np.uint8)
    chroma[0, :4] = [10, 20, 11, 21]

    y, u, v = nv12_planes(np.concatenate([luma.ravel(), chroma.ravel()]), 4, 2, (8, 4))

    assert y.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert u.tolist() == [[10, 11]]
    assert v.tolist() == [[20, 21]]


def test_precision_modes():
    """Matrix units take FP16 in every mode but the one that keeps the model's own types."""
    assert "force_fp16" in HALF.options["precision_mode"]
    assert HALF.options["compute"] == ("fp16",)
    assert SINGLE.options["precision_mode"] == ("must_keep_origin_dtype",)
    assert SINGLE.options["compute"] == ("fp32",)


def test_an_unknown_precision_mode_is_refused():
    text = "{backend: ascend, device: npu, threads: 1, soc_version: Ascend310P3, precision_mode: x}"

    with pytest.raises(ProfileError, match=r"precision_mode.*force_fp16.*got x"):
        choose(load("pillow_fp32", [f"runtime={text}", "precision.compute=fp16"]))


@pytest.mark.parametrize("ask", ["device", "decode", "resize", "open"])
def test_without_cann_it_is_refused_in_one_line(tmp_path, ask):
    calls = {
        "device": BACKEND.device,
        "decode": lambda: BACKEND.of(Stage.DECODE)[0].make({"exif": "apply"}),
        "resize": lambda: BACKEND.of(Stage.RESIZE)[0].make({"interpolation": "bilinear"}),
        "open": lambda: HALF.make(tmp_path, OPTIONS),
    }

    with pytest.raises(MissingLibrary, match=r"CANN toolkit.*'acl'.*set_env\.sh") as refused:
        calls[ask]()
    assert "\n" not in str(refused.value)


def test_without_atc_nothing_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingLibrary, match="'atc', which is not on the PATH"):
        HALF.make.compile(sums.save(tmp_path / "m.onnx"), tmp_path, OPTIONS)
