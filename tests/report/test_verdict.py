"""The verdict of real runs, held against what the runs' own records say."""

import pytest
import tiny
from made_pairs import blamed, effect
from made_pairs import explained as made

from simulator import explain
from simulator.experiments.explain import report
from simulator.notices import Kind, Notice
from simulator.report.verdict import line
from simulator.results.read import read_summary

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
    assert "Repair color first: alone that wins back 66.67 points of top-1 (95 %" in found.cause
    assert line(found).startswith("pillow_fp32 moves top-1") and found.next is None


def test_a_repair_that_would_lose_is_not_advised(card, tmp_path):
    """The deployment is right where training is wrong: each repair gives answers away."""
    data = tiny.data(tmp_path / "data", each=5)
    found = explain(
        "pillow_fp32", "pillow_fp32", overrides=[*OVERRIDES, "train.color.order=bgr",
        "deploy.color.order=rgb"][1:], model=card, data=data, out=tmp_path / "run",
    ).summary  # fmt: skip

    assert found.verdict.decision == "not judged"  # training is right on one class of three
    assert found.verdict.lost[1].startswith("pillow_fp32 moves top-1 by +66.67 points")
    assert found.blame["top1"].swap_out["color"].value == pytest.approx(-2 / 3)
    assert "wins back" not in (found.verdict.cause or "")


def test_saturation_is_blamed_and_not_precision(tmp_path):
    """Where sums of INT8 products are cut, what the axis costs is no rounding to 8 bits."""
    axes = ["resize", "precision"]
    shares = [effect(-0.01, -0.02, 0.0), effect(-0.07, -0.1, -0.05, holm=0.001)]
    blame = {"top1": blamed(axes, [-0.01, -0.07], shares, {}, -0.08)}
    cause = {}
    for told in ([], [Notice(Kind.SATURATED, "sums are cut", ("deploy",))]):
        folder = made(tmp_path / f"{len(told)}", axes, blame, warnings=told)
        _, summary = read_summary(folder)
        cause[len(told)] = report.verdict(summary).cause

    assert cause[0].startswith("precision has most of it: -7.00 points")
    assert cause[1].startswith("saturation of INT8 products (axis precision) has most of it: -7")
