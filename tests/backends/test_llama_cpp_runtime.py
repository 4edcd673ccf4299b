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


def test_the_file_decides_its_storage(tmp_path):
    path = made_gguf.write(tmp_path / "made.gguf", "Q8_0")
    with pytest.raises(Unsupported, match="most weights are int8"):
        opened(path, "int4", "int8")


def test_what_it_cannot_take_is_said_in_one_line(tmp_path):
    runtime = opened(made_gguf.write(tmp_path / "made.gguf"), "fp32", "fp32")
    holes = np.array([[1, 0, 1]])
    with pytest.raises(ValueError, match="tokens are neighbours"):
        runtime.run({"input_ids": holes, "attention_mask": holes})
    far = np.array([[made_gguf.IDS]])
    with pytest.raises(ValueError, match="is none of the"):
        runtime.run({"input_ids": far, "attention_mask": np.ones_like(far)})
    runtime.close()
    (tmp_path / "bad.gguf").write_bytes(b"noise" * 50)
    with pytest.raises(ModelError, match="not a GGUF file"):
        opened(tmp_path / "bad.gguf", "fp32", "fp32")
