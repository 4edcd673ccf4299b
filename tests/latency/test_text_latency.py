"""Latency of texts: against their length, and of the first token and each other."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from simulator import compare, latency, tail
from simulator.latency.inputs import Inputs, of_length
from simulator.latency.parts import in_parts, tokens
from simulator.latency.stream import Round
from simulator.latency.times import NEVER, Times
from simulator.testing import text_specimen

CONTEXTS = [
    "on",
    "the water",
    "the water is on the tree and in the can",
    "in 2026 the",
    "a b c d e",
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A small Llama that writes six tokens, and five texts of different lengths."""
    folder = tmp_path_factory.mktemp("texts")
    text_specimen.write(folder, "generation", "{tokens: 6, stop: []}")
    lines = "".join(json.dumps({"q": context}) + "\n" for context in CONTEXTS)
    (folder / "a.jsonl").write_text(lines)
    card = {"schema": 1, "name": "a", "task": "generation", "format": "jsonl", "file": "a.jsonl"}
    (folder / "data.yaml").write_text(yaml.safe_dump({**card, "context": "{q}"}))
    return {"model": folder / "card.yaml", "data": folder / "data.yaml"}


def test_a_line_is_fitted_to_lengths():
    """2 ms and 3 ms more for 1,000 characters."""
    inputs = Inputs(["a", "b", "c"], {"characters": [1000, 2000, 4000]}, "characters")
    found = of_length(inputs, Times(np.array([[5, 8, 14]]) * 10**6, {}))

    assert (found["unit"], found["r2"]) == ("characters", pytest.approx(1))
    assert (found["ms_per_thousand"], found["intercept_ms"]) == pytest.approx((3, 2))


def test_latency_is_told_against_the_length_of_texts(texts, tmp_path):
    result = latency(["text_fp32"], queries=25, out=tmp_path / "run", **texts)
    effect = result.summary.inputs["deploy"]

    assert effect.size is None
    assert effect.length.unit == "characters"
    assert set(result.summary.latency_ms["deploy"]) >= {
        "total", "tokenize", "feeds", "infer", "follow",
    }  # fmt: skip
    page = result.report.read_text()
    assert "ms per 1,000 characters" in page
    assert "megapixel" not in page


PARTS = {(0, 0): (3_000_000, 4_000_000), (0, 1): (2_000_000, 5_000_000, 6_000_000)}
ROUND = Round(0, None, None, {}, {}, PARTS)


def test_tokens_are_counted_from_the_beginning_of_a_sample():
    """First after 3 and 2 ms, then 1, 3 and 1 ms; five tokens in 4 + 6 ms."""
    found = tokens([ROUND], ["deploy"])["deploy"]

    assert (found.first.min, found.first.max, found.first.mean) == (2, 3, 2.5)
    assert (found.each.min, found.each.max) == (1, 3) and found.each.mean == pytest.approx(5 / 3)
    assert found.per_second == pytest.approx(500)


def test_words_count_when_they_came_in_time():
    """Three words are wanted: two are right, after 2 tokens of the one text, 1 of the other."""
    times, quality = in_parts([ROUND], 0, [[2, 0], [1]], "words")

    assert times.total.tolist() == [[4_000_000, NEVER, 2_000_000]]
    assert quality.whole == pytest.approx(2 / 3)
    assert quality.of(times.late(3e6)) == pytest.approx(1 / 3)


def test_a_tail_of_texts_counts_words(texts, tmp_path):
    """What the network writes is called right: all words in time, or none."""
    wrote = compare("text_fp32", "text_fp32", out=tmp_path / "wrote", **texts).records()
    pairs = zip(wrote["sample"].to_pylist(), wrote["text"].to_pylist(), strict=True)
    answers = dict(sorted(pairs))
    lines = [json.dumps({"q": q, "a": a}) for q, a in zip(CONTEXTS, answers.values(), strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    card = yaml.safe_load(texts["data"].read_text()) | {"answer": "{a}"}
    (tmp_path / "data.yaml").write_text(yaml.safe_dump(card))
    found = tail(
        ["text_fp32"], model=texts["model"], data=tmp_path / "data.yaml", rounds=2,
        deadlines_ms=[0.001, 1e6], overrides=["deploy.feeds.batch=single"], out=tmp_path / "run",
    ).summary  # fmt: skip

    assert found.metric == "words" and found.tail["deploy"].quality == 1
    under = found.tail["deploy"].thresholds
    assert (under["0.001ms"].worst, under["1000000ms"].worst) == (0, 1)
    assert found.tokens["deploy"].first.p50 is None or found.tokens["deploy"].per_second > 0


def test_every_token_is_timed_and_equal_stacks_write_the_same(texts, tmp_path):
    result = compare(
        "text_fp32", "text_fp32", overrides=["deploy.feeds.batch=single"], out=tmp_path / "run",
        **texts,
    )  # fmt: skip
    rows = result.records().to_pylist()

    assert result.summary.flips.count == 0
    assert all(len(row["tokens"]) == 6 and row["parting"] is None for row in rows)
    assert all(row["first_token_ms"] > 0 and row["token_ms"] > 0 for row in rows)
    assert all(row["text"] for row in rows)
    assert result.summary.flips.train_first_token_ms > 0
