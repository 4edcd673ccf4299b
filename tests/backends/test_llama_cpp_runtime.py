"""llama.cpp as a runtime: a GGUF file as it is, held against our ONNX model of the same weights."""

from __future__ import annotations

import made_gguf
import numpy as np
import onnxruntime
import pytest

from backends.language_models import llama
from backends.language_models.gguf_file import GgufFile
from simulator.errors import ModelError, Unsupported

pytestmark = pytest.mark.extras

IDS = np.random.default_rng(1).integers(0, made_gguf.IDS, (3, 9))
MASK = np.ones_like(IDS)
MASK[1, 6:] = 0
MASK[2, :3] = 0
RUN = {"device": "cpu", "threads": 1, "flash_attention": False, "kv_cache": "fp32"}


def opened(path, storage, compute, **changed):
    from backends.llama_cpp.runtime import LlamaCpp

    return LlamaCpp(path, {**RUN, "storage": storage, "compute": compute, **changed})


@pytest.mark.parametrize(
    ("kind", "storage", "compute", "near"),
    [(None, "fp32", "fp32", 1e-3), ("F16", "fp16", "fp16", 0.02), ("Q8_0", "int8", "int8", 0.1)],
)
def test_it_gives_the_logits_of_the_same_weights(tmp_path, kind, storage, compute, near):
    path = made_gguf.write(tmp_path / "made.gguf", kind)
    file = GgufFile(path)
    model = llama.model(file.sizes(), file.weight).SerializeToString()
    feeds = {"input_ids": IDS, "attention_mask": MASK}
    (wanted,) = onnxruntime.InferenceSession(model).run(None, feeds)
    runtime = opened(path, storage, compute)
    found, again = (runtime.run(feeds)["logits"] for _ in range(2))
    effective = runtime.effective(feeds)
    runtime.close()
    assert np.array_equal(found, again)
    assert np.abs(found - wanted)[MASK > 0].max() < near
    assert not found[MASK == 0].any()
    assert effective.compute == compute and effective.options["threads"] == 1


@pytest.mark.parametrize(("kept", "near"), [("fp16", 0.05), ("q8_0", 0.2), ("q4_0", 3.0)])
def test_keys_and_values_are_kept_in_fewer_bits(tmp_path, monkeypatch, kept, near):
    monkeypatch.setattr(made_gguf, "HEADS", 2)
    monkeypatch.setattr(made_gguf, "SHARED", 1)  # heads of 32: a block
    path = made_gguf.write(tmp_path / "made.gguf")
    feeds = {"input_ids": IDS[:1], "attention_mask": MASK[:1]}
    whole = opened(path, "fp32", "fp32").run(feeds)["logits"]
    runtime = opened(path, "fp32", "fp32", flash_attention=True, kv_cache=kept)

    assert runtime.effective(feeds).options["kv_cache"] == kept
    assert near / 100 < np.abs(runtime.run(feeds)["logits"] - whole).max() < near


def test_the_file_decides_its_storage(tmp_path):
    path = made_gguf.write(tmp_path / "made.gguf", "Q8_0")
    with pytest.raises(Unsupported, match="most weights are int8"):
        opened(path, "int4", "int8")


def test_what_is_forgotten_moves_the_rest_up(tmp_path, monkeypatch):
    """One layer: keys and values depend on their own token, so the rest is a text of its own."""
    monkeypatch.setattr(made_gguf, "LAYERS", 1)
    path = made_gguf.write(tmp_path / "made.gguf")
    tokens, mask = IDS[:1], np.ones((1, 9), np.int64)
    mask[0, 1:4] = 0
    runtime = opened(path, "fp32", "fp32")
    runtime.run({"input_ids": tokens[:, :8], "attention_mask": np.ones((1, 8), np.int64)})
    found = runtime.run({"input_ids": tokens[:, 8:], "attention_mask": mask})["logits"]
    short = tokens[:, mask[0] > 0]
    whole = runtime.run({"input_ids": short, "attention_mask": np.ones_like(short)})["logits"]

    assert np.abs(found[0, 0] - whole[0, -1]).max() < 1e-3


def test_what_it_cannot_take_is_said_in_one_line(tmp_path):
    runtime = opened(made_gguf.write(tmp_path / "made.gguf"), "fp32", "fp32")
    one, three = np.ones((1, 1), np.int64), np.ones((1, 3), np.int64)
    with pytest.raises(ValueError, match="of texts are none, and the mask of 1 goes on behind 2"):
        runtime.run({"input_ids": one, "attention_mask": three})
    far = np.array([[made_gguf.IDS]])
    with pytest.raises(ValueError, match="is none of the"):
        runtime.run({"input_ids": far, "attention_mask": np.ones_like(far)})
    runtime.close()
    (tmp_path / "bad.gguf").write_bytes(b"noise" * 50)
    with pytest.raises(ModelError, match="not a GGUF file"):
        opened(tmp_path / "bad.gguf", "fp32", "fp32")


@pytest.mark.parametrize(
    ("kind", "storage"),
    [("F16", "fp16"), ("BF16", "bf16"), ("Q8_0", "int8"), ("Q5_1", "int5"), ("Q4_0", "int4"),
     ("MXFP4", "mxfp4")],
)  # fmt: skip
def test_it_quantizes_to_the_bits_of_gguf_py(tmp_path, kind, storage):
    """gguf-py has the same types in NumPy; a head that is the embedding gets Q8_0."""
    import gguf

    from backends.llama_cpp.quantizer import GgufCast

    source, target = made_gguf.write(tmp_path / "made.gguf"), tmp_path / "cast.gguf"
    GgufCast({"storage": storage, "type": kind, "requantize": False}).cast(source, target)
    weights = made_gguf.weights()
    made = [one for one in gguf.GGUFReader(target).tensors if len(one.shape) > 1]
    kinds = {one.name: one.tensor_type.name for one in made}
    assert {*kinds.values()} - {kind} == ({"Q8_0"} - {kind} if "F16" not in kind else set())
    for one in made:
        wanted = gguf.quants.quantize(weights[one.name], one.tensor_type)
        assert one.data.tobytes() == wanted.tobytes(), one.name


@pytest.mark.parametrize(
    ("kind", "storage", "of", "told"),
    [
        ("Q4_K_M", "int4", None, "3 Q8_0, 12 Q5_0 .* write storage: int5"),
        ("Q8_0", "int8", "Q4_0", "its matrices are Q4_0 already; .* or write requantize: true"),
    ],
)
def test_what_it_would_widen_or_round_twice_is_one_line(tmp_path, kind, storage, of, told):
    from backends.llama_cpp.quantizer import GgufCast

    cast = GgufCast({"storage": storage, "type": kind, "requantize": False})
    with pytest.raises(ModelError, match=told):
        cast.cast(made_gguf.write(tmp_path / "made.gguf", of), tmp_path / "cast.gguf")


def test_a_missing_tensor_is_named(tmp_path):
    path = made_gguf.write(tmp_path / "made.gguf", without="blk.1.ffn_up.weight")
    with pytest.raises(ModelError, match=r"tensor 'blk\.1\.ffn_up\.weight' not found"):
        opened(path, "fp32", "fp32")
