"""The verdict of real runs, held against what the runs' own records say."""

import pytest
import tiny

from simulator.experiments.explain import explain
from simulator.report.verdict import line

OVERRIDES = ["deploy.color.order=bgr", "deploy.resize=pil-nearest"]
"""Red and blue change places, so ten of fifteen answers become wrong; the resize is harmless."""


@pytest.fixture
def explained(card, tmp_path):
    data = tiny.data(tmp_path / "data", each=5)
    return explain(
        "pillow_fp32", "pillow_fp32", overrides=OVERRIDES, model=card, data=data,
        out=tmp_path / "run",
    ).summary  # fmt: skip


def test_the_axis_at_fault_and_its_repair_are_named(explained):
    found = explained.verdict

    assert found.decision is None
    assert found.lost[0].startswith("pillow_fp32 moves top-1 by -66.67 points")
    assert found.cause.startswith("color has most of it: -66.67 points")
    assert found.next == "repair color first; alone that wins back 66.67 points of top-1."
    assert line(found).startswith("pillow_fp32 moves top-1") and "Next: repair" in line(found)


def test_a_repair_that_would_lose_is_not_advised(card, tmp_path):
    """The deployment is right where training is wrong: each repair gives answers away."""
    data = tiny.data(tmp_path / "data", each=5)
    found = explain(
        "pillow_fp32", "pillow_fp32", overrides=[*OVERRIDES, "train.color.order=bgr",
        "deploy.color.order=rgb"][1:], model=card, data=data, out=tmp_path / "run",
    ).summary  # fmt: skip

    assert found.verdict.lost[0].startswith("pillow_fp32 moves top-1 by +66.67 points")
    assert found.blame["top1"].swap_out["color"].value == pytest.approx(-2 / 3)
    assert found.verdict.next is None
