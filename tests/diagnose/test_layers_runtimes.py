"""Layer by layer between runtimes: by ONNX files where there is one, else as a runtime shows it."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import tiny
from onnx import helper

from backends.intel.openvino_runtime import ov
from backends.litert.probe import save_conv
from simulator.contract import Stage, Unsupported
from simulator.contract.recipe import Chain
from simulator.diagnose.layers.opaque import alike, opaque
from simulator.diagnose.layers.part import part
from simulator.diagnose.layers.shown import section, sentences, table
from simulator.errors import ModelError
from simulator.experiments.common import stacks_of, variants
from simulator.experiments.session import Session
from simulator.model.artifact import Artifact
from simulator.pipeline.inference import Infer
from simulator.profile.implementations import choose
from simulator.profile.load import load

RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
W, V = (RNG.standard_normal(s).astype(np.float32) for s in ((4, 3, 1, 1), (5, 4, 3, 3)))


def small():
    """Two convolutions with an activation between them, of 8 x 8 pixels."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "v"], ["y"], name="second", pads=[1, 1, 1, 1]),
    ]
    shapes = {"x": [1, 3, 8, 8]}, {"y": [1, 5, 8, 8]}
    return tiny.model(nodes, *shapes, constants={"w": W, "v": V})


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    home = tmp_path_factory.mktemp("layers")
    chosen = stacks_of({"train": "pillow_fp32"}, ["train.runtime.threads=1"])
    card = tiny.card(home / "m")
    with Session.open(card, tiny.data(home / "data"), None, 0, 1, None, None) as session:
        (stack,) = session.stacks(variants(chosen).values())
        onnx.save(small(), str(home / "small.onnx"))
        train = replace(stack, artifact=Artifact(home / "small.onnx", "small", "onnx"))
        yield session, train, home


def deployed(train, profile, path, format="onnx", name="x"):
    """The same stack with another runtime and another file; *name* is its input."""
    choice = choose(load(profile, ["runtime.threads=1"]))[Stage.RUNTIME]
    artifact = Artifact(Path(path), f"{path}", format)
    infer = Infer(choice, artifact, {"": name}, {})
    choices = {**train.choices, Stage.RUNTIME: choice}
    return replace(train, choices=choices, artifact=artifact, chain=Chain((infer,)))


@pytest.mark.parametrize("profile", ["openvino_ppp_fp32", "mnn_fp32"])
def test_runtimes_that_take_onnx_are_compared_at_every_layer(opened, profile):
    session, train, home = opened

    found = part(train, deployed(train, profile, home / "small.onnx"), [X], session)

    assert [one.layer for one in found.figures.rows] == ["first", "relu", "second"]
    for one in found.figures.rows:
        assert one.accumulated.rms < 1e-6
        assert one.alone.rms < 1e-6
    assert found.figures.first is None
    assert sentences(found.figures)[0].startswith("No layer parts: the largest error is ")


def test_litert_shows_its_layers_and_they_are_matched_in_nhwc(opened):
    session, train, home = opened
    save_conv(W * np.float32(1.1), home / "conv.tflite")  # in NHWC
    deploy = deployed(train, "litert_fp32", home / "conv.tflite", "tflite")

    found = part(train, deploy, [X], session)

    (one,) = found.figures.rows
    assert (one.tensor, one.layer, one.own, one.shape) == ("a", "first", "y", [1, 4, 8, 8])
    assert one.accumulated.rms == pytest.approx(0.1, rel=1e-4)
    assert one.alone is None
    assert (found.figures.unmatched, found.figures.extra) == (2, 0)
    assert found.figures.first == "first"
    assert one.reasons == ["no known reason"]
    assert "layers were not run by themselves: the file of litert is not cut" in found.figures.notes


def test_openvino_shows_what_a_file_of_its_own_computes(opened):
    session, train, home = opened
    ov.save_model(ov.Core().read_model(str(home / "small.onnx")), str(home / "small.xml"),
                  compress_to_fp16=False)  # fmt: skip

    found = part(
        train, deployed(train, "openvino_ppp_fp32", home / "small.xml", "openvino_ir"), [X], session
    )

    assert [one.layer for one in found.figures.rows] == ["first", "relu", "second"]
    assert all(one.accumulated.rms < 1e-6 for one in found.figures.rows)


def test_a_resize_that_a_runtime_rounds_otherwise_is_named(opened):
    """MNN takes every nearest_mode for round_prefer_floor, but for floor."""
    session, train, home = opened
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Resize", ["a", "", "", "n"], ["r"], name="resize", mode="nearest",
                         coordinate_transformation_mode="asymmetric", nearest_mode="ceil"),
        helper.make_node("Conv", ["r", "v"], ["y"], name="second"),
    ]  # fmt: skip
    constants = {"w": W, "v": V, "n": np.int64([1, 4, 14, 14])}
    model = tiny.model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 5, 12, 12]}, constants)
    onnx.save(model, str(home / "resize.onnx"))
    file = Artifact(home / "resize.onnx", "resize", "onnx")

    found = part(
        replace(train, artifact=file), deployed(train, "mnn_fp32", file.path), [X], session
    )

    (finding,) = found.findings
    assert found.figures.first == "resize"
    assert finding.name == "mnn computes Resize in another way"
    assert "in onnxruntime, and of " in finding.evidence[0]
    assert "asymmetric, nearest_mode round_prefer_floor" in finding.evidence[0]
    second = found.figures.rows[2]
    assert second.alone.rms < 1e-6
    assert second.accumulated.rms > 0.1


@pytest.mark.prove
def test_pytorch_shows_its_layers_from_the_confined_worker(opened):
    torch = pytest.importorskip("torch")
    session, train, home = opened
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 1, bias=False), torch.nn.ReLU(),
        torch.nn.Conv2d(4, 5, 3, padding=1, bias=False),
    ).eval()  # fmt: skip
    net[0].weight.data, net[2].weight.data = torch.tensor(W), torch.tensor(V * 2)
    torch.export.save(torch.export.export(net, (torch.tensor(X),)), str(home / "net.pt2"))
    deploy = deployed(train, "pytorch_fp32", home / "net.pt2", "torch_export", "input")

    found = part(train, deploy, [X, X / 2], session)

    assert [one.layer for one in found.figures.rows] == ["first", "relu", "second"]
    assert [round(one.accumulated.rms, 6) for one in found.figures.rows] == [0, 0, 1]
    assert found.figures.first == "second"
    # and the other way round: what PyTorch has is given to the layers of the ONNX file
    back = part(deploy, train, [X], session)
    assert [round(one.alone.rms, 6) for one in back.figures.rows] == [0, 0, 0.5]


class Silent:
    """A runtime that shows nothing."""

    def inner(self, feeds):
        raise Unsupported("Silent does not show what its layers give")

    def of(self, choice, artifact):
        return lambda: nullcontext(self)


def test_a_runtime_that_does_not_show_its_layers_is_refused(opened):
    _, train, home = opened
    deploy = deployed(train, "pytorch_fp32", home / "net.pt2", "torch_export")

    with pytest.raises(ModelError, match=r"its layers are out of reach: Silent does not show"):
        opaque(deploy, Silent(), [X])


def test_channels_last_and_scaled_values_are_alike():
    a, b = (RNG.standard_normal((1, *shape)) for shape in ((4, 6, 6), (5, 6, 6)))
    later = {"one": b.transpose(0, 2, 3, 1) + 1e-3, "two": a.transpose(0, 2, 3, 1) * 3}

    assert alike({"a": a, "b": b}, later) == [("b", "one", (2, 0, 1)), ("a", "two", (2, 0, 1))]


def test_a_table_and_a_chart_show_the_layers(opened):
    session, train, home = opened
    found = part(train, deployed(train, "openvino_ppp_fp32", home / "small.onnx"), [X], session,
                 bound=1e-12)  # fmt: skip

    shown = section(found.figures)
    assert shown.found[0].startswith(f"The networks part at {found.figures.first}: the first layer")
    assert shown.panels[0].figure.data[0]["text"][0] == "first (Conv)"
    assert table(found.figures).lines()[0][0] == "first"
    assert table(found.figures, every=True).lines()[0][2] == "Conv"


@pytest.mark.prove
def test_the_example_in_int8_on_litert_is_followed_layer_by_layer():
    """ai-edge-quantizer keeps weights behind the file's table of contents, and maps are NHWC."""
    chosen = stacks_of({"train": "pillow_fp32", "deploy": "litert_int8"}, [])
    with Session.open(None, None, 4, 0, 2, None, None) as session:
        stacks = session.stacks(variants(chosen).values())
        (feed,) = session.card.feeds

        found = part(*stacks, [RNG.uniform(-1, 1, feed.shape).astype(np.float32)], session)

    rows = found.figures.rows
    assert len(rows) >= 55  # of 62 that ONNX Runtime's own INT8 file has
    assert rows[0].shape == [1, 32, 112, 112]
    assert 0.001 < rows[0].accumulated.rms < 0.05
    assert found.figures.bound == 0.05
