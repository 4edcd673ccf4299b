"""All rewrites together: on the shared models, and what is said of each."""

from importlib.metadata import EntryPoint

import numpy as np
import official
import onnx
import pytest
import tiny
import yaml
from onnx import helper
from pydantic import create_model
from shared_data import shared

from simulator import sweep
from simulator.contract import Evidence
from simulator.contract.passes import PASSES, GraphPass
from simulator.modalities.modality import Feed
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.model.passes.graph.change import Change
from simulator.model.passes.graph.edit import pin
from simulator.model.passes.rewrite import requested, rewrite
from simulator.model.rewritten import graph_difference
from simulator.profile.axes import evidence
from simulator.profile.graph import Graph
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.modality import graph_axes

TABLE = {"entries": 257, "limit": 8.0, "interpolation": "linear"}
REAL = [
    ("squeezenet1.1_ceil_227", {"pooling": {"ceil_mode": "floor"}},
     ["3 of 3 MaxPool changed, 1 without effect because the sizes divide evenly or padding has no "
      "effect"]),
    ("squeezenet1.1_ceil_227", {"layout": "nhwc"},
     ["17 of 26 Conv changed; 9 unchanged: not pointwise"]),
    ("deeplabv3_257_logits33", {"upsample": {"mode": "nearest"}},
     ["1 of 1 Resize changed, 1 without effect because both give the same values at these sizes"]),
    ("bccd_retinanet_320x416", {"upsample": {"coordinate_transformation_mode": "half_pixel"}},
     ["2 of 2 Resize changed"]),
    ("bccd_retinanet_320x416", {"pooling": {"ceil_mode": "ceil", "on_shape_change": "crop"}},
     ["1 of 1 MaxPool changed; cropped before Add '/Add'; cropped before Add '/Add_1'; "
      "cropped before Reshape '/Reshape_2'; cropped before Reshape '/Reshape_5'"]),
    ("bccd_retinanet_320x416", {"pooling": {"auto_pad": "same_upper"}}, ["1 of 1 MaxPool changed"]),
    ("yolox_nano_416", {"activation": {"swish": "hard"}}, ["104 of 104 Swish changed"]),
    ("yolox_nano_416", {"activation": {"sigmoid": "table", "table": TABLE}},
     ["104 of 104 Swish changed, 6 of 6 Sigmoid changed"]),
    ("fastestdet_352", {"activation": {"softmax": "fp16"}, "upsample": {"mode": "linear"}},
     ["1 of 1 Resize changed", "1 of 1 Softmax changed"]),
    ("fastestdet_352", {"accumulation": {"dtype": "fp16", "block": 128}},
     ["70 of 70 Conv changed"]),
]  # fmt: skip


def graph(fields):
    return Graph.model_validate(fields)


@pytest.mark.parametrize(("name", "fields", "words"), REAL)
def test_real_models(name, fields, words):
    model = onnx.load(shared("models") / f"{name}.onnx")
    dims = model.graph.input[0].type.tensor_type.shape.dim
    x = np.random.default_rng(0).random([d.dim_value or 1 for d in dims]).astype(np.float32)
    feeds = {model.graph.input[0].name: x}
    before = official.runtime(model, feeds)
    pin(model, [Feed(None, x.dtype, x.shape)])

    changes = rewrite(model, graph(fields))

    after = official.runtime(model, feeds)
    assert [str(change) for change in changes] == words
    assert np.isfinite(after).all()
    assert after.shape == before.shape
    if any(change.effective for change in changes):
        assert not np.array_equal(after, before)
    onnx.checker.check_model(model, full_check=True)


def everything():
    """A model with a node of every axis."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "one", "one", "one", "one"], ["n"]),
        helper.make_node("Sigmoid", ["n"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["p"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("Resize", ["p", "", "up"], ["r"], mode="linear"),
        helper.make_node("RoiAlign", ["r", "box", "first"], ["b"], sampling_ratio=1),
        helper.make_node("GlobalAveragePool", ["b"], ["g"]),
        helper.make_node("Flatten", ["g"], ["y"]),
    ]
    constants = {
        "w": rng.normal(size=(3, 3, 1, 1)).astype(np.float32),
        "one": np.ones(3, np.float32),
        "up": np.array([1, 1, 2, 2], np.float32),
        "box": np.array([[1.5, 2, 20, 25]], np.float32),
        "first": np.array([0]),
    }
    return tiny.model(nodes, {"x": ["n", 3, "h", "w"]}, constants=constants)


EACH = {
    "compensation": {"form": "affine", "calibration": {"samples": 2, "source": "data"}},
    "pooling": {"ceil_mode": "ceil"},
    "upsample": {"coordinate_transformation_mode": "align_corners"},
    "activation": {"sigmoid": "hard"},
    "batchnorm": {"folding": "fold"},
    "accumulation": {"dtype": "fp16", "block": 2},
    "layout": "nhwc",
    "roi_align": {"sampling_ratio": 2},
}


def test_every_axis_has_its_rewrite():
    assert tuple(requested(graph(EACH))) == graph_axes() == tuple(EACH)


def test_all_at_once():
    model = everything()

    changes = rewrite(model, graph(EACH))

    assert [change.axis for change in changes] == list(EACH)
    assert all(change.effective for change in changes)
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype(np.float32)}
    got = official.runtime(model, feeds)
    np.testing.assert_allclose(official.reference(model, feeds), got, rtol=1e-3)


def test_a_pass_of_another_package_has_its_place_in_the_order(monkeypatch):
    """Ours are multiples of 100; one of 350 runs after the activations and before batchnorm."""

    def apply(model, asked):
        kinds = {node.op_type for node in model.graph.node}
        assert "HardSigmoid" in kinds and "BatchNormalization" in kinds
        return Change("own", "Conv", {}, {}, notes=(f"asked for {asked}",))

    point = EntryPoint("own", "own:PASS", "simulator.graph_passes")
    monkeypatch.setitem(PASSES.points, "own", point)
    monkeypatch.setitem(PASSES._loaded, "own", GraphPass("own", 350, int, 0, apply))
    asked = create_model("Own", __base__=Graph, own=(int, 0)).model_validate(EACH)

    changes = rewrite(everything(), asked.model_copy(update={"own": 3}))

    assert [change.axis for change in changes] == [*list(EACH)[:4], "own", *list(EACH)[4:]]
    assert changes[4].notes == ("asked for 3",)
    assert [change.axis for change in rewrite(everything(), asked)] == list(EACH)


def test_nothing_asked_for_changes_nothing():
    model = everything()

    assert rewrite(model, Graph()) == []
    assert model == everything()


@pytest.mark.parametrize("axis", [axis for axis in EACH if axis != "compensation"])
def test_a_card_compares_two_stacks(axis, tmp_path):
    """The card says that the free height and width are 32."""
    card = Card(tiny.card(tmp_path, everything()))
    none = Card(tiny.card(tmp_path / "none", without := tiny.model(
        [helper.make_node("GlobalAveragePool", ["x"], ["g"]),
         helper.make_node("Flatten", ["g"], ["y"])]
    )))  # fmt: skip
    sides = (Graph(), graph({axis: EACH[axis]}))

    changed, words = graph_difference(card, check(card), axis, *sides)

    assert (changed, words.startswith(f"1 of 1 {axis} nodes")) == (1, True)
    assert graph_difference(card, check(card), axis, *sides[:1] * 2)[0] == 0
    assert graph_difference(none, check(none), axis, *sides) == (
        0, f"this axis does not exist in this model: {words_of(axis)}",
    )  # fmt: skip
    assert len(without.graph.node) == 2


def words_of(axis):
    return {
        "pooling": "it has no MaxPool or AveragePool",
        "upsample": "it has no Resize or Upsample",
        "activation": "it has no Gelu, Sigmoid, Swish, Exp or Softmax",
        "batchnorm": "it has no BatchNormalization",
        "accumulation": "it has no Conv, Gemm or MatMul",
        "layout": "it has no Conv",
        "roi_align": "it has no RoiAlign",
    }[axis]


@pytest.mark.parametrize(
    ("axis", "override", "kind"),
    [
        ("accumulation", "graph.accumulation={dtype: fp16, block: 8}", Evidence.EMULATED),
        ("activation", "graph.activation={softmax: fp16}", Evidence.EMULATED),
        ("activation", "graph.activation={softmax: keep}", Evidence.NATIVE),
        ("pooling", "graph.pooling={ceil_mode: ceil}", Evidence.NATIVE),
    ],
)
def test_rebuilt_arithmetic_is_not_called_native(axis, override, kind):
    profile = load("pillow_fp32", [override])

    assert evidence(profile, choose(profile), axis)[0] is kind


def test_a_sweep_leaves_out_what_a_model_has_not_or_cannot(tmp_path, data, cache):
    """15 x 15 x 3 = 675 values go into the Gemm, and 16 x 16 x 3 with ceil_mode do not."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    weights = {"w": np.random.default_rng(0).normal(size=(675, 3)).astype(np.float32)}
    card = tiny.card(tmp_path / "model", tiny.model(nodes, constants=weights))
    columns = {
        "graph": {
            "ceil": {"graph.pooling.ceil_mode": "ceil"},
            "crop": {"graph.pooling": {"ceil_mode": "ceil", "on_shape_change": "crop"}},
            "nearest": {"graph.upsample.mode": "nearest"},
            "fp16": {"graph.accumulation": {"dtype": "fp16", "block": 64}},
        }
    }
    suite = {"schema": 1, "name": "graphs", "summary": "s", "train": "pillow_fp32"}
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump({**suite, "columns": columns}))

    (result,) = sweep(str(path), models=[card], data=data, out=tmp_path / "runs")

    absent = result.summary["left_out"]
    assert set(absent) == {"graph/ceil", "graph/nearest"}
    assert "node name: fc" in absent["graph/ceil"]
    assert "it has no Resize or Upsample" in absent["graph/nearest"]
    assert set(result.summary["columns"]["graph"]["options"]) == {"crop", "fp16"}
