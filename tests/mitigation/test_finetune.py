"""``simulate finetune``: what is learned from, interruptions, modules, augmentation, refusals."""

import importlib
import importlib.util
import json
import sys

import numpy as np
import onnx
import pytest
import tiny
import yaml
from onnx import helper

from simulator import cli, finetune, load_card
from simulator.errors import ModelError, UserError
from simulator.mitigation.augment import Augmentation
from simulator.profile.suite import load_suite

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("onnx2torch") is None, reason="onnx2torch is not installed"
)
MIX = {"mix": "sysnoise-mix", "profile": "pillow_bilinear_fp32"}


def network(batch="n"):
    """Convolution, normalization, pooling, and a linear layer with a bias."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="first", pads=[1] * 4, strides=[4, 4]),
        helper.make_node("BatchNormalization", ["c1", "s", "b", "m", "v"], ["n1"], name="norm"),
        helper.make_node("Relu", ["n1"], ["r1"]),
        helper.make_node("GlobalAveragePool", ["r1"], ["p"]),
        helper.make_node("Reshape", ["p", "shape"], ["f"], allowzero=1),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="last"),
    ]
    held = {"w1": rng.normal(0, 0.3, (6, 3, 3, 3)), "w3": rng.normal(0, 0.3, (6, 3))}
    held |= {"b3": np.zeros(3), "s": np.ones(6), "b": np.zeros(6), "m": np.zeros(6)}
    held |= {"v": np.ones(6)}
    arrays = {name: value.astype(np.float32) for name, value in held.items()}
    arrays["shape"] = np.array([-1, 6])
    return tiny.model(nodes, {"x": [batch, 3, 32, 32]}, {"y": [batch, 3]}, arrays)


@pytest.fixture
def card(tmp_path):
    tiny.data(tmp_path / "data", each=8)
    return tiny.card(tmp_path, network())


def tuned(card, out, epochs=2, limit=None, **more):
    own = {"batch": 8, "learning_rate": 0.05, "threads": 1, "held_out": 0.25}
    options = {"epochs": epochs, "limit": limit} | own | more
    return finetune(card, card.parent / "data", card.parent / out, **options)


def held(folder):
    graph = onnx.load(str(folder / "model.onnx")).graph
    values = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    return {node.name: [values.get(name) for name in node.input] for node in graph.node}


def test_it_learns_from_drawn_stacks_and_writes_a_card_that_runs(card, capsys):
    summary = tuned(card, "out", epochs=8, **MIX, augment=("flip", "shift:2"))

    out = card.parent / "out"
    assert summary["accuracy"] == 1
    assert summary["epochs"][-1]["loss"] < summary["epochs"][0]["loss"]
    made = yaml.safe_load((out / "model.yaml").read_text())
    assert made["name"] == "colors_mix"
    assert made["summary"].startswith("8 epochs, mixed from sysnoise-mix: decode, resize; 100.0 %")
    assert made["checkpoint"] == {"recipe": "mix", "seed": 0}
    assert sorted(p.name for p in out.iterdir()) == [
        "labels.txt", "model.onnx", "model.yaml", "plan.json", "summary.json",
    ]  # fmt: skip
    words = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--json"]
    places = ["--model", out / "model.yaml", "--data", card.parent / "data", "--out", out / "run"]
    assert cli.main([*words, *map(str, places)]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 24


def test_what_is_drawn_is_what_it_learns_from(card):
    """A mix, one of batches, the training stack alone and one option give four networks; a column
    of one option that the training stack has already gives the same as none."""
    folder = card.parent
    tuned(card, "mix", **MIX)
    tuned(card, "batch", **MIX, draw="batch")
    tuned(card, "alone", profile=MIX["profile"])
    tuned(card, "nearest", **MIX, option=("resize=pil-nearest",))
    tuned(card, "own", **MIX, option=("resize=pil-bilinear",))

    files = {name: (folder / name / "model.onnx").read_bytes()
             for name in ("mix", "batch", "alone", "nearest", "own")}  # fmt: skip
    assert files["own"] == files["alone"]
    assert len(set(files.values())) == 4


def test_statistics_are_learned_or_kept(card):
    tuned(card, "learn")
    tuned(card, "keep", statistics="keep")
    learned, kept = (held(card.parent / name)["norm"] for name in ("learn", "keep"))

    assert np.array_equal(kept[3], np.zeros(6)) and np.array_equal(kept[4], np.ones(6))
    assert np.abs(learned[3]).max() > 0.01
    assert all(np.abs(one[1] - 1).max() > 1e-4 for one in (learned, kept))


def test_nodes_keep_their_names(card):
    tuned(card, "out", epochs=1)
    names = [node.name for node in onnx.load(str(card.parent / "out" / "model.onnx")).graph.node]

    assert [name for name in names if name] == ["first", "norm", "last"]


def test_an_image_that_a_drawn_decoder_cannot_read_is_counted(card):
    """Pillow reads 16-bit gray PNGs here; the decoders that refuse them give way."""
    from PIL import Image

    gray = np.linspace(0, 65535, 1600).astype(np.uint16).reshape(40, 40)
    for colour in tiny.COLORS:
        Image.fromarray(gray).save(card.parent / "data" / colour / "deep.png")
    suite = {"schema": 1, "name": "jpeg", "train": "pillow_bilinear_fp32", "summary": "one",
             "columns": {"decode": {"turbojpeg": {"decode": {"backend": "turbojpeg",
              "idct": "islow", "chroma_upsampling": "fancy"}}}}}  # fmt: skip
    (card.parent / "jpeg.yaml").write_text(yaml.safe_dump(suite))
    found = tuned(
        card, "out", 3, mix=str(card.parent / "jpeg.yaml"), columns=("decode",),
        profile="pillow_bilinear_fp32",
    )  # fmt: skip

    counts = [epoch.get("replaced", 0) for epoch in found["epochs"]]
    assert 0 < sum(counts) <= 9


@pytest.mark.parametrize("change", ["profile", "output", "mix"])
def test_an_edited_profile_output_or_mix_in_the_same_folder_is_refused(card, change):
    profile = card.parent / "own.yaml"
    own = {"schema": 1, "name": "own", "summary": "ours", "extends": "pillow_fp32"}
    profile.write_text(yaml.safe_dump(own))
    asked = {"profile": str(profile), "mix": "sysnoise-mix"}
    tuned(card, "out", epochs=1, **asked)
    if change == "profile":
        profile.write_text(yaml.safe_dump(own | {"resize": {"interpolation": "nearest"}}))
    elif change == "output":
        spec = yaml.safe_load(card.read_text())
        spec["output"]["kind"] = "probabilities"
        card.write_text(yaml.safe_dump(spec))
    else:
        asked["columns"] = ("decode",)

    with pytest.raises(UserError, match="out holds another fine-tuning"):
        tuned(card, "out", epochs=1, **asked)


def test_a_suite_brings_its_training_stack_unless_one_is_named(card):
    words = ["finetune", "--model", card, "--data", card.parent / "data", "--epochs", "1"]
    words += ["--batch", "8", "--threads", "1", "--out"]
    found = []
    for number, more in enumerate(
        (["--mix", "sysnoise-mix"], ["--mix", "sysnoise-mix", "--profile", "opencv_fp32"], [])
    ):
        out = card.parent / f"out{number}"
        assert cli.main([*map(str, [*words, out]), *more]) == 0
        found.append(json.loads((out / "summary.json").read_text())["settings"]["profile"])

    own = load_suite("sysnoise-mix").spec.train
    assert found == [own, "opencv_fp32", "pillow_fp32"] and own != "pillow_fp32"


@pytest.mark.parametrize("text", ["{}", "{no", '{"module": "os:getcwd", "weights": null}'])
def test_a_card_that_names_another_file_imports_nothing(card, text):
    spec = yaml.safe_load(card.read_text()) | {"model": "module.json"}
    card.write_text(yaml.safe_dump(spec))
    (card.parent / "module.json").write_text(text)

    with pytest.raises(ModelError, match=r"module\.json: not an ONNX model") as error:
        tuned(card, "out")
    assert len(str(error.value).splitlines()) == 1


# A module named by its Python path


MODULE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 3, 4, 1, bias=False)
        self.norm = torch.nn.BatchNorm2d(6)
        self.drop = torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(6, 3)
    def forward(self, x):
        return self.head(self.drop(torch.relu(self.norm(self.conv(x))).mean((2, 3))))
def broken():
    raise RuntimeError("no weights at hand")
def number():
    return 3
"""


@pytest.fixture
def module(card, monkeypatch):
    """A package in the current folder, and a card that names no file."""
    (card.parent / "own_net.py").write_text(MODULE)
    monkeypatch.chdir(card.parent)
    bare = card.parent / "bare.yaml"
    spec = yaml.safe_load(card.read_text())
    bare.write_text(yaml.safe_dump({key: value for key, value in spec.items() if key != "model"}))
    yield bare
    sys.modules.pop("own_net", None)


def test_a_module_learns_and_is_written_with_a_card(module):
    summary = tuned(module, "out", 12, **MIX, module="own_net:Net")

    out = module.parent / "out"
    assert summary["accuracy"] == 1
    kinds = {node.op_type for node in onnx.load(str(out / "model.onnx")).graph.node}
    assert {"Conv", "BatchNormalization", "Gemm"} <= kinds and "Dropout" not in kinds
    assert load_card(out / "model.yaml").spec.name == "colors_mix"


def test_a_module_draws_by_the_seed_and_leaves_the_callers_generator(module):
    """With dropout; the same seed gives the same bits."""
    import torch

    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    own = {"module": "own_net:Net", "learning_rate": 1e-12}
    for out, seed in {"0": 0, "again": 0, "1": 1}.items():
        tuned(module, out, 1, seed=seed, **own)

    assert torch.rand(1) == wanted
    files = [(module.parent / out / "model.onnx").read_bytes() for out in ("0", "again", "1")]
    assert files[0] == files[1] != files[2]
    assert heads(module.parent / "0").tolist() != heads(module.parent / "1").tolist()


def heads(folder):
    """The weights of the linear layer, the only ones of their shape."""
    values = held(folder).values()
    (found,) = [one for inputs in values for one in inputs if np.shape(one) == (3, 6)]
    return found


def test_an_edited_module_in_the_same_folder_is_refused(module):
    tuned(module, "out", 1, module="own_net:Net")
    (module.parent / "own_net.py").write_text(MODULE.replace("0.2", "0.3"))

    with pytest.raises(UserError, match="out holds another fine-tuning"):
        tuned(module, "out", 1, module="own_net:Net")


def test_steps_of_one_image_are_for_networks_without_statistics(module):
    (module.parent / "own_net.py").write_text(MODULE.replace("BatchNorm2d(6)", "Identity()"))
    found = tuned(module, "plain", 1, module="own_net:Net", batch=1)

    assert found["epochs"][0]["loss"] > 0


@pytest.mark.parametrize("how", [{"batch": 1}, {"limit": 2}])
def test_statistics_need_two_images_at_a_time(card, how):
    message = "from at least 2 examples at a time, got 1; take more, or keep the statistics"
    with pytest.raises(ModelError, match=message):
        tuned(card, "out", 1, held_out=0.5, **how)

    assert tuned(card, "kept", 1, held_out=0.5, statistics="keep", **how)["epochs"][0]["loss"] > 0


def test_a_module_starts_from_its_weights(module, monkeypatch):
    import torch

    monkeypatch.syspath_prepend(module.parent)
    net = importlib.import_module("own_net").Net()
    torch.nn.init.constant_(net.head.weight, 0.25)
    torch.save(net.state_dict(), module.parent / "weights.pt")
    finetune(
        module, "data", "out", epochs=1, learning_rate=1e-12, threads=1, held_out=0.25,
        module="own_net:Net", weights="weights.pt", statistics="keep",
    )  # fmt: skip

    assert heads(module.parent / "out") == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("own_net:Missing", "own_net:Missing cannot be made: AttributeError"),
        ("nowhere_at_all:Net", "cannot be made: ModuleNotFoundError"),
        ("own_net:broken", "cannot be made: RuntimeError: no weights at hand"),
        ("own_net:number", "makes no torch.nn.Module, but a int"),
    ],
)
def test_what_is_no_module_is_refused(module, named, message):
    with pytest.raises(ModelError, match=message):
        tuned(module, "out", module=named)


# Augmentation


def test_augmentation_by_hand():
    """Rows 0 to 5 and columns of one value; shifted by one, the edge is mirrored."""
    value = np.arange(36, dtype=np.float32).reshape(1, 6, 6)
    shifted, flipped = Augmentation(shift=1), Augmentation(flip=True)
    found = {shifted.apply(value, 1, np.random.default_rng(n)).tobytes() for n in range(200)}
    wide = np.pad(value, [(0, 0), (1, 1), (1, 1)], mode="reflect")
    wanted = {
        np.ascontiguousarray(wide[:, y : y + 6, x : x + 6]).tobytes()
        for y in range(3)
        for x in range(3)
    }
    turned = [flipped.apply(value, 1, np.random.default_rng(n))[0, 0, 0] for n in range(200)]

    assert found == wanted
    assert set(turned) == {0.0, 5.0} and 70 < turned.count(5.0) < 130
    last = Augmentation(flip=True, shift=1).apply(value[0, :, :, None], 0, np.random.default_rng(0))
    assert last.shape == (6, 6, 1)


@pytest.mark.parametrize("word", ["flop", "shift", "shift:", "shift:0", "shift:-1", "shift:1.5"])
def test_another_augmentation_is_refused(word):
    with pytest.raises(UserError, match=f"--augment {word}: flip or shift:N expected"):
        Augmentation.parse([word])


# Refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ("resize",)}, "name it: --mix SUITE"),
        ({"option": ("resize=pil-nearest",)}, "name it: --mix SUITE"),
        ({"mix": "sysnoise-mix", "option": ("resize",)}, "--option resize: COLUMN=NAME expected"),
        ({"draw": "batch"}, "--draw: nothing is drawn; name a suite"),
        ({"mix": "sysnoise-mix", "draw": "step"}, "--draw: unknown draw 'step'"),
        ({"weights": "w.pt"}, "--weights are a module's"),
        ({"module": "package.file"}, "package.file:factory expected"),
        ({"augment": ("turn",)}, "--augment turn"),
        ({"statistics": "guess"}, "--statistics: torch_finetuner offers learn, keep"),
        ({"learning_rate": 0.0}, "the learning rate must be above 0"),
        ({"augment": ("shift:32",)}, "shift:32: less than the side, 32, expected"),
        (
            {"mix": "sysnoise-mix", "option": ("resize=pil-nearest", "resize=pil-bicubic")},
            "a column is named twice",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(card, options, message):
    with pytest.raises(UserError, match=message) as error:
        tuned(card, "out", 1, **options)
    assert len(str(error.value).splitlines()) == 1


def test_a_network_of_single_samples_cannot_learn_statistics(card):
    tiny.card(card.parent, network(batch=1))
    with pytest.raises(ModelError, match="takes one sample at a time"):
        tuned(card, "out")

    assert tuned(card, "kept", 1, statistics="keep")["epochs"]
