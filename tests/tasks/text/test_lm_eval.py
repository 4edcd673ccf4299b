"""Scores of texts are those of lm-evaluation-harness, request by request.

``lm_eval_small.json`` was written by ``tools/lm_eval_oracle.py``; where lm_eval is installed, it is
asked again.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import lm_eval_case
import pytest
import yaml

from simulator import compare

STORED = Path(__file__).with_name("lm_eval_small.json")
ORACLE = Path(__file__).parents[3] / "tools" / "lm_eval_oracle.py"
NEAR = 1e-4
CARDS = {
    "choices": ("multiple_choice", {"context": "{query}", "choices": "choices", "gold": "gold"}),
    "contexts": (
        "multiple_choice",
        {"contexts": "contexts", "continuation": "{continuation}", "gold": "gold"},
    ),
    "words": ("next_word", {"context": "{context}", "continuation": "{word}"}),
}
FIGURES = {"choices": ("acc", "acc_norm"), "contexts": ("acc",), "words": ("acc",)}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    folder = tmp_path_factory.mktemp("case")
    lm_eval_case.write(folder)
    return folder


def ours(case, name, special, tmp_path):
    """Compare one batch a question with an inference a request; both must be lm_eval's."""
    task, fields = CARDS[name]
    card = yaml.safe_load((case / "card.yaml").read_text()) | {"task": task, "output": {}}
    (case / f"model_{name}.yaml").write_text(yaml.safe_dump(card))
    data = {
        "schema": 1, "name": name, "task": task, "format": "jsonl", "delimiter": " ",
        "file": f"{name}.jsonl",
    }  # fmt: skip
    (case / f"data_{name}.yaml").write_text(yaml.safe_dump(data | fields))
    overrides = ["deploy.feeds.batch=single"]
    if special:
        overrides += [f"{side}.tokenize.special_tokens=true" for side in ("train", "deploy")]
    return compare(
        "text_fp32", "text_fp32", model=case / f"model_{name}.yaml",
        data=case / f"data_{name}.yaml", overrides=overrides,
        out=tmp_path / "run", quick=True,
    )  # fmt: skip


def check(stored, name, result):
    rows = result.records().to_pylist()
    expected = stored["requests"][name]
    for side in ("train", "deploy"):
        found = [row for row in rows if row["side"] == side]
        for row, wanted in zip(found, expected, strict=True):
            sums = [loglikelihood for loglikelihood, _ in wanted]
            assert row["loglikelihoods"] == pytest.approx(sums, abs=NEAR, rel=2e-7)
            if "greedy" in row:
                assert row["greedy"] == wanted[0][1]
        metrics = result.summary[side]["metric"]
        for metric in FIGURES[name]:
            assert metrics[metric] == pytest.approx(stored["figures"][name][metric])
    if name == "words":
        wanted = stored["figures"][name]["perplexity"]
        assert result.summary.flips.train_perplexity == pytest.approx(wanted, rel=NEAR)


@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
@pytest.mark.parametrize("name", CARDS)
def test_requests_score_as_lm_eval_scored_them(case, name, special, tmp_path):
    stored = json.loads(STORED.read_text())["special" if special else "plain"]
    check(stored, name, ours(case, name, special, tmp_path))


@pytest.mark.extras
@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is None, reason="lm_eval is not installed")
@pytest.mark.parametrize("name", CARDS)
def test_requests_score_as_lm_eval_scores_them_here(case, name, tmp_path):
    asked = case / "asked.json"
    if not asked.exists():
        subprocess.run([sys.executable, ORACLE, case, asked], check=True)
    check(json.loads(asked.read_text())["plain"], name, ours(case, name, False, tmp_path))
