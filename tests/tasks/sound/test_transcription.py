"""Words and their errors, against counts made by hand."""

import json

import numpy as np
import pytest

from simulator.errors import ModelError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.settings import Network
from simulator.tasks.transcription.task import Transcription, edits
from simulator.tasks.transcription.vocabulary import Vocabulary

KNOWN = {"It": 0, "Ġrains": 1, "Ġdon": 2, "'t": 3, ".": 4, "ÃŁ": 5, "ł": 6, "Ġ,": 7, "Ġran": 8}
"""``ÃŁ`` is how a byte-level vocabulary writes the two bytes of ß; ``ł`` is the second of them."""


@pytest.fixture
def task(tmp_path):
    return made(tmp_path, "lower")


def made(folder, words):
    content = {"added_tokens": [{"id": 9, "content": "<|end|>"}], "model": {"vocab": KNOWN}}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    output = Transcription.Output(tokens="tokenizer.json", words=words)
    return Transcription(output, Network(folder=folder))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("kitten", "sitting", 3),
        ("Saturday", "Sunday", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
    ],
)
def test_the_edit_distance_is_that_of_the_textbooks(one, other, expected):
    assert edits(one, other) == expected


def test_bytes_become_text_and_special_tokens_none(task, tmp_path):
    known = Vocabulary(tmp_path / "tokenizer.json")

    assert known.text([0, 1, 4, 9]) == "It rains."
    assert known.text([5]) == "ß"
    assert known.text([6]) == "\ufffd", "half a character"
    assert known.text([0, 50_000]) == "It", "a time stamp is above the vocabulary"
    with pytest.raises(ModelError, match="token id from 0 up"):
        known.text([-1])


def test_words_are_compared_without_case_and_punctuation(task, tmp_path):
    answer = task.decode({"ids": np.array([[0, 2, 3, 1, 4, 7]])}, None, None)

    assert answer.text == "It don't rains. ,"
    assert answer.words == ("it", "don't", "rains")
    assert made(tmp_path, "as_they_are").decode(
        {"ids": np.array([[0, 1, 4]])}, None, None
    ).words == ("It", "rains.")


def test_the_word_error_rate_is_of_all_words_together(task):
    """One of two words wrong, none of one: 1 - 1/3, not the mean of 1/2 and 1."""
    first, second, third = (answer(task, ids) for ids in ([0, 1], [0, 8], [0]))
    truths = ["It rains", "It."]
    before, after = (
        [task.records([one, other], truth)[side] for one, other, truth in
         ((first, second, truths[0]), (third, third, truths[1]))]
        for side in (0, 1)
    )  # fmt: skip
    scores = [task.score(records, truths) for records in (before, after)]
    found = task.compare(*scores, Resamples(2, number=50))

    assert [score.metrics["word_accuracy"] for score in scores] == [1, pytest.approx(2 / 3)]
    assert scores[1].metrics["exact"] == 0.5
    assert found["flips"]["count"] == 1 and found["flips"]["units"] == 3
    assert found["flips"]["transcripts"] == 1


def test_a_vocabulary_that_is_none_is_one_line(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    output = Transcription.Output(tokens="tokenizer.json", words="lower")
    with pytest.raises(ModelError, match=r"^[^\n]*tokenizer\.json: no byte-level[^\n]*$"):
        Transcription(output, Network(folder=tmp_path))


def answer(task, ids):
    return task.decode({"ids": np.array([ids])}, None, None)
