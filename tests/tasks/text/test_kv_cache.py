"""A text written with a KV cache: the tokens and the logits of the same text without one."""

from __future__ import annotations

import json
from itertools import chain

import made_gguf
import numpy as np
import onnxruntime
import pytest
import yaml

from simulator import cli, compare
from simulator.contract.text import Row, Tokens
from simulator.errors import ModelError
from simulator.modalities.text.sections import Decoding
from simulator.model import card
from simulator.tasks.generation.greedy import Greedy
from simulator.tasks.generation.growing import Growing
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
        ("text_fp32", ["deploy.decoding.neighbours=2"]),
        ("text_fp32", [*CACHED, "deploy.decoding.neighbours=2", "deploy.decoding.prefill_chunk=5"]),
        ("text_openvino_fp32", [*STATEFUL, "deploy.decoding.neighbours=1"]),
        ("text_left_unmasked", [*CACHED, "deploy.feeds.mask=honoured"]),
        ("text_fp32", [*CACHED, "deploy.decoding.lookup=4"]),
        ("text_openvino_fp32", [*STATEFUL, "deploy.decoding.lookup=3"]),
        ("text_openvino_fp32", CACHED),
        ("text_openvino_fp32", [*STATEFUL, "deploy.decoding.prefill_chunk=4"]),
        pytest.param("text_llama_cpp", [
            *CACHED, "deploy.precision.storage=fp32", "deploy.precision.compute=fp32",
            "deploy.runtime.kv_cache=fp32", "deploy.decoding.prefill_chunk=4",
            "deploy.decoding.lookup=5",
        ], marks=pytest.mark.extras),
        pytest.param("text_llama_cpp", [
            *CACHED, "deploy.precision.storage=fp32", "deploy.precision.compute=fp32",
            "deploy.runtime.kv_cache=fp32", "deploy.decoding.neighbours=2",
            "deploy.runtime.parallel=4",
        ], marks=pytest.mark.extras),
    ],
)  # fmt: skip
def test_the_same_tokens_are_written(texts, tmp_path, deploy, changes):
    found = compare("text_fp32", deploy, overrides=changes, out=tmp_path / "run", **texts)
    rows = found.records().to_pylist()

    assert found.summary.flips.count == found.summary["controls"]["self"]["flips"] == 0
    assert all(len(row["tokens"]) == 12 for row in rows)


@pytest.mark.parametrize(
    ("past", "changes", "why"),
    [
        ({"width": 8}, [], "'past_key_values.0.key' is ?x2x?x16, the card"),
        ({"layers": 3}, [], "past_key_values.2.value expected, got 6"),
        ({"layers": 9}, [], "it takes 0 (none) that the card does not name, and lacks 14 (past_"),
        (None, [], "input_ids, attention_mask expected, got 6"),
        ({}, ["cache=kv", "shift=4"], "onnxruntime does not move kept keys"),
        ({}, ["prefill_chunk=3"], "prefill_chunk, lookup, shift: they need cache: kv"),
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


NAMES = {"ids": "ids", "mask": "mask"}


def _written(how, tokens=12, stop=(), logits=None):
    """The tokens of a network that counts up to 4 and begins anew, and how many inferences it took.

    After 0 1 2 3 4 0 1 comes 2; what is behind the end of the mask is not looked at.
    """
    ids = (0, 1, 2, 3, 4, 0, 1)
    task = Greedy(tokens, stop, 64, NAMES, how=Decoding.model_validate(how))
    feeds = {"ids": np.array([ids]), "mask": np.ones((1, len(ids)), np.int64)}
    steps, outputs, count = task.steps(feeds, (Row(0, 0, 0, Tokens(ids, len(ids))),)), None, 0
    while True:
        try:
            taken = steps.send(outputs)["ids"]
        except StopIteration as end:
            found = [one.get("ids", one["logits"].argmax(-1))[0].tolist() for one in end.value]
            return list(chain(*found)), count
        count += 1
        sure = np.roll(np.eye(5), 1, axis=1)[taken]
        outputs = {"logits": sure if logits is None else np.broadcast_to(logits, sure.shape)}


def test_half_of_a_full_text_is_forgotten():
    """Of 10 places 2 are kept and 4 of 8 are forgotten; the text goes on, and again."""
    text = Growing(
        {"ids": np.arange(10)[None], "mask": np.ones((1, 10), np.int64)}, NAMES, [9], True
    )
    text.next(None)
    text.shift(2)
    text.add([10])

    assert text.feeds(10, 11)["ids"].tolist() == [[10]]
    assert text.feeds(10, 11)["mask"].tolist() == [[1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1]]
    assert text.length(0) == 7


def test_right_guesses_save_inferences():
    """12 tokens: 1, then 4 right guesses and what follows them, twice, then one guess."""
    plain, lookup = _written({"cache": "kv"}), _written({"cache": "kv", "lookup": 4})

    assert plain == ([2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3], 12)
    assert lookup[0] == plain[0] and lookup[1] == 4
    assert _written({"cache": "kv", "lookup": 4}, stop=(0,))[0] == [2, 3, 4, 0]


def test_draws_are_those_of_the_softmax():
    """Logits log 1 and log 3 for two of five tokens: three draws in four, whatever the seed."""
    logits = np.array([0, np.log(3), -99, -99, -99])
    drawn = [
        _written({"sampling": {"temperature": 1, "seed": n}}, 1, logits=logits)[0]
        for n in range(400)
    ]
    again = _written({"sampling": {"temperature": 1, "seed": 7}}, 8)[0]

    assert {one for (one,) in drawn} == {0, 1}
    assert 0.68 < np.mean(drawn) < 0.82  # four standard errors of 0.022
    assert again == _written({"sampling": {"temperature": 1, "seed": 7}, "cache": "kv"}, 8)[0]


def test_a_network_without_past_inputs_is_refused(texts, tmp_path):
    text_specimen.write(tmp_path, "generation", "{tokens: 6, stop: []}")
    with pytest.raises(ModelError, match="no past keys and values and onnxruntime"):
        compare("text_fp32", "text_fp32", overrides=CACHED, model=tmp_path / "card.yaml",
                data=texts["data"], out=tmp_path / "run")  # fmt: skip


def test_a_card_says_the_same_from_every_folder(texts, monkeypatch):
    """Else a run with ``--model model.yaml`` cannot be resumed: its stacks changed."""
    whole = card.load(texts["model"]).spec.input.tokenizer
    monkeypatch.chdir(texts["model"].parent)

    assert card.load("model.yaml").spec.input.tokenizer == whole
