"""Tools that change a language model's precision: what they change, and what then runs.

Expected errors follow from the steps of the codes: 1/255 of a channel's range for 8 bits, 1/15 of
a block's for 4 bits; a logit sums some hundred of them.
"""

from __future__ import annotations

from collections import Counter

import made_gguf
import numpy as np
import onnx
import pytest

from backends.language_models import llama
from backends.language_models.gguf_file import GgufFile
from backends.ort.runtime import OrtRuntime
from backends.ort.weights import OrtBlockWeights, OrtDynamicQuantizer
from simulator.errors import ModelError

pytest.importorskip("gguf")
NOTHING = {"op_types": [], "nodes": [], "reason": ""}
LONG = np.random.default_rng(2).integers(0, made_gguf.IDS, (2, 9))
FEEDS = {"input_ids": LONG, "attention_mask": np.ones_like(LONG)}
LINEAR = 7 * made_gguf.LAYERS


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    file = GgufFile(made_gguf.write(folder / "made.gguf"))
    onnx.save(llama.model(file.sizes(), file.weight), folder / "model.onnx")
    return folder / "model.onnx"


def opened(path, storage="fp32", compute="fp32"):
    run = {
        "provider": "cpu", "device": "cpu", "threads": 1, "io_binding": False,
        "graph_optimization_level": "all", "storage": storage, "compute": compute,
    }  # fmt: skip
    return OrtRuntime(path, run)


def logits(path, feeds=FEEDS, **how):
    runtime = opened(path, **how)
    try:
        return runtime.run(feeds)["logits"]
    finally:
        runtime.close()


def kinds(path):
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def dynamic(model, target, weights="per_channel", keep=NOTHING):
    options = {"weights": weights, "activations": "dynamic", "reduce_range": False, "keep": keep}
    OrtDynamicQuantizer(options).quantize(model, target, iter(()))
    return target


@pytest.mark.parametrize("weights", ["per_channel", "per_tensor"])
def test_dynamic_int8_multiplies_integers_with_the_head_too(model, tmp_path, weights):
    made = dynamic(model, tmp_path / "m.onnx", weights)
    assert kinds(made)["MatMulInteger"] == LINEAR + 1
    off = np.abs(logits(made) - logits(model))
    assert 0 < off.mean() < 0.2
    runtime = opened(made, "int8", "int8")
    effective = runtime.effective(FEEDS)
    runtime.close()
    assert effective.products["int8"] == LINEAR + 1
    assert effective.products["fp32"] == 2 * made_gguf.LAYERS  # attention's own products


def test_dynamic_scales_depend_on_the_batch(model, tmp_path):
    made = dynamic(model, tmp_path / "m.onnx")
    alone = {name: value[:1] for name, value in FEEDS.items()}
    assert np.abs(logits(made)[:1] - logits(made, alone)).max() > 1e-3
    assert np.abs(logits(model)[:1] - logits(model, alone)).max() < 1e-5


def test_a_keep_list_takes_patterns(model, tmp_path):
    keep = {"op_types": [], "nodes": ["*.down", "logits"], "reason": "outliers"}
    made = dynamic(model, tmp_path / "m.onnx", keep=keep)
    assert kinds(made)["MatMulInteger"] == LINEAR - made_gguf.LAYERS
    with pytest.raises(ModelError, match=r"has no node '\*\.donw'"):
        dynamic(model, tmp_path / "n.onnx", keep=keep | {"nodes": ["*.donw"]})
    with pytest.raises(ModelError, match="no matrix product with a constant outside the keep"):
        dynamic(model, tmp_path / "n.onnx", keep=keep | {"op_types": ["MatMul"]})


@pytest.mark.parametrize(
    ("storage", "symmetric", "near"),
    [("int4", False, 0.7), ("int4", True, 0.9), ("int8", False, 0.05)],
)
def test_blocks_of_weights_leave_activations_alone(model, tmp_path, storage, symmetric, near):
    options = {
        "storage": storage, "granularity": "block", "block_size": 32, "symmetric": symmetric,
        "keep": NOTHING,
    }  # fmt: skip
    OrtBlockWeights(options).cast(model, tmp_path / "m.onnx")
    assert kinds(tmp_path / "m.onnx")["MatMulNBits"] == LINEAR + 1
    assert 0 < np.abs(logits(tmp_path / "m.onnx") - logits(model)).mean() < near
    runtime = opened(tmp_path / "m.onnx", storage)
    assert runtime.effective(FEEDS).compute == "fp32"
    alone = {name: value[:1] for name, value in FEEDS.items()}
    together, single = runtime.run(FEEDS)["logits"][:1], runtime.run(alone)["logits"]
    runtime.close()
    assert np.abs(together - single).max() < 1e-4  # no scale is shared over the batch


@pytest.mark.parametrize(
    ("own", "near"),
    [
        ({"storage": "int8", "granularity": "per_channel"}, 0.05),
        ({"storage": "int4", "granularity": "block", "block_size": 32}, 0.7),
    ],
)
def test_nncf_compresses_weights_and_openvino_computes_in_fp32(model, tmp_path, own, near):
    pytest.importorskip("nncf")
    from backends.intel.nncf_weights import NncfWeights
    from backends.intel.openvino_runtime import OpenVinoRuntime

    for name in ("a", "b"):
        options = {**own, "symmetric": False, "keep": NOTHING}
        NncfWeights(options).cast(model, tmp_path / f"{name}.xml")
    for suffix in (".xml", ".bin"):
        one, other = ((tmp_path / f"{name}{suffix}").read_bytes() for name in "ab")
        assert one == other
    run = {"device": "cpu", "threads": 1, "storage": own["storage"], "compute": "fp32"}
    runtime = OpenVinoRuntime(tmp_path / "a.xml", run)
    found, effective = runtime.run(FEEDS)["logits"], runtime.effective(FEEDS)
    runtime.close()
    assert 0 < np.abs(found - logits(model)).mean() < near
    assert set(effective.products) == {"fp32"}
    assert any("u8" in layer or "u4" in layer for layer in effective.details["layers"])


@pytest.mark.parametrize("compute", ["bf16", "fp16"])
def test_openvino_takes_any_batch_and_length_under_its_hints(model, compute):
    pytest.importorskip("openvino")
    from backends.intel.openvino_runtime import OpenVinoRuntime

    run = {"device": "cpu", "threads": 1, "storage": "fp32", "compute": compute}
    runtime = OpenVinoRuntime(model, run)
    whole = logits(model)
    for rows, length in ((2, 9), (1, 9), (1, 4), (1, 1)):
        feeds = {name: value[:rows, :length] for name, value in FEEDS.items()}
        found = runtime.run(feeds)["logits"]
        assert found.shape == (rows, length, made_gguf.IDS)
        assert np.abs(found - whole[:rows, :length]).max() < 0.3
    runtime.close()
