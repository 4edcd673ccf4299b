"""The table of CONTRIBUTING.md is true: every row's file, line and proof are there, and proved.

The proofs run on the example vendor's package, installed for them by its metadata.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import bearings
import pytest
from installing import VENDOR, vendor, vendor_points

from simulator.cli import main

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
OURS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
WANTED = [
    "backend", "profile", "stage", "axis", "graph pass", "condition", "task", "label kind",
    "data source", "importer", "file format", "model format", "modality", "executor", "job",
    "report section",
]  # fmt: skip


def rows():
    """The cells of each row of the first table, by what is added."""
    table = TEXT.partition("| I want to add a … |")[2].partition("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {cells[0]: cells[1:] for cells in lines}


ROWS = rows()
BOARD = {"acme_board": 1, "serial": "A7", "height": 32, "width": 32, "mean": 127.5, "std": 64}


def code(cell):
    """What stands in a cell as code."""
    return re.findall(r"`([^`]+)`", cell)


def test_there_is_a_row_for_everything_that_can_be_added():
    assert list(ROWS) == WANTED


@pytest.mark.parametrize("row", WANTED)
def test_its_file_is_there(row):
    """Where ours lie there are some, and the example's is in its package."""
    *_, ours, example = code(ROWS[row][0])
    pattern = ours.replace("NAME", "*")

    assert list(ROOT.glob(pattern)), ours
    assert (VENDOR / example).is_file(), example


@pytest.mark.parametrize("row", WANTED)
def test_its_line_is_in_both_packages(row):
    """The group has our own entries, and the example's entry is of the file that the row names."""
    group = code(ROWS[row][1])[0]
    _, points = vendor_points()
    module = code(ROWS[row][0])[-1].rpartition(".")[0].replace("/", ".")
    used = {value.partition(":")[0] for value in points[group].values()}

    if row == "profile":
        assert used == {"acme_npu.profiles"}
        assert module.startswith("acme_npu.profiles")
    else:
        assert OURS[group]
        assert module in used


@pytest.mark.parametrize("row", WANTED)
def test_its_guide_is_there(row):
    """The page, and the heading that the link names."""
    page, _, anchor = re.search(r"\(([^)]+)\)", ROWS[row][3])[1].partition("#")
    text = (ROOT / page).read_text()
    anchors = {
        re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-")
        for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }

    assert not anchor or anchor in anchors


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The package, and what proofs name by capital letters: files, and a finished run."""
    with vendor(monkeypatch, tmp_path / "site"):
        card, data = bearings.write(tmp_path)
        pair = ["--train", "acme/sensor_fp32", "--deploy", "acme/sensor_q7"]
        run = tmp_path / "run"
        assert main([*pair, "--model", str(card), "--data", str(data), "--out", str(run)]) == 0
        board = tmp_path / "board.json"
        board.write_text(json.dumps(BOARD))
        yield {
            "CARD": str(card),
            "DATA": str(data),
            "DRIVE": str(data / "drive.yaml"),
            "RUN": str(run),
            "FILE": str(board),
            "MODEL": str(bearings.plan(tmp_path)),
        }


@pytest.mark.prove
def test_every_proof_passes_for_the_example(example, capsys):
    proofs = dict.fromkeys(code(cells[2])[0] for cells in ROWS.values())

    for proof in proofs:
        command, *arguments = proof.split()
        assert command == "simulate"
        assert main([example.get(word, word) for word in arguments]) == 0, proof
        if arguments[0] == "prove":
            assert " 0 failed, 0 cannot" in capsys.readouterr().out.splitlines()[-1], proof
    assert "Grades of wear" in (Path(example["RUN"]) / "report.html").read_text()


def test_the_guides_show_the_example_as_it_is():
    """Blocks that begin with the name of a file are parts of it."""
    shown = 0
    for page in ("conditions", "modalities"):
        text = (ROOT / "docs" / f"{page}.md").read_text()
        for file, body in re.findall(r"```\w+\n# ([\w./]+)\n(.*?)```", text, re.DOTALL):
            if (VENDOR / file).is_file():
                shown += 1
                assert body in (VENDOR / file).read_text(), f"{page}: {file}"

    assert shown == 3
