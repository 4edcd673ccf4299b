"""What a stack says on an axis, in words that are read."""

import pytest
import yaml

from simulator.profile import axes
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.report.axis_words import folded, said


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"backend": "pillow", "exif": "ignore", "idct": "islow", "chroma_upsampling": "fancy"},
            "pillow: EXIF ignored, IDCT islow, chroma fancy",
        ),
        ({"idct": "islow", "chroma_upsampling": "fancy"}, "IDCT islow, chroma fancy"),
        ({"exif": "apply"}, "EXIF applied"),
        ({"antialias": False, "short_side": 256}, "antialias off, short side 256"),
        ({"kind": "letterbox", "position": "top_left"}, "letterbox, position top_left"),
        (
            {"format": "nv12", "encode.backend": "itu", "encode.range": "full"},
            "format nv12; encode itu: range full",
        ),
        ({"backend": "ffmpeg", "swscale_flags": ["bicubic", "accurate_rnd"]},
         "ffmpeg: swscale flags bicubic + accurate_rnd"),
        ({"mean": [0.5, 1.0]}, "mean 0.5 / 1.0"),
        ({"order": "model"}, "order the model's"),
        ({"quantizer.keep.nodes": [], "quantizer.backend": "nncf"}, "quantizer nncf"),
        ({"value": "nhwc"}, "nhwc"),
        ({}, ""),
    ],
)  # fmt: skip
def test_every_value_has_its_key(values, words):
    assert said(values, {}) == words


@pytest.mark.parametrize(
    ("number", "words"), [(0, ""), (1, "and 1 equal option"), (5, "and 5 equal options")]
)
def test_what_is_equal_folds(number, words):
    assert folded(number) == words


def test_the_fields_of_two_stacks_are_either_equal_or_not(tmp_path):
    """One field of the decoder is changed; all that was written besides is equal."""
    given = {"extends": "pillow_fp32", "schema": 1, "name": "mine", "summary": "turned"}
    given["decode"] = {"backend": "pillow", "exif": "apply"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(given))
    pair = [(one, choose(one)) for one in map(load, ("pillow_fp32", str(tmp_path / "mine.yaml")))]
    values = [axes.flat(axes.value(*one, "decoder")) for one in pair]

    assert [one["exif"] for one in values] == ["ignore", "apply"]
    assert axes.equal(values) == [key for key in values[0] if key != "exif"]
