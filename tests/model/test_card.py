"""Model cards: their content, and how a wrong one is refused."""

import pytest
import tiny
from refusals import refused

from simulator.errors import ModelError, SimulatorError
from simulator.modalities.image.card import geometry_of
from simulator.model.card import Card
from simulator.profile.load import load


def problems(path):
    return refused(Card, path, by=ModelError)


def change(card, old, new):
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def test_files_are_found_beside_the_card(card, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    found = Card(card)

    assert found.model == card.parent / "model.onnx"
    assert found.labels.names == ("red", "green", "blue")
    assert found.file("torch_export") is None


def test_a_card_without_any_file_says_which_there_may_be(tmp_path):
    (said,) = problems(tiny.card(tmp_path, model=None))

    assert said.endswith(
        "a card needs model: FILE.onnx, or tflite: {fp32: FILE.tflite} or ctranslate2: FOLDER "
        "or saved_model: FOLDER for the runtimes that take it"
    )


def test_a_class_without_a_label_file_is_its_number(tmp_path):
    assert Card(tiny.card(tmp_path, labels=None)).task.network.label(7) == "7"


@pytest.mark.parametrize(
    ("old", "new", "start", "later"),
    [
        ("layout: NCHW", "layout: CHWN", "input.layout: unknown value 'CHWN'; did you mean", 0),
        (
            "height: 32",
            "hieght: 32",
            "input.hieght: unknown key 'hieght'; did you mean 'height'?",
            0,
        ),
        (
            "height: 32",
            "height: '32'",
            "input.height: a whole number or free expected, got the text '32'",
            0,
        ),
        ("height: 32", "height: 0", "input.height: input should be greater than or equal to 1", 0),
        ("height: 32", "height: 99999", "input.height: input should be less than or equal to", 0),
        ("top: 255", "top: 256", "input.top: unknown value '256'; did you mean '255'?", 0),
        (
            "- 127.0\n  - 127.0",
            "- 127.0\n  - .inf",
            "input.mean.1: input should be a finite numb",
            1,
        ),
        ("std:\n  - 64.0", "std:\n  - 0", "input.std.0: input should be greater than 0, got 0", 1),
        ("kind: squash", "kind: stretch", "geometry.kind: unknown value 'stretch'", 0),
        (
            "kind: squash",
            "kind: short_side_crop",
            "geometry: short_side is for kind short_side_crop or squash_crop",
            -1,
        ),
        (
            "kind: logits",
            "knid: logits",
            "output.knid: unknown key 'knid'; did you mean 'kind'?",
            0,
        ),
        ("task: classification", "task: origami", "task: ", 0),
        ("schema: 1", "schema: 2", "schema: ", 0),
        ("name: colors", "nmae: colors", "nmae: unknown key 'nmae'; did you mean 'name'?", 0),
        ("labels: labels.txt", "labels: [a]", "labels: text expected, got ['a']", 0),
    ],
)
def test_a_wrong_field_names_its_line(card, old, new, start, later):
    line = change(card, old, new)

    found = problems(card)

    assert any(f": {start}" in problem for problem in found), found
    assert any(problem.startswith(f"{card}:{line + later}: ") for problem in found)


def test_all_problems_come_at_once(card):
    change(card, "layout: NCHW", "layout: x")
    change(card, "kind: squash", "kind: y")
    change(card, "name: colors", "nam: colors")

    assert len(problems(card)) == 4


@pytest.mark.parametrize(
    ("key", "name"),
    [("model", "absent.onnx"), ("labels", "absent.txt"), ("torch_export", "absent.pt2"),
     ("model", "a" * 300), ("model", "."), ("model", "a\0b")],
)  # fmt: skip
def test_a_file_that_is_not_there(tmp_path, key, name):
    path = tiny.card(tmp_path, **{key: name})

    (problem,) = problems(path)

    assert problem.startswith(f"{path}: {key}: there is no file {tmp_path}")


@pytest.mark.parametrize("content", ["", "- a\n", "a: [\n", "a:\n\tb: 1\n", "a: 1\na: 2\n", "\0"])
def test_what_is_no_card(card, content):
    card.write_text(content)

    assert all(problem.startswith(str(card)) for problem in problems(card))


def test_a_program_of_pytorch_says_nothing_of_itself(card):
    (card.parent / "model.pt2").write_bytes(b"PK")

    (problem,) = problems(card.parent / "model.pt2")

    assert "write a model card for it" in problem


def test_an_absent_card(tmp_path):
    (problem,) = problems(tmp_path / "absent.yaml")

    assert problem == f"{tmp_path / 'absent.yaml'}: cannot be read: No such file or directory"


def test_an_empty_label_file(card):
    (card.parent / "labels.txt").write_text("")

    with pytest.raises(SimulatorError, match="the label file is empty"):
        Card(card)


def test_the_models_geometry_with_the_profiles_rounding(tmp_path):
    path = tiny.card(tmp_path, geometry={"kind": "short_side_crop", "short_side": 40})

    found = geometry_of(load("pillow_fp32", ["geometry.rounding=floor"]), Card(path).spec)

    assert (found.kind, found.short_side, found.rounding) == ("short_side_crop", 40, "floor")
    assert (found.height, found.width) == (32, 32)


def test_rounding_as_the_model_says(tmp_path):
    path = tiny.card(tmp_path, geometry={"kind": "letterbox", "rounding": "dali", "value": 114})

    found = geometry_of(load("pillow_fp32", ["geometry.rounding=model"]), Card(path).spec)

    assert (found.rounding, found.value, found.position) == ("dali", 114, "center")


def test_the_profiles_geometry_goes_before_the_models(card):
    asked = "geometry={kind: letterbox, position: top_left, value: 9, rounding: floor}"

    found = geometry_of(load("pillow_fp32", [asked]), Card(card).spec)

    assert (found.kind, found.position, found.value) == ("letterbox", "top_left", 9)
    assert (found.height, found.width) == (32, 32)
