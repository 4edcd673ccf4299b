"""The main job, where its parts meet."""

import tarfile

import numpy as np
import pytest
import tiny
from onnx import helper

from simulator import compare
from simulator.errors import UserError
from simulator.model.passes.graph.edit import shapes_of
from simulator.notices import Kind


@pytest.fixture
def run(card, data, cache, tmp_path):
    def run_with(*overrides, **options):
        given = {"model": card, "data": data, "out": tmp_path / "run", **options}
        return compare("pillow_fp32", "pillow_fp32", overrides=overrides, **given).summary

    return run_with


def test_a_side_against_itself_changes_nothing(run):
    summary = run()

    assert summary["flips"]["count"] == 0
    assert summary["axes"] == []
    assert summary["controls"]["self"] == {"samples": 4, "flips": 0, "bit_equal": True}


def test_levels_are_those_of_the_pixels(run):
    """Red becomes blue and blue red: on pure noise-free channels 220 - 40 = 180 levels."""
    (axis,) = run("deploy.color.order=bgr")["axes"]

    assert axis["axis"] == "color"
    assert axis["effect"]["changed"] == axis["effect"]["samples"] == 6
    assert 100 < axis["effect"]["max"] <= 255


def test_levels_do_not_depend_on_the_std(run, tmp_path):
    one = run("deploy.color.order=bgr")["axes"][0]["effect"]
    std = [f"{side}.normalize.std=[1.0, 2.0, 4.0]" for side in ("train", "deploy")]
    other = run("deploy.color.order=bgr", *std, out=tmp_path / "other")["axes"][0]["effect"]

    assert other["mean"] == pytest.approx(one["mean"], abs=0.5)


@pytest.mark.parametrize("packed", [False, True])
def test_calibration_takes_any_source_of_images(run, tmp_path, packed):
    """Its folders are no classes of the model, and it needs none; an archive will do."""
    source = tmp_path / "calibration"
    for name in ("n01440764", "n01443537"):
        (source / name).mkdir(parents=True)
        (source / name / "a.jpg").write_bytes(tiny.encoded(tiny.picture((90, 20, 200))))
    if packed:
        with tarfile.open(tmp_path / "calibration.tar", "w") as archive:
            archive.add(source, ".")
        source = tmp_path / "calibration.tar"
    quantizer = (
        "{backend: onnxruntime, weights: per_channel, activations: uint8, symmetric: false,"
        " reduce_range: false,"
        f" method: minmax, calibration: {{samples: 2, through: train, source: {source}}}}}"
    )

    summary = run(
        "deploy.precision.storage=int8",
        "deploy.precision.compute=int8",
        f"deploy.precision.quantizer={quantizer}",
    )

    assert summary["samples"] == 6
    told = [notice.text for notice in summary.warnings if notice.kind is Kind.CALIBRATION]
    assert not any("also evaluated" in text for text in told)


def pooled(**options):
    """A 3x3, stride 2 max-pool before the classifier: 32 becomes 15 or, rounded up, 16."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    return tiny.model(nodes, constants={"w": np.eye(3, dtype=np.float32)}, **options)


def test_pooling_is_compared_between_the_two_stacks(run, tmp_path):
    """Train ceil against deploy keep is a difference, though deploy rewrites nothing."""
    card = tiny.card(tmp_path / "pooled", pooled())
    assert shapes_of(pooled())["p"] == [1, 3, 15, 15]

    (axis,) = run("train.graph.pooling.ceil_mode=ceil", model=card)["axes"]

    effect = axis["effect"]
    assert (effect.null, effect.why) == (False, "1 of 1 pooling nodes give another output size")


def test_a_model_of_free_height_and_width_runs(run, tmp_path):
    nodes = tiny.classifier().graph.node
    free = tiny.model(
        list(nodes), {"x": [1, 3, "h", "w"]}, constants={"w": np.eye(3, dtype=np.float32)}
    )

    summary = run(model=tiny.card(tmp_path / "free", free))

    assert summary["train"]["metric"]["top1"] == 1


def test_strict_refuses_what_is_not_in_force(run):
    """The CPU plugin has no FP16 arithmetic on a machine without AVX512-FP16."""
    overrides = (
        "deploy.runtime={backend: openvino, graph_optimization_level: null}",
        "deploy.precision={storage: fp16, compute: fp16, cast: {backend: onnxconverter}}",
    )
    warned = [notice for notice in run(*overrides).warnings if notice.is_strict]
    if warned:
        with pytest.raises(UserError, match="was asked for"):
            run(*overrides, strict=True, overwrite=True)
    else:
        assert run(*overrides, strict=True, overwrite=True)["samples"] == 6
