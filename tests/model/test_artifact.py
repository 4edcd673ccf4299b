"""Artifacts: made once, found again, never half; those that are fitted to samples likewise."""

import artifacts
import numpy as np
import onnx
import pytest
import tiny
from onnx import helper, numpy_helper

from simulator import cache as store
from simulator.contract.passes import Fitting
from simulator.errors import ModelError, RunError
from simulator.model.artifact import Feeds

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


def built(path, *overrides, calibration=None, **more):
    return artifacts.built(path, *overrides, feeds=calibration, **more)[0]


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


MATRIX = "graph.compensation={form: matrix, calibration: {samples: 3, source: data}}"


def fitting(identity, read):
    """The training stack's inputs are twice the deployment's, minus 1."""

    def samples():
        read.append(identity)
        rng = np.random.default_rng(0)
        for _ in range(3):
            x = rng.normal(size=(1, 3, 32, 32)).astype(np.float32)
            yield {"x": 2 * x - 1}, {"x": x}

    return {"compensation": Fitting(identity, samples, None)}


def fitted(path, fittings=None):
    return built(path, MATRIX, fittings=fittings)


@pytest.fixture
def colors(tmp_path, cache):
    return tiny.card(tmp_path / "model")


def test_samples_are_read_once_and_the_remarks_stay(colors):
    read = []
    one, two = (fitted(colors, fitting("one", read)) for _ in range(2))

    assert (one, read) == (two, ["one"])
    assert "it removes 100 % of the squared difference" in one.notes[0]


def test_other_samples_are_another_artifact(colors):
    one, two = (fitted(colors, fitting(identity, [])) for identity in ("one", "two"))

    assert one.key != two.key


def test_the_constants_are_in_the_file(colors):
    graph = onnx.load(fitted(colors, fitting("one", [])).path).graph
    conv = next(node for node in graph.node if node.op_type == "Conv")
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    np.testing.assert_allclose(held[conv.input[1]][:, :, 0, 0], 2 * np.eye(3), atol=1e-6)
    np.testing.assert_allclose(held[conv.input[2]], [-1, -1, -1], atol=1e-6)


def test_without_samples_it_is_refused(colors):
    with pytest.raises(ModelError, match=r"graph\.compensation needs calibration inputs"):
        fitted(colors)
