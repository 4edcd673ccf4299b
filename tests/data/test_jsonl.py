"""JSONL files of texts as samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datacards import card_of, refused
from shared_data import shared

from simulator.data.card import read_card
from simulator.data.folder import IMAGES, Files
from simulator.errors import DataError
from simulator.modalities.text.read import read

TEXTS = Files((".json", ".txt"), "text")
FIELDS = {
    "multiple_choice": {
        "context": "{q}\nAnswer:", "strip": "right", "choices": "c", "gold": "g", "delimiter": " ",
    },
    "next_word": {"context": "{q}", "continuation": "{w}", "delimiter": " "},
    "generation": {"context": "Q: {q}\nA:", "answer": "{w}"},
    "embedding": {"context": "{q}", "choices": "c", "gold": "g"},
}  # fmt: skip
LINE = {"q": "What? \n", "c": ["ja", "nein"], "g": 1, "w": "so"}


def loaded(folder, text, task="multiple_choice", files=TEXTS, **fields):
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "a.jsonl").write_bytes(data)
    fields = {"file": "a.jsonl", **FIELDS[task], **fields}
    given = {name: value for name, value in fields.items() if value is not None}
    return card_of(folder, task, "jsonl", **given).load(None, files)


def lines(*changes):
    return "".join(json.dumps({**LINE, **change}) + "\n" for change in changes)


def requests(item):
    return [(r.context, r.continuation, r.length) for r in read(item.path).requests]


def test_a_question_has_a_request_for_each_choice(tmp_path):
    found = loaded(tmp_path, lines({}, {"g": 0}))

    assert [item.name for item in found.items] == ["a.jsonl#000000", "a.jsonl#000001"]
    assert [item.truth for item in found.items] == [1, 0]
    context = "What?\nAnswer:"
    assert requests(found.items[0]) == [(context, " ja", 2), (context, " nein", 4)]


def test_contexts_share_a_continuation(tmp_path):
    found = loaded(
        tmp_path, lines({}), context=None, strip=None, choices=None, contexts="c",
        continuation="{w}.",
    )  # fmt: skip

    assert requests(found.items[0]) == [("ja", " so.", None), ("nein", " so.", None)]


@pytest.mark.parametrize(
    ("task", "expected", "truth"),
    [
        ("next_word", [("What? \n", " so", None)], "so"),
        ("generation", [("Q: What? \n\nA:", "", None)], "so"),
        ("embedding", [("What? \n", "", None), ("ja", "", None), ("nein", "", None)], 1),
    ],
)
def test_each_task_has_its_requests(tmp_path, task, expected, truth):
    (item,) = loaded(tmp_path, lines({}), task).items

    assert (requests(item), item.truth) == (expected, truth)


@pytest.mark.parametrize(
    ("strip", "expected"), [("none", " a "), ("left", "a "), ("right", " a"), ("both", "a")]
)
def test_blanks_are_cut_where_the_card_says(tmp_path, strip, expected):
    (item,) = loaded(tmp_path, lines({"q": " a "}), context="{q}", strip=strip).items

    assert requests(item)[0][0] == expected


def test_some_lines_are_taken_and_keep_their_numbers(tmp_path):
    found = loaded(tmp_path, lines({}, {}, {}, {}), first=1, last=2)

    assert [item.name for item in found.items] == ["a.jsonl#000001", "a.jsonl#000002"]


def test_the_same_texts_are_the_same_files_and_others_are_not(tmp_path):
    one, again = (loaded(tmp_path, lines({})).items[0] for _ in range(2))
    other = loaded(tmp_path, lines({"q": "Why?"})).items[0]

    assert one.path == again.path
    assert one.path != other.path


def test_unusable_lines_are_left_out_and_counted(tmp_path):
    bad = {"g": 2}, {"g": -1}, {"c": []}, {"c": ["a", " "]}
    found = loaded(tmp_path, lines({"c": ["x", "y"]}, *bad))

    assert [item.name for item in found.items] == ["a.jsonl#000000"]
    assert found.notes == (
        "left out 2 lines whose g is none of its texts: a.jsonl:2, a.jsonl:3",
        "left out 1 line without c: a.jsonl:4",
        "left out 1 line with an empty text in c: a.jsonl:5",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (lines({}) + "{", "a.jsonl:2: no JSON"),
        (lines({}) + "\n" + lines({}), "a.jsonl:2: an empty line"),
        ("[1]\n", r"a.jsonl:1: a JSON object expected, got \[1\]"),
        ('{"q": "a", "c": ["b"]}', "a.jsonl:1: there is no key 'g'"),
        (lines({"q": ["a"]}), r'a.jsonl:1: q: a text expected, got \["a"\]'),
        (lines({"q": True}), "a.jsonl:1: q: a text expected, got true"),
        (lines({"c": "ab"}), 'a.jsonl:1: c: a list of texts expected, got "ab"'),
        (lines({"c": [1]}), r"a.jsonl:1: c: a list of texts expected, got \[1\]"),
        (lines({"g": "1"}), 'a.jsonl:1: g: an index expected, got "1"'),
        (lines({"g": True}), "a.jsonl:1: g: an index expected, got true"),
        (lines({}).encode() + b'{"q": "\xff"}', "a.jsonl:2: not UTF-8 text"),
        (lines({"c": []}), "has no usable line: left out 1 line without c"),
        ("[" * 100_000, "a.jsonl:1: no JSON"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, text, words):
    with refused(words):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"choices": None}, "either context and choices, or contexts and continuation"),
        ({"contexts": "c"}, "either context and choices, or contexts and continuation"),
        ({"delimiter": None}, "delimiter: required"),
        ({"first": 9}, "no line from 9 on"),
        ({"file": "b.jsonl"}, "file: there is no"),
        ({"files": IMAGES}, "jsonl has texts, and the model takes images"),
    ],
)
def test_a_card_that_cannot_be_used_is_one_line(tmp_path, fields, words):
    with pytest.raises(DataError, match=words):
        loaded(tmp_path, lines({}), **fields)


def test_half_a_character_costs_its_sample_only(tmp_path):
    """A lone surrogate is legal in JSON's escapes, and no text."""
    found = loaded(tmp_path, lines({}) + lines({}).replace("What", "\\ud800"))

    assert len(found.items) == 2


CARDS = Path(__file__).parents[1] / "cards" / "language"
PUBLIC = {
    "arc_easy": (2376, "the foundation of most food webs?\nAnswer:", " Sunlight is the source"),
    "copa": (100, "The man turned on the faucet, therefore", " the toilet filled with water."),
    "hellaswag": (2000, "A man is sitting on a roof. he", " is using wrap"),
    "lambada": (5153, "I don't care about", " signs"),
    "piqa": (1838, "for it's new occupants?\nAnswer:", " Provide the guinea pig"),
    "winograd_wsc": (273, "because the city councilmen", " feared violence."),
    "winogrande": (1267, "than Maria so Sarah", " always got the easier cases."),
}
"""How many samples a public set has, and the end and the continuation of its first text."""


@pytest.mark.prove
@pytest.mark.parametrize("name", PUBLIC)
def test_the_cards_of_the_public_sets_read_them(name):
    shared("language")
    count, context, continuation = PUBLIC[name]
    found = read_card(CARDS / f"{name}.yaml").load(None, TEXTS)
    first = read(found.items[0].path).requests[0]

    assert len(found.items) == count
    assert first.context.endswith(context)
    assert first.continuation.startswith(continuation)
    assert found.notes == ()
