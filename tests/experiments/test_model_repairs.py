"""Repairs of the model file in whole runs: what a session fits, to which pixels, and says of it."""

import shutil

import pytest
import tiny

from simulator.errors import DataError
from simulator.experiments.common import chosen
from simulator.experiments.session import Session, Variant

OTHER = ["normalize.mean=[10, 20, 30]", "normalize.std=[40, 50, 60]"]


@pytest.fixture
def session(card, data, cache):
    with Session.open(card, data, None, 0, 1, None, None) as opened:
        yield opened


def stack(session, *changes, base="pillow_fp32"):
    train, one = chosen("pillow_fp32", []), chosen(base, changes)
    return session.stack(Variant("deploy", one, {"train": train, "deploy": one}))


@pytest.mark.parametrize("form", ["affine", "matrix"])
def test_another_normalization_is_compensated(session, form):
    """Mean and standard deviation are a factor and an offset for each channel: all is removed."""
    asked = f"graph.compensation={{form: {form}, calibration: {{samples: 4, source: data}}}}"
    made = stack(session, *OTHER, asked)

    lines = [str(notice.text) for notice in made.notices]
    assert any("it removes 100 % of the squared difference" in line for line in lines), lines
    assert any(
        line == "graph.compensation is calibrated on images that are also evaluated"
        for line in lines
    ), lines


def test_a_model_without_batchnorm_says_so_in_one_line(session):
    asked = "graph.batchnorm.statistics={samples: 4, through: deploy, source: data}"
    made = stack(session, asked)

    lines = [str(notice.text) for notice in made.notices]
    assert (
        "batchnorm: this axis does not exist in this model: it has no BatchNormalization" in lines
    )


def fitted(source):
    return f"graph.compensation={{form: affine, calibration: {{samples: 99, source: {source}}}}}"


def said(made):
    return [str(notice.text) for notice in made.notices]


def test_a_copy_of_an_evaluated_image_is_an_evaluated_image(session, data, tmp_path):
    """A folder of other images, and the same folder with a copy under another name."""
    other = tiny.data(tmp_path / "other", 3)
    for path in other.rglob("*[01].jpg"):
        path.unlink()
    words = "some of the images that graph.compensation is calibrated on are also evaluated"

    assert words not in said(stack(session, *OTHER, fitted(other)))
    shutil.copyfile(next(data.rglob("*.jpg")), other / "copy.jpg")
    assert words in said(stack(session, *OTHER, fitted(other)))


@pytest.mark.parametrize("asked", ["graph.compensation", "INT8"])
def test_images_that_cannot_be_read_are_counted(session, tmp_path, asked):
    """One of four: the remark stays with the artifact, so that it is told from the cache too."""
    folder = tiny.data(tmp_path / "some", 1)
    (folder / "broken.jpg").write_bytes(b"no image")
    if asked == "INT8":
        given = f"{{samples: 99, through: deploy, source: {folder}}}"
        base, changes = "ort_int8", [f"precision.quantizer.calibration={given}"]
    else:
        base, changes = "pillow_fp32", [fitted(folder)]
    words = "1 of 4 calibration images could not be preprocessed and were left out"
    for _ in range(2):
        assert f"{asked}: {words}" in said(stack(session, *changes, base=base))


def test_more_than_half_cannot_be_read(session, tmp_path):
    folder = tiny.data(tmp_path / "some", 1)
    for number in range(4):
        (folder / f"broken{number}.jpg").write_bytes(b"no image")
    with pytest.raises(DataError, match="more than half of the 7 calibration images") as refused:
        stack(session, fitted(folder))
    assert "\n" not in str(refused.value)
