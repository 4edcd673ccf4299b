"""Pages of texts and of sounds: no sentence calls a sample an image."""

import html
import json
import re

import pytest

import simulator
from simulator.testing import text_specimen
from simulator.testing.audio_specimen import CARD, sine, wav, write

OUTPUTS = {
    "multiple_choice": "{}", "next_word": "{}", "generation": "{tokens: 2, stop: []}",
    "embedding": "{pooling: mean}",
}  # fmt: skip
TEXTS = [
    ("The water is", ["in the can", "on a wet day in 2026"], 0),
    ("Two and 2 are", ["a tree", "4"], 1),
    ("the water the water", ["is the", "or"], 0),
    ("Answer:", ["A A", "A"], 1),
]


def visible(page):
    """The words of a page, and those of its figures."""
    text = page.read_text()
    figures = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    shown = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]+>", " ", shown))
    return " ".join([words, *(word for one in figures for word in re.findall(r'"[^"]*"', one))])


def images_of(page):
    return re.findall(r".{0,60}\b(?:images?|photos?|pixels?)\b.{0,60}", visible(page))


def texts(folder, task):
    text_specimen.write(folder, task, OUTPUTS[task])
    lines = [{"q": q, "c": c, "g": g, "w": c[g]} for q, c, g in TEXTS]
    (folder / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    fields = {
        "multiple_choice": "choices: c\ngold: g\ndelimiter: ' '",
        "embedding": "choices: c\ngold: g",
        "generation": "answer: '{w}'", "next_word": "continuation: '{w}'\ndelimiter: ' '",
    }  # fmt: skip
    head = f"schema: 1\nname: a\ntask: {task}\nformat: jsonl\nfile: a.jsonl\ncontext: '{{q}}'\n"
    (folder / "data.yaml").write_text(head + fields[task] + "\n")
    return {"model": folder / "card.yaml", "data": folder / "data.yaml"}


@pytest.mark.parametrize("task", OUTPUTS)
def test_a_text_is_no_image(tmp_path, cache, task):
    found = simulator.compare(
        "text_fp32", "text_fp32", overrides=["deploy.feeds.max_length=4"], out=tmp_path / "run",
        fail_on=["flip_rate > 1%"], **texts(tmp_path, task),
    )  # fmt: skip
    assert images_of(found.report) == []


def test_the_nearest_texts_are_told(tmp_path, cache):
    """Fifteen tokens are cut to four, so that another text is the nearest."""
    found = simulator.compare(
        "text_fp32", "text_fp32", overrides=["deploy.feeds.max_length=4"], out=tmp_path / "run",
        quick=True, **texts(tmp_path, "embedding"),
    )  # fmt: skip
    flip = found.summary["worst_flips"][0]
    question, choices, right = TEXTS[int(flip["sample"].rpartition("#")[2])]
    words = " ".join(visible(found.report).split())
    train, deploy = (flip[side]["order"][0] for side in ("train", "deploy"))
    told = {at: [] for at in range(2)}
    told[train].append("train")
    told[deploy].append("deploy")
    assert train != deploy
    assert f"question {question}" in words
    for at, sides in told.items():
        picked = "; ".join([" and ".join(sides), *(["right"] if at == right else [])])
        assert f"choice {at + 1} {choices[at]} {picked}" in words


@pytest.mark.parametrize("task", ["classification", "audio_classification"])
def test_a_sound_is_no_image(tmp_path, cache, task):
    given = write(tmp_path)
    given.card.write_text(
        CARD.replace("task: classification", f"task: {task}") + "labels: labels.txt\n"
    )
    (tmp_path / "labels.txt").write_text("low\nmiddle\nhigh\n")
    for at, name in enumerate(("low", "middle", "high")):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(3):
            heard = sine(300 + 1000 * at + 50 * number, 8000, 2000)
            (tmp_path / "data" / name / f"{number}.wav").write_bytes(wav(heard, 8000))
    more = {"model": given.card, "data": tmp_path / "data"}

    found = simulator.compare(
        given.profile, given.profile, overrides=["deploy.log.value=0.1", "deploy.mel.scale=htk"],
        out=tmp_path / "run", **more,
    )  # fmt: skip

    assert found.summary.unit == "sound"
    assert images_of(found.report) == []
    whole = simulator.explain(
        given.profile, given.profile, overrides=["deploy.log.value=0.1", "deploy.mel.scale=htk"],
        out=tmp_path / "whole", **more,
    )  # fmt: skip
    assert images_of(whole.report) == []


def test_a_sweep_of_texts_that_drops_options_names_no_images(tmp_path, cache):
    (tmp_path / "s.yaml").write_text(
        "schema: 1\nname: two\nsummary: two\ntrain: text_fp32\ncolumns:\n"
        "  length: {four: {feeds.max_length: 4}, thirty: {feeds.max_length: 30}}\n"
    )
    given = texts(tmp_path, "multiple_choice")
    (found,) = simulator.sweep(
        str(tmp_path / "s.yaml"), models=[given["model"]], data=given["data"], out=tmp_path / "run",
        until_decided="worst-flips",
    )  # fmt: skip
    assert images_of(found.report) == []
