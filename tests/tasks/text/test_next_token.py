"""KL divergence by hand, chunks of a text, and llama.cpp's own program on the same file."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from math import log, sqrt
from types import SimpleNamespace

import made_gguf
import numpy as np
import pytest

import simulator
from simulator.data.folder import Files
from simulator.errors import DataError, ModelError, SampleError
from simulator.experiments.sweep import report as sweep_report
from simulator.modalities.text.read import read
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.next_token.task import Distribution, NextToken
from simulator.tasks.settings import Network
from simulator.testing import text_specimen, vocabularies

TEXTS = Files((".txt", ".json"), "text")
WORDS = "the water is on a wet day in 2026, and here in the can it is not. " * 8
TASK = NextToken(NextToken.Output(context=16), Network(None, SimpleNamespace(vocabulary=2)))


def expecting(*odds, ids=(1, 0)):
    """What a stack says that has these probabilities of the token 0."""
    logits = np.log([[odd, 1 - odd] for odd in odds]).astype(np.float32)
    return Distribution.of(ids, logits)


def test_the_figures_are_those_of_the_formulas():
    """Of token 0: 1/2 and 3/4 in training, 1/4 and 3/4 deployed; the text has 1, then 0."""
    both = expecting(0.5, 0.75), expecting(0.25, 0.75)
    train, deploy = TASK.records(both, [1, 0])
    sides = [TASK.score([one], [[1, 0]]) for one in (train, deploy)]
    flips = TASK.compare(*sides, Resamples(1, number=8))["flips"]

    assert deploy["kld"] == pytest.approx([log(4 / 3) / 2, 0], abs=1e-6)
    assert (flips["count"], flips["units"], flips["wrong_to_right"]) == (1, 2, 1)
    assert flips["kld_mean"] == pytest.approx(log(4 / 3) / 4, abs=1e-6)
    assert flips["kld_mean_ci95"] == pytest.approx([flips["kld_mean"]] * 2)
    assert flips["same_top"] == 0.5 and flips["same_top_error"] == 0.5
    assert flips["train_perplexity"] == pytest.approx(sqrt(8 / 3))
    assert flips["ppl_ratio"] == pytest.approx(sqrt(2 / 3))
    assert flips["dp"]["maximum"] == pytest.approx(0.25)
    assert flips["dp_rms"] == pytest.approx(0.25 / sqrt(2))
    assert (train["acc"], deploy["acc"]) == (0.5, 1)


@pytest.mark.parametrize(
    ("other", "error", "told"),
    [
        (expecting(0.5, 0.75, ids=(1, 1)), SampleError, "scored on other tokens"),
        (Distribution.of((1, 0), np.zeros((2, 3))), ModelError, "logits of 3 ids, and 2 of the"),
    ],
)
def test_what_has_no_divergence_is_one_line(other, error, told):
    with pytest.raises(error, match=told):
        TASK.records([expecting(0.5, 0.75), other], None)


def cut(folder, text, context=16, longest=64, **tokenizer):
    (folder / "corpus.txt").write_text(text)
    files = tokenizer or {"tokenizers": str(vocabularies.write(folder, "tokenizers"))}
    network = SimpleNamespace(tokenizer=files, max_length=longest)
    task = NextToken(NextToken.Output(context=context), Network(None, network))
    return task.load(folder / "corpus.txt", TEXTS)


def test_a_text_is_cut_as_llama_cpp_cuts_it(cache, tmp_path):
    """perplexity.cpp: BOS in front, chunks of 16, BOS for the first id of each; 7 are scored."""
    tokenizers = pytest.importorskip("tokenizers")
    found = cut(tmp_path, WORDS)
    ids = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(WORDS).ids
    chunks = [[1, *ids[at + 1 : at + 16]] for at in range(0, len(ids) - 15, 16)]

    assert ids[0] == 1 and len(chunks) > 5
    assert [list(read(item.path).requests[0].ids) for item in found.items] == chunks
    assert [item.truth for item in found.items] == [chunk[9:] for chunk in chunks]
    assert f"{len(chunks)} chunks of 16 tokens" in found.notes[-1]


@pytest.mark.parametrize(
    ("text", "changed", "told"),
    [
        (" \n", {}, "corpus.txt: empty: there is no text"),
        ("the can", {}, r"corpus.txt: has \d+ tokens, and a chunk has 16; give a longer text"),
        (WORDS, {"longest": 14}, "chunks of 16 tokens, and the network takes 14"),
        (WORDS, {"unknown": "file"}, "input.tokenizer names none"),
    ],
)
def test_a_text_that_has_no_chunk_is_one_line(cache, tmp_path, text, changed, told):
    pytest.importorskip("tokenizers")
    with pytest.raises(DataError, match=told):
        cut(tmp_path, text, **changed)


def test_a_pair_tells_it_in_the_words_of_llama_cpp(cache, tmp_path):
    pytest.importorskip("tokenizers")
    text_specimen.write(tmp_path, "next_token", "{context: 16}")
    (tmp_path / "corpus.txt").write_text(WORDS)
    found = simulator.compare(
        "text_fp32", "text_ort_fp16", model=tmp_path / "card.yaml", data=tmp_path / "corpus.txt",
        out=tmp_path / "run", quick=True, fail_on=["flips.kld_mean > 0.5", "flips.kld.p99 < 0"],
    )  # fmt: skip
    page = found.report.read_text()

    assert 0 < found.summary["flips"]["kld_mean"] < 0.001
    assert found.summary["flips"]["units"] == 7 * found.summary["samples"]
    assert "Mean KLD" in page and "PPL(Q)/PPL(base)" in page and "median 0.0" in page


def program():
    """The place of llama-perplexity."""
    return shutil.which("llama-perplexity", path=os.environ.get("LLAMA_CPP_BIN") or None)


def said(asked, last):
    """What the program prints; where it ends before its log's thread has written all, again."""
    for _ in range(20):
        line = [program(), *map(str, asked)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        if last in (printed := done.stdout + done.stderr):
            return printed
    raise AssertionError(f"it never said {last}")


def coded(logits):
    """Log-probabilities as they are after the program's base file, which has 16 bits for each.

    perplexity.cpp, log_softmax: 65,536 steps from the largest logit down to 16 nats below it.
    """
    top = logits.max(-1, keepdims=True)
    least = np.maximum(logits.min(-1, keepdims=True), top - 16)
    total = np.log(np.exp(logits - top).sum(-1, keepdims=True))
    step = (top - least) / 65535
    return np.rint((logits.clip(least) - least) / step) * step + least - top - total


@pytest.mark.extras
@pytest.mark.skipif(program() is None, reason="no llama-perplexity on PATH or in LLAMA_CPP_BIN")
@pytest.mark.parametrize("bos", [True, False])
def test_llama_cpp_prints_the_same_figures(cache, tmp_path, bos):
    """To its last digit; ours of a base that was rounded as the program's file rounds it."""
    from backends.llama_cpp.runtime import LlamaCpp

    names = {None: ("fp32", "fp32"), "Q8_0": ("int8", "int8")}
    models = {
        kind: made_gguf.write(tmp_path / f"{kind}.gguf", kind, tokenizer__ggml__add_bos_token=bos)
        for kind in names
    }
    data = cut(tmp_path, WORDS * 4, context=32, gguf=str(models[None]))
    asked = ["-f", tmp_path / "corpus.txt", "-c", 32, "-b", 32, "-t", 1, "-fa", "off", "-nr",
             "--kl-divergence-base", tmp_path / "base.dat"]  # fmt: skip
    said(["-m", models[None], *asked], "Final estimate")
    printed = said(["-m", models["Q8_0"], *asked, "--kl-divergence"], "Same top p:")
    task, records = NextToken(NextToken.Output(), Network()), []
    run = {"device": "cpu", "threads": 1, "flash_attention": False, "kv_cache": "fp16"}
    opened = [LlamaCpp(models[k], {**run, "storage": s, "compute": c})
              for k, (s, c) in names.items()]  # fmt: skip
    for item in data.items:
        ids = np.array([read(item.path).requests[0].ids])
        one, two = (
            runtime.run({"input_ids": ids, "attention_mask": np.ones_like(ids)})["logits"][0]
            for runtime in opened
        )
        file, nothing = coded(one[16:31].astype(np.float64)), np.zeros(15)
        base, counted = (
            Distribution(tuple(item.truth), np.where(file > least, file, -1e4), nothing)
            for least in (-np.inf, -16)  # the program counts no probability below exp(-16) in KLD
        )
        other = Distribution.of(item.truth, two[16:31])
        changes = task.change(counted, other, None)
        records.append([task.record(one, None) | changes for one in (base, other)])
    for runtime in opened:
        runtime.close()
    flips = task.more(*zip(*records, strict=True))
    known = {
        "Mean PPL(Q) ": ("deploy_perplexity", 1), "Mean PPL(base) ": ("train_perplexity", 1),
        "Mean ln(PPL(Q)/PPL(base))": ("ln_ppl_ratio", 1),
        "Mean PPL(Q)/PPL(base)": ("ppl_ratio", 1), "Mean PPL(Q)-PPL(base)": ("ppl_difference", 1),
        "Mean    KLD": ("kld_mean", 1), "Mean    Δp": ("dp_mean", 100), "RMS Δp": ("dp_rms", 100),
        "Same top p": ("same_top", 100),
    }  # fmt: skip
    for words, (name, scale) in known.items():
        found = re.search(rf"{re.escape(words)}\s*:\s*(\S+) ±\s*(\S+)", printed)
        wanted = [float(number) for number in found.groups()]
        ours = [scale * flips[name], scale * flips[f"{name}_error"]]
        of = flips["train_perplexity"] if name == "ppl_difference" else wanted[0]
        near = max(1.1 * 10 ** -len(found[1].partition(".")[2]), 1e-6 * of)  # it adds float32
        assert ours == pytest.approx(wanted, abs=near), words
    for percent, name in (("99.9%", "p99_9"), ("95.0%", "p95"), (" 5.0%", "p5")):
        wanted = float(re.search(rf"{percent}   KLD:\s*(\S+)", printed)[1])
        assert flips["kld"][name] == pytest.approx(wanted, abs=1.1e-6)


@pytest.mark.extras
def test_types_of_a_gguf_file_in_one_sweep(cache, tmp_path):
    """Of one file of floats llama.cpp makes the others; fewer bits are farther away."""
    pytest.importorskip("llama_cpp")
    checkpoints = pytest.importorskip("backends.language_models.checkpoints")
    (tmp_path / "model").mkdir()
    checkpoints.GgufCheckpoint({}).write(made_gguf.write(tmp_path / "a.gguf"), tmp_path / "model")
    card = tmp_path / "model" / "model.yaml"
    text = card.read_text().replace("task: multiple_choice", "task: next_token")
    card.write_text(text.replace("output: {}", "output: {context: 32}"))
    (tmp_path / "corpus.txt").write_text(WORDS)
    precision = {"storage": "fp16", "compute": "fp16", "cast": cast("F16")}
    suite = {"schema": 1, "name": "types", "summary": "three", "source": "llama-quantize",
             "train": "text_llama_cpp", "columns": {"precision": {
                 kind: {"precision": {"storage": storage, "compute": "int8", "cast": cast(kind)}}
                 for kind, storage in (("Q8_0", "int8"), ("Q4_0", "int4"), ("Q4_K_M", "int4"))
             }}}  # fmt: skip
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    (found,) = simulator.sweep(
        tmp_path / "suite.yaml", models=[card], data=tmp_path / "corpus.txt", out=tmp_path / "runs",
        overrides=[f"train.precision={json.dumps(precision)}"], costs=True,
    )  # fmt: skip
    options, costs = found.summary.columns["precision"].options, found.summary.costs

    ((_, _, cell),) = sweep_report.models([found.summary]).rows

    assert 0 < options["Q8_0"]["kld_mean"] < options["Q4_0"]["kld_mean"]
    assert options["Q4_0"]["same_top"] < options["Q8_0"]["same_top"]
    assert cell.endswith(f"({options['Q4_0']['same_top']:.2g})"), "the worst one is the smallest"
    assert costs["train"].mib > costs["precision/Q8_0"].mib > costs["precision/Q4_0"].mib
    assert costs["train"].tokens_per_second == pytest.approx(31_000 / costs["train"].ms)
    assert "write storage: int5" in found.summary.left_out["precision/Q4_K_M"]


def cast(kind):
    return {"backend": "llama_cpp", "type": kind, "requantize": False}
