"""Each command of docs/papers.md runs, with two samples."""

import re
import shlex
import subprocess
import sys
import tarfile
from itertools import groupby
from pathlib import Path

import pytest
import tiny_voice
import warm
from shared_data import shared

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
FEW = {"--limit": "2", "--faults": "130", "--rounds": "4"}
"""What a test asks for in place of what the page does."""
WHOLE = ("finetune", "quantize")
"""What takes the few pictures as they are."""
OF_THE_README = (ROOT / "README.md").read_text("utf-8")
"""Its commands run in test_readme_commands.py."""
FOUND = sorted(set(re.findall(r"`((?:simulate|python) [^`]+)`", PAGE)))
COMMANDS = [command for command in FOUND if command not in OF_THE_README]

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Return what the names of the page stand for: networks that have learned nothing yet."""
    import torch
    import train_bccd
    import train_cifar

    data, made = shared("models").parent, tmp_path_factory.mktemp("papers")
    with tarfile.open(data / "cifar10" / "cifar10_test_jpeg.tar") as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        files = sorted((one for one in tar if one.isfile()), key=lambda one: one.name)
        for _, of in groupby(files, key=lambda one: Path(one.name).parent):
            tar.extractall(made, [*of][:8])
    (made / "train").symlink_to(made / "test")
    torch.manual_seed(0)
    names = sorted(path.name for path in (made / "test").iterdir())
    for name in ("resnet-small", "vit-small"):
        recipe = f"{{recipe: {name}, seed: 0}}"
        train_cifar.write(
            train_cifar.NETWORKS[name].make(), names, made / "nets" / name, name, recipe
        )
    first, second = train_bccd.First(), train_bccd.Second()
    first.start(data / "models" / "bccd_retinanet_320x416.onnx")
    detector = made / "nets" / "faster_rcnn"
    detector.mkdir()
    train_bccd.write(first, second, detector)
    voice = made / "voice"
    voice.mkdir()
    tiny_voice.voice(voice)
    return {
        "DATA": data, "CARDS": ROOT / "tests" / "cards", "CIFAR": made, "NETS": made / "nets",
        "VOICE": voice,
    }  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_row_can_be_made(command, places, tmp_path, monkeypatch):
    words = [re.sub(r"\$(\w+)", lambda name: str(places[name[1]]), w) for w in shlex.split(command)]
    program, *words = words
    if program == "python":
        done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    else:
        monkeypatch.chdir(tmp_path)
        done = warm.command(*fewer(words))

    assert done.returncode == 0, done.stderr
    assert done.stdout


def fewer(words):
    """Return the words of a command for two samples."""
    found = list(words)
    for option, few in FEW.items():
        if option in words and not (option == "--rounds" and "auto" in words):
            found[found.index(option) + 1] = few
    return found if "--limit" in words or words[0] in WHOLE else [*found, "--limit", "2"]
