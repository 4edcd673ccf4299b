"""Each axis alone: what a pair says must be what a pair with that axis alone measures."""

import tiny
import tiny_tasks

from simulator import compare
from simulator.report.verdict import line

AXES = {"color": ["color.order=bgr"], "resize": ["resize=pil-nearest"],
        "precision": ["precision=int8"]}  # fmt: skip


def run(card, data, out, changes, **options):
    return compare(
        "pillow_fp32", "pillow_fp32", overrides=[f"deploy.{one}" for one in changes], model=card,
        data=data, out=out, **options,
    ).summary  # fmt: skip


def by_axes(summary):
    return {"+".join(one.axes): one for one in summary.alone}


def check(card, data, tmp_path, axes):
    """Compare a pair of all *axes* with a pair of each."""
    whole = by_axes(run(card, data, tmp_path / "all", [one for axis in axes for one in AXES[axis]]))

    assert set(whole) == set(axes)
    for axis in axes:
        single = run(card, data, tmp_path / axis, AXES[axis], quick=True)
        found = whole[axis]
        assert (found.samples, found.changed, found.units) == (
            single.samples, single.flips.count, single.flips.units
        )  # fmt: skip
        assert found.rate == single.flips.rate and found.ci95 == single.flips.ci95
        assert found.delta == single.delta[single.metric]
    return whole


def test_classes(card, tmp_path):
    data = tiny.data(tmp_path / "data", each=5)

    found = check(card, data, tmp_path, ["color", "resize"])

    assert found["color"].changed == 10, "red and blue change places"


def test_boxes(tmp_path):
    data = tiny_tasks.data(tmp_path / "boxes", copies=2)

    check(tiny_tasks.card(tmp_path / "detector"), data, tmp_path, ["color", "resize"])


def test_the_axis_that_changes_most_comes_first_and_is_named(card, tmp_path):
    data = tiny.data(tmp_path / "data", each=5)

    found = run(card, data, tmp_path / "run", AXES["resize"] + AXES["color"])

    assert [one.axes for one in found.alone] == [["color"], ["resize"]]
    assert found.verdict.cause.startswith("Most of it: color, 10 (95 % interval ")
    assert line(found.verdict).startswith("10 of 15 answers change: 66.67%")


def test_a_quick_run_leaves_it_out(card, data, tmp_path):
    found = run(card, data, tmp_path / "run", AXES["color"], quick=True)

    assert found.alone == [] and found.verdict.cause is None
    assert found.flips.count


def test_precision_and_runtime_are_swapped_alone_or_together_or_say_why_not(card, data, tmp_path):
    found = compare("pillow_fp32", "openvino_int8", model=card, data=data, out=tmp_path / "run")

    known = by_axes(found.summary)
    assert all(one.why or one.samples == found.summary.samples for one in known.values())
    assert any("precision" in one.axes for one in known.values())
