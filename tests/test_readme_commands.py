"""Every command line of the README that shows no output runs as it is printed.

What its names stand for is made first: photographs with classes, two cards of one small network, an
audit and its bundle, a recording, two runs. A command on the reader's own data gets that network as
its model where it names none; what the built-in one prints, test_readme.py holds against the pages.
Of all backends two are loaded: the others are in testing/test_backends.py.
"""

import hashlib
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
import yaml
from onnx import helper
from onnxruntime.quantization import quantize_dynamic
from PIL import Image
from warm import command, ended

from simulator import cli, registry

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
TABLE = re.findall(r"`(simulate [^`]*)`", TEXT)
SHOWN = [
    line
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in re.findall(r"^simulate (?:.*\\\n)*.*$", block, re.MULTILINE)
]
CLASSES = 1000
APP = """import sys
import numpy as np
from eval import preprocess
np.save(sys.argv[4], preprocess(sys.argv[2])[..., ::-1].transpose(2, 0, 1)[None])
"""
AUDIT = {
    "schema": 1, "name": "photographs", "summary": "May it be shipped?", "train": "pillow_fp32",
    "deploy": {"nv12": "nv12_fp32"}, "limit": 8,
    "rules": [{"fail_on": "flip_rate > 50%", "because": "half of the answers must stay"}],
}  # fmt: skip


def network():
    """Convolution, normalization, a pool and a linear layer to as many classes as ImageNet has."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="first", pads=[1] * 4, strides=[4, 4]),
        helper.make_node("BatchNormalization", ["c1", "s", "b", "m", "v"], ["n1"], name="norm"),
        helper.make_node("Relu", ["n1"], ["r1"]),
        helper.make_node("GlobalAveragePool", ["r1"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="last"),
    ]
    held = {"w1": rng.normal(0, 0.3, (6, 3, 3, 3)), "w3": rng.normal(0, 0.3, (6, CLASSES))}
    held |= {"b3": np.zeros(CLASSES), "s": np.ones(6), "b": np.zeros(6), "m": np.zeros(6)}
    held |= {"v": np.ones(6)}
    arrays = {name: value.astype(np.float32) for name, value in held.items()}
    return tiny.model(nodes, {"x": ["n", 3, 32, 32]}, {"y": ["n", CLASSES]}, arrays)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    images = registry.backend("foolbox").offers[0].make({}).files()
    for name in ("val", "train"):
        (folder / name).mkdir()
        rows = ["file,index"]
        for file, label in images[:8] if name == "val" else images:
            small(file).save(folder / name / file.name)
            rows.append(f"{file.name},{label}")
        (folder / name / "labels.csv").write_text("\n".join(rows) + "\n")
    tiny.card(folder, network())
    (folder / "labels.txt").write_text("".join(f"class {n}\n" for n in range(CLASSES)))
    spec = yaml.safe_load((folder / "card.yaml").read_text())
    for name in ("a", "b", "model"):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec | {"name": name}))
    recorded(folder / "board", [file for file, _ in images[:2]])
    (folder / "audit.yaml").write_text(yaml.safe_dump(AUDIT))
    (folder / "profiles").symlink_to(ROOT / "profiles")
    own_files(folder)
    return folder


def own_files(folder):
    """A transform, a program and two files of one network, as somebody has them."""
    text = (ROOT / "docs" / "example" / "eval.py").read_text()
    (folder / "eval.py").write_text(text.replace("224, 224", "32, 32"))
    (folder / "app").write_text(f"#!{sys.executable}\n{APP}")
    (folder / "app").chmod(0o755)
    shutil.copy(folder / "model.onnx", folder / "net.onnx")
    card = (folder / "card.yaml").read_text().replace("model.onnx", "net.onnx")
    (folder / "net.yaml").write_text(card)
    quantize_dynamic(folder / "net.onnx", folder / "net_int8.onnx")


def small(file):
    """A photograph in 96 x 96 pixels."""
    return Image.open(file).resize((96, 96))


def recorded(folder, files):
    """What a user of Pillow writes for the network, and its recording."""
    folder.mkdir()
    digest = hashlib.sha256((folder.parent / "model.onnx").read_bytes()).hexdigest()
    arrays = {}
    for file in files:
        small(file).save(folder / file.name)
        image = (
            Image.open(folder / file.name).convert("RGB").resize((32, 32), Image.Resampling.BICUBIC)
        )
        arrays[file.name] = ((np.asarray(image, np.float32) - 127) / 64).transpose(2, 0, 1)[None]
    np.savez(folder / "board.npz", **arrays)
    spec = {
        "schema": 1, "name": "board", "device": "a board", "kind": "tensors", "file": "board.npz",
        "match": "name", "model": digest,
    }  # fmt: skip
    (folder / "recording.yaml").write_text(yaml.safe_dump(spec))


@pytest.fixture(scope="module")
def finished(world):
    """What other commands leave: two runs, a bundle, and a run that a signal ended."""
    pair = ["--train", "pillow_fp32", "--deploy", "nv12_fp32", "--model", "a.yaml", "--data", "val"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        for day in ("monday", "tuesday"):
            assert cli.main([*pair, "--out", f"runs/{day}"]) == 0
        ended(signal.SIGKILL, "runs/NAME", "manifest.json", 1, *pair, "--out", "runs/NAME")
        assert cli.main(["audit", "audit.yaml", "--out", "audited"]) == 0
        shutil.copy("audited/bundle.zip", "bundle.zip")
    return world


@pytest.mark.prove
@pytest.mark.parametrize("line", [*TABLE, *SHOWN])
def test_it_runs_as_it_is_printed(line, finished, monkeypatch):
    monkeypatch.chdir(finished)
    program, *words = shlex.split(line.replace("\\\n", " "))
    assert program == "simulate"
    if "--data" in words and "--model" not in words:
        words += ["--model", "model.yaml"]
    if words[0] == "diagnose" and "--limit" not in words:
        words += ["--limit", "2"]  # a program of the reader's is started for every image
    if words == ["backends", "check"]:
        words += ["pillow", "onnxruntime"]

    done = command(*words)

    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "error:" not in done.stderr
    assert done.stdout
