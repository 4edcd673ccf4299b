"""Every command line of the README that shows no output runs as it is printed.

What its names stand for is made first: photographs with classes, two cards of one small network, an
audit and its bundle, a recording, two runs.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
import yaml
from ending import ended
from onnx import helper
from PIL import Image

from simulator import cli, registry
from simulator.data import example

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
TABLE = re.findall(r"`(simulate [^`]*)`", TEXT)
SHOWN = [
    command
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for command in re.findall(r"^simulate (?:.*\\\n)*.*$", block, re.MULTILINE)
]
CLASSES = 1000
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
            shutil.copy(file, folder / name)
            rows.append(f"{file.name},{label}")
        (folder / name / "labels.csv").write_text("\n".join(rows) + "\n")
    tiny.card(folder, network())
    (folder / "labels.txt").write_text("".join(f"class {n}\n" for n in range(CLASSES)))
    spec = yaml.safe_load((folder / "card.yaml").read_text())
    for name in ("a", "b", "model"):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec | {"name": name}))
    recorded(folder / "board", [file for file, _ in images[:4]])
    (folder / "audit.yaml").write_text(yaml.safe_dump(AUDIT))
    (folder / "profiles").symlink_to(ROOT / "profiles")
    return folder


def recorded(folder, files):
    """What a user of Pillow writes for the built-in network, and its recording."""
    folder.mkdir()
    card = example.model_card()
    network = card.parent / yaml.safe_load(card.read_text())["model"]
    digest = hashlib.sha256(network.read_bytes()).hexdigest()
    arrays = {}
    for file in files:
        shutil.copy(file, folder)
        image = Image.open(file).convert("RGB")
        scale = 256 / min(image.size)
        image = image.resize([int(side * scale) for side in image.size], Image.Resampling.BICUBIC)
        left, top = ((side - 224) // 2 for side in image.size)
        pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
        arrays[file.name] = ((pixels - 127) / 128).transpose(2, 0, 1)[None]
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
@pytest.mark.parametrize("command", [*TABLE, *SHOWN])
def test_it_runs_as_it_is_printed(command, finished):
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", command], cwd=finished, capture_output=True, text=True,
        env=os.environ | {"PATH": path}, check=False,
    )  # fmt: skip

    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "error:" not in done.stderr
    assert done.stdout
