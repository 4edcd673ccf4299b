"""Blame on a network whose answers are known: the strongest of red, green and blue."""

import pyarrow.parquet as pq
import pytest
import tiny

from simulator import explain
from simulator.errors import UserError
from simulator.profile.suite import load_suite

SWAPPED = ["deploy.color.order=bgr", "deploy.resize=opencv-nearest"]


def explained(out, overrides, folder):
    return explain(
        "pillow_fp32", "pillow_fp32", model=tiny.card(folder / "model"), overrides=overrides,
        data=tiny.data(folder / "data"), out=out,
    )  # fmt: skip


@pytest.fixture(scope="module")
def blame(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blame")
    return explained(folder / "run", SWAPPED, folder)


def test_the_guilty_axis_is_charged_with_everything(blame):
    """Red and blue trade places, green stays: 4 of 6 flip, all of them by color alone."""
    rate, top1 = (blame.summary["blame"][metric] for metric in ("flip_rate", "top1"))

    assert rate["total"]["value"] == pytest.approx(4 / 6)
    assert top1["total"]["value"] == pytest.approx(-4 / 6)
    for block in ("swap_in", "waterfall", "shapley"):
        assert top1[block]["color"]["value"] == pytest.approx(-4 / 6)
        assert top1[block]["resize"]["value"] == pytest.approx(0)
    assert top1["swap_out"]["color"]["value"] == pytest.approx(4 / 6)
    assert top1["residual"] < 1e-9
    assert top1["family"] == 2
    assert top1["total"]["p"] == 2 / 2**4  # all four that changed, changed for the worse


def test_every_flipped_image_names_the_axis_that_flips_it_alone(blame):
    rows = pq.read_table(blame.folder / "blame.parquet").to_pylist()

    assert {row["sample"].partition("/")[0] for row in rows} == {"red", "blue"}
    assert all(row["alone"] == ["color"] for row in rows)
    assert all((row["changed"], row["units"]) == (1, 1) for row in rows)


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        # Pillow and OpenCV decode JPEGs alike; a resize does change pixels, if not answers.
        (["deploy.decode.backend=opencv", "deploy.resize=opencv-nearest"],
         {"axes": ["decoder", "resize"], "null": ["decoder"]}),
        # ONNX Runtime on a CPU computes no BF16, so precision and runtime are one axis.
        (["deploy.runtime={backend: openvino, graph_optimization_level: null}",
          "deploy.precision.compute=bf16", "deploy.color.order=bgr"],
         {"axes": ["color", "precision+runtime"]}),
        # FP16 is OpenVINO's provider in ONNX Runtime, which no build from PyPI has.
        (["deploy.runtime={backend: openvino, graph_optimization_level: null}",
          "deploy.precision.compute=fp16"], {"axes": ["precision+runtime"]}),
    ],
    ids=["an axis that changes nothing is null", "axes that cannot run apart go together",
         "nor those whose mixture lacks a library"],
)  # fmt: skip
def test_axes_are_told_apart_as_far_as_can_be(tmp_path, overrides, found):
    summary = explained(tmp_path / "run", overrides, tmp_path).summary

    assert {name: summary[name] for name in found} == found


def test_equal_stacks_leave_nothing_to_explain(tmp_path):
    with pytest.raises(UserError, match="nothing to explain"):
        explained(tmp_path / "run", [], tmp_path)


@pytest.mark.parametrize("name", ["sysnoise", "robustmq-s"])
def test_the_built_in_suites_are_valid(name):
    assert load_suite(name).spec.name == name
