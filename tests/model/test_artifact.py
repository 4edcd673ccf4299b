"""Artifacts: made once, found again, never half."""

import numpy as np
import onnx
import pytest
import tiny
from onnx import helper

from simulator import cache as store
from simulator.errors import ModelError, RunError
from simulator.model.artifact import Feeds, build
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.implementations import choose
from simulator.profile.load import load

RNG = np.random.default_rng(0)


@pytest.fixture
def pooled(tmp_path, cache):
    """The card of a model with one pool that rounds."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    return tiny.card(
        tmp_path / "pooled", tiny.model(nodes, constants={"w": np.eye(3, dtype=np.float32)})
    )


def feeds(identity=0):
    def tensors():
        for _ in range(4):
            yield {"x": RNG.normal(size=(1, 3, 32, 32)).astype(np.float32)}

    return Feeds(identity, tensors)


def built(path, *overrides, base="pillow_fp32", calibration=None):
    card, profile = Card(path), load(base, overrides)
    return build(card, check(card), profile, choose(profile), calibration)


def entries(cache):
    return sorted(p.name for p in cache.rglob("*") if p.is_dir() and p.parent.name == "artifacts")


def test_nothing_asked_for_is_the_models_own_file(pooled, cache):
    artifact = built(pooled)

    assert artifact.path == pooled.parent / "model.onnx"
    assert not cache.exists()


def test_a_rewrite_is_a_file_in_the_cache(pooled, cache):
    artifact = built(pooled, "graph.pooling.ceil_mode=ceil")

    node = onnx.load(artifact.path).graph.node[0]
    assert artifact.path.is_relative_to(cache)
    assert any(a.name == "ceil_mode" and a.i == 1 for a in node.attribute)
    assert artifact.notes == ("pooling: 1 of 1 MaxPool changed",)


def test_a_second_build_makes_nothing(pooled, monkeypatch):
    first = built(pooled, base="ort_int8", calibration=feeds())

    def tensors():
        raise AssertionError("calibrated again")

    second = built(pooled, base="ort_int8", calibration=Feeds(0, tensors))

    assert (second.key, second.path) == (first.key, first.path)


def test_another_option_is_another_artifact(pooled, cache):
    keys = {
        built(pooled).key,
        built(pooled, "graph.pooling.ceil_mode=ceil").key,
        built(pooled, base="ort_int8", calibration=feeds()).key,
        built(pooled, "graph.pooling.ceil_mode=ceil", base="ort_int8", calibration=feeds()).key,
        built(pooled, "precision.quantizer.weights=per_tensor", base="ort_int8",
              calibration=feeds()).key,
        built(pooled, base="ort_int8", calibration=feeds("other images")).key,
        built(pooled, base="openvino_fp16").key,
    }  # fmt: skip

    assert len(keys) == 7


def test_another_model_is_another_artifact(pooled, tmp_path):
    other = tiny.card(tmp_path / "other", onnx.load(pooled.parent / "model.onnx"))
    model = onnx.load(other.parent / "model.onnx")
    model.graph.initializer[0].raw_data = np.ones((3, 3), np.float32).tobytes()
    onnx.save(model, other.parent / "model.onnx")

    one, two = (built(path, "graph.pooling.ceil_mode=ceil") for path in (pooled, other))

    assert one.key != two.key


def test_a_name_cannot_leave_the_cache(tmp_path, cache, pooled):
    pooled.write_text(pooled.read_text().replace("name: colors", "name: ../../../outside"))

    artifact = built(pooled, "graph.pooling.ceil_mode=ceil")

    assert artifact.path.resolve().is_relative_to(cache.resolve() / "artifacts")


def test_int8_without_calibration_is_refused(pooled):
    with pytest.raises(ModelError, match="INT8 needs calibration inputs"):
        built(pooled, base="ort_int8")


def test_a_model_that_the_quantizer_cannot_take_is_one_line(tmp_path, cache, monkeypatch):
    """ONNX Runtime leaves ``sym_shape_infer_temp.onnx`` in the current folder when it gives up."""
    monkeypatch.chdir(tmp_path)
    node = helper.make_node("Own", ["x"], ["y"], domain="com.example")
    path = tiny.card(tmp_path / "own", tiny.model([node], domains=["com.example"]))

    with pytest.raises(ModelError, match=r"^onnxruntime cannot quantize [^\n]+$"):
        built(path, base="ort_int8", calibration=feeds())

    assert entries(cache) == []


def test_a_rewrite_that_a_runtime_would_not_see_is_refused(pooled):
    """PyTorch runs the card's torch.export program, which no ONNX rewrite reaches."""
    with pytest.raises(
        ModelError, match=r"add torch_export.*or let one be made: .*\{backend: onnx2torch\}$"
    ):
        built(pooled, base="pytorch_fp32")
    pooled.write_text(pooled.read_text() + "torch_export: labels.txt\n")
    with pytest.raises(ModelError, match=r"graph\.pooling: rewrites change the ONNX file"):
        built(pooled, "graph.pooling.ceil_mode=ceil", base="pytorch_fp32")


def test_a_half_made_entry_is_never_seen(cache):
    def dies(folder):
        (folder / "model.onnx").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.entry("artifacts/a", dies)

    assert list((cache / "artifacts").iterdir()) == []
    made = store.entry("artifacts/a", lambda folder: (folder / "model.onnx").write_text("whole"))
    assert (made / "model.onnx").read_text() == "whole"


def test_an_entry_is_made_once(cache):
    calls = []

    places = {store.entry("artifacts/a", calls.append) for _ in range(3)}

    assert len(calls) == len(places) == 1


def test_of_two_that_make_the_same_entry_the_first_stays(cache):
    def slower(folder):
        (folder / "who").write_text("slower")
        store.entry("a", lambda inner: (inner / "who").write_text("faster"))

    assert (store.entry("a", slower) / "who").read_text() == "faster"
    assert [p.name for p in cache.iterdir()] == ["a"]


def test_a_cache_that_cannot_be_written_says_which_variable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "file" / "cache"))

    with pytest.raises(RunError, match=f"cannot be written: Not a directory; set {store.VARIABLE}"):
        store.entry("a", lambda folder: None)


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({store.VARIABLE: "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/pipeline-simulator"),
        ({"HOME": "/c"}, "/c/.cache/pipeline-simulator"),
    ],
)
def test_where_the_cache_is(monkeypatch, variables, place):
    for name in (store.VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert str(store.folder()) == place
