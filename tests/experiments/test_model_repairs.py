"""Repairs of the model file in whole runs: what a session fits, to which pixels, and says of it."""

import pytest

from simulator.experiments.common import chosen
from simulator.experiments.session import Session, Variant

OTHER = ["normalize.mean=[10, 20, 30]", "normalize.std=[40, 50, 60]"]


@pytest.fixture
def session(card, data, cache):
    with Session(card, data, None, 0, 1, None, None) as opened:
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
