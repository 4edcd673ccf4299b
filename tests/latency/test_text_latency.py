"""Latency of texts: against their length, and of the first token and each other."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from simulator import compare, latency
from simulator.latency.inputs import Inputs, of_length
from simulator.latency.times import Times
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
