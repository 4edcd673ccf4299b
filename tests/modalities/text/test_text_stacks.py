"""Stacks of texts, whole: cards, vocabularies that do not fit, comparisons, shared inferences."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import yaml

import simulator
from simulator.contract.recipe import Boundary
from simulator.errors import ModelError, ProfileError, UserError
from simulator.modalities.modality import MODALITIES
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.report.words import SIDES
from simulator.testing import text_specimen

TEXT = MODALITIES["text"]


@pytest.fixture
def folder(tmp_path):
    """A folder with a card, and its texts in one below it."""
    made = tmp_path / "model"
    made.mkdir()
    (tmp_path / "texts").mkdir()
    for file in text_specimen.write(made).files:
        shutil.move(file, tmp_path / "texts" / file.name)
    return tmp_path


def changed(folder, **values):
    """The card with other values in its input."""
    path = folder / "model" / "card.yaml"
    document = yaml.safe_load(path.read_text())
    document["input"] |= values
    for name in [name for name, value in values.items() if value is None]:
        del document["input"][name]
    path.write_text(yaml.safe_dump(document))
    return path


def compared(folder, deploy, *overrides, train="text_fp32", **more):
    return simulator.compare(
        train, deploy, model=folder / "model" / "card.yaml", data=folder / "texts",
        overrides=overrides, out=folder / "run", quick=True, **more,
    )  # fmt: skip


def recipes(folder, *overrides, name="text_fp32"):
    profile = load(name, overrides)
    return TEXT.front_end(profile, choose(profile), Card(folder / "model" / "card.yaml").spec)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"pad": 448}, "pad: 448 is none of the 448 ids"),
        ({"prefix": -1}, "input.prefix"),
        ({"vocabulary": 0}, "input.vocabulary"),
        ({"names": {"ids": "x", "mask": "x"}}, "each input needs a name of its own"),
        ({"tokenizer": {"tokenizers": "missing.json"}}, "input.tokenizer.tokenizers: there is no"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_card_that_is_wrong_is_refused(folder, values, told):
    with pytest.raises(ModelError, match=told):
        Card(changed(folder, **values))


def test_the_card_keeps_the_paths_that_were_written(folder):
    card = Card(folder / "model" / "card.yaml")

    assert card.written.input.tokenizer["gguf"] == "small.gguf"
    assert card.spec.input.tokenizer["gguf"] == str(folder / "model" / "small.gguf")
    formats = ("tokenizers", "sentencepiece", "gguf")
    assert set(card.files) == {f"input.tokenizer.{format}" for format in formats}


@pytest.mark.parametrize(
    ("values", "overrides", "told"),
    [
        ({"tokenizer": {}}, (), "takes a vocabulary of the format tokenizers.*names none"),
        ({"tokenizer": {"gguf": "small.gguf"}}, (), "names only gguf"),
        ({"pad": None}, (), "has no id for that; write batch: single"),
        ({"names": {"ids": "input_ids"}}, (), "takes no mask; write mask: ignored"),
    ],
)
def test_a_profile_that_does_not_fit_the_card_is_refused(folder, values, overrides, told):
    changed(folder, **values)

    with pytest.raises(ModelError, match=told):
        recipes(folder, *overrides)


def test_where_nothing_is_padded_neither_pad_nor_mask_is_needed(folder):
    changed(folder, pad=None, names={"ids": "input_ids"})

    assert len(recipes(folder, "feeds.batch=single")) == 2


def test_what_has_no_effect_is_the_same_step(folder):
    alone, left, blind, counted = (
        recipes(folder, "feeds.batch=single", *more)[1]
        for more in ((), ("feeds.padding_side=left",), ("feeds.mask=ignored",),
                     ("feeds.position_ids=arange",))
    )  # fmt: skip

    assert alone == left == blind == counted
    assert recipes(folder)[1] != recipes(folder, "feeds.padding_side=left")[1]
    assert recipes(folder)[0] == recipes(folder, "tokenize.truncation_side=right")[0]


def test_a_stack_without_a_tokenizer_takes_the_ids_of_the_samples(folder):
    steps = recipes(folder, "tokenize=null")
    (folder / "texts" / "1.json").unlink()
    requests = [{"ids": [5, 6, 7]}]
    (folder / "texts" / "0.json").write_text(json.dumps({"requests": requests}))

    assert [one.gives for one in steps] == [Boundary.FRAME, Boundary.INPUT]
    source = TEXT.read("0.json", folder / "texts" / "0.json")
    made = steps[1].inputs(steps[0].open(None)(source, None))
    assert made["input_ids"].tolist() == [[5, 6, 7]]


def test_a_field_that_no_text_profile_has_is_refused():
    for override in ("feeds.bacth=single", "resize.backend=pillow", "tokenize.backend=pillow"):
        with pytest.raises((ProfileError, UserError)):
            choose(load("text_fp32", [override]))


def test_a_larger_vocabulary_is_refused_before_the_first_sample(folder):
    """Its ids would be read past the end of the embedding, or silently be other words."""
    changed(folder, vocabulary=200)

    with pytest.raises(ModelError, match=r"tokenizer\.json has 275 ids, and the network knows 200"):
        compared(folder, "text_batch1")


def test_a_smaller_embedding_is_refused_before_the_first_sample(folder):
    with pytest.raises(ModelError, match=r"its embedding has 448 ids, and .* is 500"):
        check(Card(changed(folder, vocabulary=500)))


def test_over_long_texts_are_cut_and_counted(folder):
    request = {"context": "The water " * 40, "continuation": " is"}
    (folder / "texts" / "0.json").write_text(json.dumps({"requests": [request]}))

    found = compared(folder, "text_batch1").summary["warnings"]
    refusing = compared(
        folder, "text_batch1", "train.tokenize.truncation_side=refuse", overwrite=True
    )

    told = "1 of 2 texts are longer than the 64 tokens that the network takes"
    assert any(told in str(one) and "cut on the left" in str(one) for one in found)
    assert refusing.summary["failed"]["train"]["count"] == 1  # deployment takes it: not skipped
    assert "over-long" in str(refusing.summary["failures"])


def beside(folder, request, *overrides):
    """What a report shows of a request, with a stack's tokens beside the training stack's."""
    (folder / "texts" / "0.json").write_text(json.dumps({"requests": [request, request]}))
    card = Card(folder / "model" / "card.yaml")
    placings = [TEXT.placing(load("text_fp32", more), card.spec) for more in ((), overrides)]
    return TEXT.beside(placings, TEXT.read("0.json", folder / "texts" / "0.json"))


def test_tokens_that_differ_are_shown_side_by_side(folder):
    """Once for each place, however many requests have it."""
    request = {"context": "It was in 2020.", "continuation": " I was on."}

    (found,) = beside(folder, request, "tokenize.pre_tokenizer=byte_level_only")

    assert found == {
        "request": 0,
        "tokens": [21, 19],
        "pieces": [
            [" ", "in", " ", "2", "0", "2", "0", ".", " ", "I"],
            [" ", "in", " ", "20", "20", ".", " ", "I"],
        ],
    }


def test_where_tokens_are_equal_nothing_is_shown(folder):
    request = {"context": "It is on", "continuation": " in"}

    assert beside(folder, request, "tokenize.pre_tokenizer=byte_level_only") is None
    assert beside(folder, request, "feeds.batch=single") is None


def test_the_report_shows_what_changed_answers_were_asked_and_in_which_tokens(folder):
    """The question and its choices with who picked which; a stranger's markup stays text.

    A choice of digits gets a blank before each, and is less likely by so many tokens.
    """
    for number in range(12):
        choices = (" 12345", " abcdefghijkl"[: number + 2])
        asked = [{"context": "It <b>is</b>" + "x" * 2100, "continuation": one} for one in choices]
        if number % 2:
            asked = [{"context": "It <b>is</b>", "continuation": one} for one in choices]
        (folder / "texts" / f"{number}.json").write_text(json.dumps({"requests": asked}))

    page = compared(folder, "text_prefix_space").report.read_text()

    flips = json.loads((folder / "run" / "summary.json").read_text())["worst_flips"]
    assert flips and "<b>is" not in page and "Tokens that differ" in page
    ends = [[own[-2:] for own in flip["beside"][0]["pieces"]] for flip in flips]
    assert ends == [[["4", "5"], [" ", "5"]]] * len(flips)
    for flip in flips:
        number, sides = int(flip["sample"][:-5]), {flip[side]["answer"] for side in SIDES}
        (context, first), (same, second) = (one.values() for one in flip["asked"])
        assert sides == {0, 1} and context == same
        assert (first, second) == (" 12345", " abcdefghijkl"[: number + 2])
        part = page.partition(f"What {flip['sample']} asks")[2].partition("</table>")[0]
        rows = [re.sub(r"<[^>]+>", "|", row).strip("|\n") for row in part.split("<tr>")[2:]]
        assert [re.split(r"[|\n]+", row)[0] for row in rows] == ["question", "choice 1", "choice 2"]
        for row, choice in zip(rows[1:], (0, 1), strict=True):
            picked = [side for side in SIDES if flip[side]["answer"] == choice]
            assert re.split(r"[|\n]+", row)[-1] == " and ".join(picked)


def test_a_damaged_vocabulary_is_one_line(folder):
    (folder / "model" / "tokenizer.json").write_text('{"model": {"type": "BPE"')

    with pytest.raises(ModelError, match=r"^[^\n]*tokenizer.json: no tokenizer.json[^\n]*$"):
        compared(folder, "text_batch1")


def test_bad_texts_are_skipped_and_counted(folder):
    bad = {
        "latin.txt": "caf\u00e9".encode("latin-1"),
        "empty.json": b"",
        "ids.json": b'{"requests": [{"ids": [999]}]}',
        "long.json": json.dumps(
            {"requests": [{"context": "a", "continuation": " b" * 200}]}
        ).encode(),
    }
    for name, data in bad.items():
        (folder / "texts" / name).write_bytes(data)

    found = compared(folder, "text_batch1")

    assert (found.summary.samples, found.summary.skipped) == (2, 4)
    skipped = str(found.summary["skipped_samples"])
    for told in ("not UTF-8", "empty", "knows 448 ids", "are the continuation's"):
        assert told in skipped


@pytest.mark.parametrize(
    "name",
    ["text_batch1", "text_left_unmasked", "text_lost_digits", "text_openvino_fp32",
     "text_prefix_space"],
)  # fmt: skip
def test_a_shipped_stack_answers(folder, name):
    found = compared(folder, name)

    assert found.summary.samples == 2
    assert found.summary["controls"]["self"]["bit_equal"]
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert set(manifest["model"]["files"]) == set(Card(folder / "model" / "card.yaml").files)
    assert manifest["model"]["spec"]["input"]["tokenizer"]["gguf"] == "small.gguf"
