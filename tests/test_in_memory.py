"""Networks, images and profiles that a program has in hand, in place of files."""

import csv
import importlib
import io
import json
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import tiny
import torch
import yaml
from PIL import Image

from simulator import cache, cli, compare, load_profile
from simulator.data import in_memory
from simulator.errors import DataError, ModelError, ProfileError
from simulator.model import in_memory as networks
from simulator.model.card import Card
from simulator.profile import in_memory as profiles
from simulator.profile.load import load
from simulator.profile.lookup import names
from simulator.results.read import read_run

CARD = {key: value for key, value in tiny.SPEC.items() if key not in ("model", "labels")}
PICTURES = [np.full((40, 50, 3), color, np.uint8) for color in tiny.COLORS.values()]
BGR = {"extends": "pillow_fp32", "color": {"order": "bgr"}}


class Means(torch.nn.Module):
    """What the ONNX model of :mod:`tiny` computes."""

    def forward(self, x):
        return x.mean((2, 3))


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A run of objects alone, and what it told of its progress."""
    told = []
    result = compare(
        "pillow_fp32", BGR, model=Means(), card=CARD, data=[*zip(PICTURES, range(3), strict=True)],
        progress=lambda *done: told.append(done), out=tmp_path_factory.mktemp("given") / "run",
    )  # fmt: skip
    return result, told


def test_a_run_of_objects_answers_what_the_network_does(given):
    result, told = given
    rows = result.frame().to_pylist()

    assert [row["train_prediction"] for row in rows] == [0, 1, 2]
    assert [row["deploy_prediction"] for row in rows] == [2, 1, 0]  # red is read as blue
    assert [row["label"] for row in rows] == [0, 1, 2]
    assert result.passed is None
    assert told[-1] == (3, 3) and told == sorted(told)
    assert any("decoders are not compared" in notice.text for notice in result.summary.notices)


def test_the_same_network_as_an_onnx_model_gives_the_same_bits(given, tmp_path):
    own = compare(
        "pillow_fp32", BGR, model=tiny.classifier(), card=CARD, data=PICTURES, out=tmp_path / "run"
    )

    assert own.frame()["train_digest"] == given[0].frame()["train_digest"]


def test_an_interrupted_run_of_objects_goes_on_from_the_command_line(given, tmp_path, capsys):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(
            "pillow_fp32", BGR, model=Means(), card=CARD,
            data=[*zip(PICTURES, range(3), strict=True)], progress=stop, out=tmp_path / "run",
        )  # fmt: skip
    assert cli.main(["resume", str(tmp_path / "run"), "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["flips"] == given[0].summary.model_dump(mode="json", by_alias=True)["flips"]


def test_planes_are_made_of_the_pixels_where_a_stack_takes_those_of_a_jpeg(tmp_path):
    result = compare(
        "pillow_fp32", "ascend_nv12_int8", model=tiny.classifier(), card=CARD, data=PICTURES,
        out=tmp_path / "run",
    )  # fmt: skip

    assert result.summary.skipped == 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["stacks"]["deploy"]["profile"]["color"]["source"] == "encode"
    assert manifest["overrides"] == ["deploy.color.source=encode"]


def encoded(kind):
    file = io.BytesIO()
    Image.fromarray(PICTURES[0]).save(file, kind)
    return file.getvalue()


class Loaded:
    """A data set of PyTorch: it has a length and indices, and ends by no error."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return Image.fromarray(PICTURES[index]), torch.tensor(index)


NAMED = {"a": PICTURES[0], "b.png": (PICTURES[1], 1)}
ACCEPTED = {
    "arrays": (PICTURES, ["000.png", "001.png", "002.png"], {}),
    "a batch": (np.stack(PICTURES[:2]), ["000.png", "001.png"], {}),
    "one array": (PICTURES[0], ["000.png"], {}),
    "one picture": (Image.fromarray(PICTURES[0]), ["000.png"], {}),
    "gray": ([PICTURES[0][..., 0]], ["000.png"], {}),
    "a data set": (Loaded(), ["000.png", "001.png"], {"000.png": "0", "001.png": "1"}),
    "a generator": ((one for one in PICTURES[:2]), ["000000.png", "000001.png"], {}),
    "Hugging Face": ([{"image": PICTURES[0], "label": 2}], ["000.png"], {"000.png": "2"}),
    "named": ([("x/y", PICTURES[0], "red")], ["x/y.png"], {"x/y.png": "red"}),
    "dictionary": ({"a": PICTURES[0], "b.PNG": PICTURES[1]}, ["a.png", "b.PNG"], {}),
    "bytes": ([encoded("JPEG"), encoded("PNG")], ["000.jpg", "001.png"], {}),
}


@pytest.mark.parametrize("kind", ACCEPTED)
def test_samples_become_files(kind):
    samples, files, labels = ACCEPTED[kind]

    folder = in_memory.written(samples)

    found = {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}
    own = {in_memory.MARK, cache.DIGESTS} | ({in_memory.TABLE} if labels else set())
    assert found == {*files, *own}
    if labels:
        _, *rows = csv.reader((folder / in_memory.TABLE).open())
        assert dict(rows) == labels


def test_pixels_are_kept_to_the_bit():
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), np.uint8)

    folder = in_memory.written([pixels])

    assert np.array_equal(np.asarray(Image.open(folder / "000.png")), pixels)
    assert in_memory.written([pixels.copy()]) == folder
    assert in_memory.written([pixels[::-1]]) != folder


def test_a_file_is_taken_as_it_is(tmp_path):
    (tmp_path / "a.jpg").write_bytes(encoded("JPEG"))

    folder = in_memory.written([(tmp_path / "a.jpg", 1)])

    assert (folder / "a.jpg").read_bytes() == encoded("JPEG")
    assert not in_memory.decoded(folder)


def test_a_file_that_is_no_image_is_not_left_out_in_silence(tmp_path):
    (tmp_path / "a.txt").write_text("text")

    with pytest.raises(DataError, match=r"data: 1 of 2 are no image; .* expected"):
        compare("pillow_fp32", "pillow_fp32", data=[PICTURES[0], tmp_path / "a.txt"])


FLOATS = np.zeros((3, 8, 8), np.float32)
REFUSED = [
    ([], "data: an empty list"),
    (3, "data: a list of images expected, got int"),
    ([FLOATS], r"data\[0\]: float32 \(3, 8, 8\): an image is uint8"),
    ([FLOATS.astype(np.uint8)], r"data\[0\]: uint8 \(3, 8, 8\): \(height, width, 3\)"),
    ([{"pixels": 3}], r"data\[0\]: dict is no image"),
    ([Image.new("RGBA", (2, 2))], r"mode RGBA; give image.convert\('RGB'\)"),
    ([b"GIF88a"], r"data\[0\]: bytes that are no image"),
    (["gone.jpg"], r"data\[0\]: there is no file gone.jpg"),
    ([(PICTURES[0], 1), PICTURES[1]], "1 of 2 images have a label; give all or none"),
    ([(PICTURES[0], 1.5)], r"data\[0\]: the label is float; a label is a class"),
    ([(PICTURES[0], -1)], r"data\[0\]: the label is -1"),
    ([("a", PICTURES[0], 1)] * 2, r"data\[1\]: a.png is the name of data\[0\] too"),
    ({"../a": PICTURES[0]}, "leads out of the folder"),
    ({"a\0": PICTURES[0]}, "cannot be written"),
    ([(1, 2, 3, 4)], r"data\[0\]: .* got 4 values"),
]


@pytest.mark.parametrize(("samples", "message"), REFUSED)
def test_what_is_no_image_is_refused_in_one_line(samples, message):
    with pytest.raises(DataError, match=message) as refused:
        in_memory.written(samples)

    assert "\n" not in str(refused.value)


OWN = """
import numpy as np

def preprocess(image: np.ndarray):
    return (image[:32, :32].astype(np.float32) - 127) / 64

class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, image: np.ndarray):
        return (image[:32, :32].astype(np.float32) - 127) / self.scale
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's."""
    (tmp_path / "own_module.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_module")
    del sys.modules["own_module"]


def test_functions_in_hand_are_front_ends(own, tmp_path, capsys):
    """A closure over an object of the user's module, and a function that has a file."""
    scaled = own.Scaled(64)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(
            lambda path: scaled(np.asarray(Image.open(path))), own.preprocess,
            model=tiny.classifier(), card=CARD, data=PICTURES, progress=stop,
            out=tmp_path / "run",
        )  # fmt: skip
    assert cli.main(["resume", str(tmp_path / "run"), "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["flips"]["count"] == 0
    records = read_run(tmp_path / "run")[2].to_pylist()
    assert [one["prediction"] for one in records] == [0, 0, 1, 1, 2, 2]
    assert len({one["digest"] for one in records if one["prediction"] == 0}) == 1


def test_a_function_that_has_a_file_is_named_by_it(own, tmp_path):
    assert profiles.code_written(own.preprocess, "train") == f"{tmp_path}/own_module.py:preprocess"
    assert profiles.code_written(own.Scaled(1), "train") != profiles.code_written(
        own.Scaled(2), "train"
    )
    assert profiles.code_written(own.Scaled(1), "train") == profiles.code_written(
        own.Scaled(1), "train"
    )


def test_what_no_process_can_be_given_is_refused():
    lock = threading.Lock()

    with pytest.raises(ProfileError, match=r"train: a function cannot be given .*'FILE.py:NAME'"):
        compare(lambda path: lock, "pillow_fp32")


def test_a_dictionary_is_the_document_that_it_would_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(yaml.safe_dump({"schema": 1, "name": "b", "summary": "s", **BGR}))
    Path("own.onnx").write_bytes(tiny.classifier().SerializeToString())
    given = {
        "extends": "base.yaml", "resize": {"interpolation": "bilinear"},
        "precision": {"artifact": "own.onnx", "storage": None, "compute": None},
    }  # fmt: skip

    place = profiles.written(given, "deploy")
    monkeypatch.chdir("/")

    profile = load(str(place))
    assert (profile.name, profile.spec.color.order) == ("deploy", "bgr")
    assert profile.spec.resize.interpolation == "bilinear"
    assert profile.spec.precision.artifact == str(tmp_path / "own.onnx")


@pytest.mark.parametrize("name", names()[::8])
def test_a_loaded_profile_says_the_same_as_its_file(name):
    profile = load_profile(name)

    again = load(str(profiles.written(profile, "train")))

    assert again.spec == profile.spec.model_copy(update={"extends": None})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"extends": "pillow_fp3"}, "deploy: extends: unknown profile 'pillow_fp3'"),
        ({**BGR, "rezise": 3}, "deploy: rezise: unknown key 'rezise'; did you mean 'resize'?"),
        ({**BGR, "color": {"order": "rbg"}}, "deploy: color.order: unknown value 'rbg'"),
        ({3: 4}, "deploy: the key 3 is no text"),
        (3, "deploy: int is no stack"),
    ],
)
def test_a_wrong_profile_is_refused_by_the_name_of_its_option(given, message):
    with pytest.raises(ProfileError) as refused:
        compare("pillow_fp32", given)

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": Means()}, "model: what Means takes is not known; write card=CARD, or input="),
        ({"model": 3, "card": CARD}, "model: builtins.int is no network"),
        ({"model": Means(), "input": (1, 0, 3)}, "sides of at least 1"),
        ({"model": Means(), "input": (1, 3)}, r"Means does not take float32 \(1, 3\): IndexError"),
        ({"model": Means(), "card": {**CARD, "inputs": 3}}, "card: inputs: unknown key 'inputs'"),
        ({"card": CARD}, "card: give the network too"),
    ],
)
def test_a_wrong_network_is_refused(options, message):
    with pytest.raises(ModelError, match=message):
        compare("pillow_fp32", "pillow_fp32", **options)


def test_a_card_that_is_not_filled_in_is_refused(tmp_path):
    (tmp_path / "card.yaml").write_text(f"{yaml.safe_dump(CARD)}# TODO: the order\n")

    with pytest.raises(ModelError, match="1 field is still marked TODO"):
        networks.written(tiny.classifier(), tmp_path / "card.yaml")


def test_a_card_names_its_files_from_where_it_is(tmp_path):
    card = tiny.card(tmp_path / "model")

    found = yaml.safe_load(networks.written(tiny.classifier(), card).read_text())

    assert found["labels"] == str(tmp_path / "model" / "labels.txt")
    assert found["model"] == "tiny.onnx"


class OfTimm(Means):
    def __init__(self):
        super().__init__()
        self.pretrained_cfg = {
            "architecture": "means", "input_size": (3, 48, 48), "mean": (0.4, 0.5, 0.6),
            "std": (0.2, 0.2, 0.2), "interpolation": "bicubic", "crop_pct": 0.9, "num_classes": 3,
        }  # fmt: skip


def test_a_network_of_timm_says_itself_what_it_takes():
    card = Card(networks.written(OfTimm()))

    assert (card.spec.input.height, card.spec.input.mean) == (48, [0.4, 0.5, 0.6])
    assert card.told.startswith("no model card is given, read from config.json beside it")


def test_a_part_of_a_card_is_taken_and_the_rest_assumed_aloud():
    part = {"input": {"height": 40, "width": 48, "mean": [0.1, 0.2, 0.3], "std": [1, 1, 1]}}

    card = Card(networks.written(Means(), part))

    assert (card.feeds[0].shape, card.spec.input.mean) == ((1, 3, 40, 48), [0.1, 0.2, 0.3])
    assert "is assumed: task classification, input.order rgb" in card.told
    assert "mean" not in card.told
    assert card.told.endswith("to change it: card={...} with what it is")
    with pytest.raises(ModelError, match="card: unknown key 'inputs'; did you mean 'input'"):
        networks.written(Means(), {"inputs": part["input"]})


def test_without_a_card_a_network_is_its_file():
    place = networks.written(Means(), given=torch.zeros(1, 3, 8, 8))

    (port,) = onnx.load(place).graph.input
    assert [size.dim_value for size in port.type.tensor_type.shape.dim] == [0, 3, 8, 8]
