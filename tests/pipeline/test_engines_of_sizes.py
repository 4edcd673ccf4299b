"""Networks of any size behind engines of fixed sizes: what looks inside takes one engine."""

import json

import numpy as np
import pytest
import tiny
import torch
from onnx import helper, numpy_helper

import simulator
from simulator.diagnose.layers.part import part
from simulator.errors import ModelError, UserError
from simulator.experiments.common import chosen
from simulator.experiments.pictures.feature_maps import _is_map
from simulator.experiments.session import Session
from simulator.faults.run import built
from simulator.model.artifact import Feeds, _calibrating
from simulator.model.onnxfile import dims, load
from simulator.model.passes.graph.edit import inputs_of
from simulator.model.points import Graph
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan

SIZES = [(64, 64), (48, 64), (64, 48), (33, 64), (128, 96)]
"""In a square of 64: 64x64, 48x64, 64x48, 48x64 and 64x48 after the letterbox."""
FREE = "geometry={kind: model, rounding: model}"
TWO = "geometry.input_size={kind: fixed, sizes: [[64, 64], [48, 64]]}"
ONE = "geometry.input_size={kind: fixed, sizes: [[64, 64]]}"


class Colors(torch.nn.Module):
    """The mean of each channel after a convolution that keeps it."""

    kept = torch.eye(3)[:, :, None, None]

    def forward(self, x):
        return torch.nn.functional.conv2d(x, self.kept).relu().mean((2, 3))


@pytest.fixture(scope="module")
def colors(tmp_path_factory):
    """A classifier of any size, as ONNX and as a program, and pictures of five sizes."""
    folder = tmp_path_factory.mktemp("colors")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="keep", kernel_shape=[1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["y"], name="flat"),
    ]
    net = tiny.model(nodes, {"x": [1, 3, "h", "w_"]})
    net.graph.initializer.append(
        numpy_helper.from_array(np.eye(3, dtype=np.float32)[:, :, None, None], "w")
    )
    free = {**tiny.SPEC["input"], "height": "free", "width": "free", "multiple_of": 16}
    rect = {"kind": "rect_letterbox", "long_side": 64, "multiple_of": 16, "value": 110}
    card = tiny.card(folder, net, input=free, torch_export="net.pt2",
                     geometry={**rect, "rounding": "albumentations"})  # fmt: skip
    sides = {at: torch.export.Dim(f"side{at}", min=16, max=256) for at in (2, 3)}
    program = torch.export.export(Colors(), (torch.zeros(1, 3, 32, 48),), dynamic_shapes=(sides,))
    torch.export.save(program, folder / "net.pt2")
    for name, color in tiny.COLORS.items():
        (folder / "data" / name).mkdir(parents=True)
        for at, size in enumerate(SIZES):
            image = tiny.encoded(tiny.picture(color, size, at), "png")
            (folder / "data" / name / f"{at}.png").write_bytes(image)
    return card, folder / "data"


@pytest.fixture
def session(colors, cache):
    with Session.open(*colors, None, 0, 1, None, None) as opened:
        yield opened


def stack(session, profile, *changes):
    one = chosen(profile, [FREE, *changes])
    return session.builder.stack("deploy", one, {"train": one, "deploy": one})


@pytest.mark.parametrize("profile", ["litert_int8", "ncnn_fp32"])
def test_a_runtime_has_an_engine_for_each_size(session, profile):
    """LiteRT's are made of a program of any size, and calibrated on the inputs of their own."""
    made = stack(session, profile, TWO, *CALIBRATED[profile])
    opened = LocalExecutor(session.card.modality, session.builder.runtimes, workers=1).open(
        plan({Arm("one"): made.chain})
    )
    for item in session.dataset.items:
        answer = opened.walk(session.executor.context(item)).answers()[0].prediction
        assert session.card.labels.names[answer.prediction] == item.name.split("/")[0]


CALIBRATED = {"litert_int8": ["precision.quantizer.calibration.samples=15"], "ncnn_fp32": []}


def test_an_engine_is_calibrated_on_inputs_of_its_size(session):
    (size,) = session.card.modality.sized(
        chosen("pillow_fp32", [FREE, ONE])[0], session.card.spec, 1
    )
    card, shapes = session.card.sized(size), [(1, 3, 48, 64), (1, 3, 64, 64)]
    inputs = [{"x": np.zeros(shape, np.float32)} for shape in shapes]

    assert [*_calibrating(card, Feeds("", lambda: iter(inputs)))] == inputs[1:]
    with pytest.raises(ModelError, match="none of the calibration samples is of 1x3x64x64"):
        [*_calibrating(card, Feeds("", lambda: iter(inputs[:1])))]


def test_layers_are_compared_on_the_size_that_most_inputs_have(session):
    sizes = [(64, 64), (48, 64), (48, 64), (32, 64)]
    inputs = [np.random.default_rng(0).normal(size=(1, 3, *size)) for size in sizes]
    sides = stack(session, "pillow_fp32"), stack(session, "ncnn_fp32", TWO)

    found = part(*sides, [one.astype(np.float32) for one in inputs], session).figures

    assert found.samples == 2
    assert "compared on the 2 of 4 inputs of 1x3x48x64" in " ".join(found.notes)
    assert max(row.accumulated.rms for row in found.rows) < 1e-5
    with pytest.raises(ModelError, match="no common size"):
        part(*sides, [inputs[3].astype(np.float32)], session)


def test_a_map_of_a_free_size_is_a_map(session):
    points = Graph(load(session.source.path)).points.values()
    assert [point.layer for point in points if _is_map(point)] == ["keep", "relu"]


def test_a_diagnosis_feeds_both_networks_what_both_take(colors, cache, tmp_path):
    sides = [f"train.{FREE}", f"deploy.{FREE}", f"deploy.{TWO}"]
    found = simulator.diagnose(
        "pillow_fp32", "ncnn_fp32", model=colors[0], data=colors[1], overrides=sides,
        out=tmp_path / "run",
    ).summary  # fmt: skip

    assert [one.state for one in found.parts] == ["differs", "rounding", "equal"]
    assert "Fed the deployment stack's input" in found.parts[1].told[0]


def test_a_runtime_of_fixed_sizes_is_explained_together_with_the_sizes(colors, cache, tmp_path):
    sides = [f"train.{FREE}", f"deploy.{FREE}", f"deploy.{TWO}"]
    found = simulator.explain(
        "pillow_fp32", "ncnn_fp32", model=colors[0], data=colors[1], overrides=sides,
        out=tmp_path / "run",
    ).summary  # fmt: skip

    assert found.axes == ["normalize", "input_size+runtime"]
    assert any(str(one).startswith("input_size+runtime are swapped together; apart, a mixture does "
                                   "not run: ") for one in found.warnings)  # fmt: skip
    kept = json.loads((tmp_path / "run" / "manifest.json").read_text())["stacks"]
    assert {*kept["deploy"]["artifact"]["files"]} == {"3x64x64", "3x48x64"}


def test_faults_need_one_size_and_fix_it(session):
    (made,), _ = built(session, {"deploy": chosen("pillow_fp32", [FREE, ONE])}, None)
    assert [dims(one) for one in inputs_of(load(made.artifact.path))] == [(1, 3, 64, 64)]
    for change, told in ((TWO, "of one size, not of 1x3x64x64 and 1x3x48x64"), (FREE, "varies by")):
        with pytest.raises(UserError, match=told):
            built(session, {"deploy": chosen("pillow_fp32", [FREE, change])}, None)
