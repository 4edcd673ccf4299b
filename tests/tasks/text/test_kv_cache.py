"""A text written with a KV cache: the tokens and the logits of the same text without one."""

from __future__ import annotations

import json

import made_gguf
import numpy as np
import onnxruntime
import pytest
import yaml

from simulator import cli, compare
from simulator.errors import ModelError
from simulator.testing import text_specimen

pytest.importorskip("gguf")
CONTEXTS = ("the water is on the tree and in the can", "on", "in 2026 the")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A small Llama with a cache that writes twelve tokens, and three texts."""
    folder = tmp_path_factory.mktemp("cache")
    path = made_gguf.write(folder / "made.gguf")
    assert cli.main(["model", "new", str(path), "--cache", "-o", str(folder / "m")]) == cli.PASS
    card = yaml.safe_load((folder / "m/model.yaml").read_text())
    card |= {"task": "generation", "output": {"tokens": 12, "stop": []}}
    (folder / "m/model.yaml").write_text(yaml.safe_dump(card))
    lines = "".join(json.dumps({"q": context}) + "\n" for context in CONTEXTS)
    (folder / "a.jsonl").write_text(lines)
    data = {"schema": 1, "name": "a", "task": "generation", "format": "jsonl", "file": "a.jsonl"}
    (folder / "data.yaml").write_text(yaml.safe_dump({**data, "context": "{q}"}))
    return {"model": folder / "m/model.yaml", "data": folder / "data.yaml"}


CACHED = ["deploy.decoding.cache=kv"]
STATEFUL = [
    *CACHED, "deploy.runtime.stateful=true", "deploy.runtime.attention=fused",
    "deploy.runtime.kv_cache=fp32",
]  # fmt: skip


@pytest.mark.parametrize(
    ("deploy", "changes"),
    [
        ("text_fp32", CACHED),
        ("text_fp32", [*CACHED, "deploy.decoding.prefill_chunk=3"]),
        ("text_left_unmasked", [*CACHED, "deploy.feeds.mask=honoured"]),
        ("text_openvino_fp32", CACHED),
        ("text_openvino_fp32", [*STATEFUL, "deploy.decoding.prefill_chunk=4"]),
        pytest.param("text_llama_cpp", [
            *CACHED, "deploy.precision.storage=fp32", "deploy.precision.compute=fp32",
            "deploy.runtime.kv_cache=fp32", "deploy.decoding.prefill_chunk=4",
        ], marks=pytest.mark.extras),
    ],
)  # fmt: skip
def test_the_same_tokens_are_written(texts, tmp_path, deploy, changes):
    found = compare("text_fp32", deploy, overrides=changes, out=tmp_path / "run", **texts)
    rows = found.records().to_pylist()

    assert found.summary.flips.count == 0
    assert all(len(row["tokens"]) == 12 for row in rows)


@pytest.mark.parametrize(
    ("past", "changes", "why"),
    [
        ({"width": 8}, [], "'past_key_values.0.key' is ?x2x?x16, the card"),
        ({"layers": 3}, [], "past_key_values.2.value expected, got 6"),
        (None, [], "input_ids, attention_mask expected, got 6"),
        ({}, ["prefill_chunk=3"], "prefill_chunk: pieces of a prompt need cache: kv"),
    ],
)
def test_a_cache_that_does_not_fit_is_one_line(texts, tmp_path, capsys, past, changes, why):
    card = yaml.safe_load(texts["model"].read_text())
    own = card["input"].pop("past")
    if past is not None:
        card["input"]["past"] = own | past
    changed = texts["model"].with_name("changed.yaml")
    changed.write_text(yaml.safe_dump(card))
    sets = [f"--set=deploy.decoding.{change}" for change in changes]
    given = ["--model", str(changed), "--data", str(texts["data"]), "--out", str(tmp_path / "run")]

    code = cli.main(["--train", "text_fp32", "--deploy", "text_fp32", *given, *sets])

    error = capsys.readouterr().err
    assert code == cli.USER_ERROR and why in error and error.count("\n") == 1, error


@pytest.mark.parametrize(
    ("attention", "kept", "near"),
    [
        ("plain", "fp32", 1e-5),
        ("fused", "fp32", 1e-5),
        ("fused", "fp16", 0.02),
        ("fused", "u8", 0.2),
    ],
)
def test_openvino_keeps_a_text_as_it_is_told(texts, attention, kept, near):
    """In pieces, with padding, in its own operator or in the network's: against ONNX Runtime."""
    from backends.intel.openvino_runtime import OpenVinoRuntime

    path = texts["model"].with_name("model.onnx")
    ids = np.random.default_rng(1).integers(0, made_gguf.IDS, (2, 40))
    mask = np.ones_like(ids)
    mask[1, :5] = 0
    empty = np.zeros((2, made_gguf.SHARED, 0, made_gguf.WIDTH // made_gguf.HEADS), np.float32)
    past = {f"past_key_values.{n}.{word}": empty for n in (0, 1) for word in ("key", "value")}
    whole, *_ = onnxruntime.InferenceSession(path).run(
        None, {"input_ids": ids, "attention_mask": mask, **past}
    )
    run = {"device": "cpu", "threads": 1, "storage": "fp32", "compute": "fp32", "stateful": True}
    runtime = OpenVinoRuntime(path, {**run, "attention": attention, "kv_cache": kept})
    found = [
        runtime.run({"input_ids": ids[:, begin:end], "attention_mask": mask[:, :end]})["logits"]
        for begin, end in ((0, 30), (30, 31), (31, 40))
    ]
    in_use = runtime.effective({"input_ids": ids, "attention_mask": mask}).options
    runtime.close()

    assert near / 1000 < np.abs(np.concatenate(found, axis=1) - whole)[mask > 0].max() < near
    assert (in_use["attention"], in_use["kv_cache"]) == (attention, kept)


def test_a_network_without_past_inputs_is_refused(texts, tmp_path):
    text_specimen.write(tmp_path, "generation", "{tokens: 6, stop: []}")
    with pytest.raises(ModelError, match="no past keys and values and onnxruntime"):
        compare("text_fp32", "text_fp32", overrides=CACHED, model=tmp_path / "card.yaml",
                data=texts["data"], out=tmp_path / "run")  # fmt: skip
