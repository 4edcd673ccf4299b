"""The worst silent corruptions, said in words and drawn."""

import json

import campaigns
import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
from PIL import Image

from simulator import cli
from simulator.faults.experiment import Faults
from simulator.report.page import sections_of
from simulator.report.reading import read
from simulator.report.sections.style import error_bars
from simulator.tasks.detection.impact import DetectionImpact
from simulator.tasks.impact import WITH, WITHOUT

LEGEND = 40
"""Rows at the bottom of a picture in which its legend is."""


def campaign(folder, task, out, **fields):
    """Run one on 60 faults in the highest bits of the weights, on four scenes."""
    if task == "classification":
        card, data = tiny.card(folder), tiny.data(folder / "data", 2)
    else:
        card = tiny_tasks.card(folder, task)
        data = tiny_tasks.data(folder / "data", task)
    document = campaigns.document(folder, **({"faults": 60, "bits": [31, 30, 29]} | fields))
    given = {"model": card, "data": data, "overrides": campaigns.NO_FUSION, "overwrite": True}
    return campaigns.run(folder, document, out, **given)


def rows(out):
    found = pq.read_table(out / "faults.parquet").to_pylist()
    return {(row["stack"], row["fault"]): row for row in found}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A campaign on each task: its folder, the rows by fault, and the six that are drawn."""
    found = {}
    for task in ("classification", "detection", "segmentation"):
        folder = tmp_path_factory.mktemp(task)
        worst = campaign(folder, task, folder / "run").summary.stacks["deploy"].worst
        found[task] = folder, rows(folder / "run"), worst
    return found


@pytest.mark.parametrize("task", ["classification", "detection", "segmentation"])
def test_the_worst_are_drawn_and_stand_in_the_page(made, task):
    folder, _, worst = made[task]
    run = folder / "run"
    assert cli.main(["report", str(run)]) == 0
    page = (run / "report.html").read_text(encoding="utf-8")

    assert len(worst) > 6
    assert [one.picture is not None for one in worst] == [True] * 6 + [False] * (len(worst) - 6)
    assert page.count("data:image/jpeg;base64,") == 6
    for one in worst[:6]:
        assert f"fault {one.fault}, {one.sample}: {one.layer}, weights, element" in page
        assert Image.open(run / one.preview).format == "JPEG"
        wide, high = Image.open(run / one.picture).size
        assert (wide > 2 * high) == (task == "segmentation")  # 3 panels


def test_boxes_are_said_in_words_and_drawn_green_and_with_the_fault_red(made):
    """The rows were written while the campaign ran; the pictures are of a second inference."""
    folder, found, worst = made["detection"]
    for one in worst[:6]:
        row = found["deploy", one.fault]
        golden = [row[f"{name}_golden"] for name in ("tp", "fp", "fn")]
        assert one.under == f"{row['tp']} found, {row['fp']} false, {row['fn']} missed"
        assert one.without == "{} found, {} false, {} missed".format(*golden)
        assert one.index == row["index"]
        drawn = np.array(Image.open(folder / "run" / one.picture).convert("RGB"))[:-LEGEND]
        kinds = [bool((drawn == color).all(axis=-1).any()) for color in (WITHOUT, WITH)]
        assert kinds[0] == (golden[0] + golden[1] > 0)
        assert kinds[1] or row["tp"] + row["fp"] == 0


def test_classes_are_said_with_their_margins(made):
    folder, found, worst = made["classification"]
    names = (folder / "labels.txt").read_text().split()
    for one in worst[:6]:
        row = found["deploy", one.fault]
        assert one.under == f"{names[row['prediction']]} (margin {row['margin']:.2f})"
        assert one.without.startswith(one.sample.partition("/")[0])  # the folder is the class


def test_the_pictures_of_an_earlier_run_do_not_stay(tmp_path):
    out = tmp_path / "run"
    campaign(tmp_path, "detection", out)
    assert any((out / "events").iterdir())
    (out / "clips").mkdir()

    campaign(tmp_path, "detection", out, bits=[0])

    assert not (out / "events").exists()
    assert not (out / "clips").exists()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["stacks"]["deploy"]["worst"] == []


def test_error_bars_reach_to_the_ends():
    drawn = error_bars([0.5, None], [(0.25, 0.625), (None, None)], width=4)

    assert drawn["array"] == [0.125, 0]
    assert drawn["arrayminus"] == [0.25, 0]
    assert drawn["width"] == 4
    assert not drawn["symmetric"]


def test_the_page_draws_severities_by_bit_and_precision_over_recall(made):
    """A bar is the mean of a column over the silent corruptions of that bit, by the rows."""
    folder, found, _ = made["detection"]
    shown = {one.key: one for one in sections_of(read(folder / "run"))}
    _, _, *severe = shown["by_bit"].panels
    assert len(severe) == len(DetectionImpact.shown)
    for panel, column in zip(severe, DetectionImpact.shown, strict=True):
        (bars,) = panel.figure.data
        for bit, height in zip(bars["x"], bars["y"], strict=True):
            silent = [
                row[column] for row in found.values() if row["sdc"] and row["bit"] == [int(bit)]
            ]
            known = [value for value in silent if value is not None]
            assert height == (pytest.approx(np.mean(known)) if known else None)
    (panel, *_) = shown["curves"].panels
    clean, faulty = (trace["y"] for trace in panel.figure.data)
    assert len(clean) == len(faulty) == 101
    assert sum(clean) > sum(faulty)
    summary = read(folder / "run").summary
    _, *lines = Faults().printed([summary], "csv", "bits").splitlines()
    assert [line.split(",")[1] for line in lines] == ["31", "30", "29"]
    assert "curves" not in {one.key for one in sections_of(read(made["classification"][0] / "run"))}
