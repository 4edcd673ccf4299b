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
FEW = {"--limit": "2", "--faults": "12", "--rounds": "4"}
"""What a test asks for in place of what the page does."""
BY_BIT = "130"
"""Faults for a campaign of ours: by bit it needs four for each."""
PRINTED = ("--format", "--table")
"""What a command prints of its run. One run is made for all that differ in nothing else."""
WHOLE = ("finetune", "quantize")
"""What takes the few pictures as they are."""
OF_THE_README = (ROOT / "README.md").read_text("utf-8")
"""Its commands run in test_readme_commands.py."""
FOUND = sorted(set(re.findall(r"`((?:simulate|python) [^`]+)`", PAGE)))


def parted(command):
    """Return what a command does, with two samples, and what it prints of that."""
    program, *words = shlex.split(command)
    prints = [word for option in PRINTED if option in words for word in taken(words, option)]
    if program == "python":
        return (program, *words), prints
    for option, few in FEW.items():
        if option in words and not (option == "--rounds" and "auto" in words):
            own = option == "--faults" and any("$CARDS/campaign" in word for word in words)
            words[words.index(option) + 1] = BY_BIT if own else few
    if "--limit" not in words and words[0] not in WHOLE:
        words += ["--limit", "2"]
    return (program, *words), prints


def taken(words, option):
    """Take an option and its value out of a command's words."""
    at = words.index(option)
    both = words[at : at + 2]
    del words[at : at + 2]
    return both


JOBS = {}
for line in FOUND:
    if line not in OF_THE_README:
        does, prints = parted(line)
        JOBS.setdefault(does, []).append(prints)

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
    tiny_voice.speaking(voice, waveform="waveform")
    return {
        "DATA": data, "CARDS": ROOT / "tests" / "cards", "CIFAR": made, "NETS": made / "nets",
        "VOICE": voice,
    }  # fmt: skip


@pytest.mark.parametrize("job", JOBS, ids=" ".join)
def test_its_rows_can_be_made(job, places, tmp_path, monkeypatch):
    program, *words = [re.sub(r"\$(\w+)", lambda name: str(places[name[1]]), w) for w in job]
    first, *others = JOBS[job]
    if program == "python":
        printed(subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True))
    else:
        monkeypatch.chdir(tmp_path)
        printed(warm.command(*words, *first))
    for prints in others:
        (run,) = Path("runs").iterdir()
        printed(warm.command("report", run, *prints))


def printed(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout
