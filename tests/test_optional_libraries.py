"""What only one feature needs is in an extra: a line names it before anything is run."""

import datacards
import pytest
import tiny_tasks
from installing import uninstall

from simulator import cli
from simulator.cli.completion import shtab
from simulator.contract.installing import install
from simulator.data import outlines
from simulator.errors import MissingLibrary
from simulator.tasks.detection import metric

PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32")


@pytest.fixture
def detect(monkeypatch, tmp_path):
    """Run a tiny detector without pycocotools; returns the exit code and where its run would be."""
    for library in (metric.coco, metric.cocoeval):
        uninstall(monkeypatch, library)
    card, out = tiny_tasks.card(tmp_path / "card"), tmp_path / "run"

    def run(data):
        given = ("--model", str(card), "--data", str(data), "--out", str(out))
        return cli.main([*PAIR, *given]), out

    return run


def hint(capsys, extra):
    """Return whether the only line of errors names the extra."""
    (line,) = capsys.readouterr().err.splitlines()
    return line.startswith("error: ") and line.endswith(f"; try: {install(extra)}")


def test_completion_says_how_to_get_shtab(monkeypatch, capsys):
    uninstall(monkeypatch, shtab())

    assert cli.main(["--print-completion", "bash"]) == cli.USER_ERROR
    assert hint(capsys, "completion")


def test_annotated_boxes_say_how_to_get_pycocotools_before_anything_is_run(
    detect, tmp_path, capsys
):
    code, out = detect(tiny_tasks.data(tmp_path / "data"))

    assert code == cli.USER_ERROR and not out.exists()
    assert hint(capsys, "coco")


def test_boxes_that_nobody_annotated_need_no_pycocotools(detect, tmp_path, capsys):
    card = tiny_tasks.data(tmp_path / "data")
    code, out = detect(card.parent / "images")

    assert code == cli.PASS and (out / "summary.json").is_file()


def test_a_task_is_not_failed_for_a_library_that_is_missing(monkeypatch, capsys):
    uninstall(monkeypatch, metric.cocoeval)

    assert cli.main(["prove", "task", "detection"]) == cli.USER_ERROR
    assert hint(capsys, "coco")


def test_outlines_say_how_to_get_pycocotools(monkeypatch, tmp_path):
    uninstall(monkeypatch, outlines.rasterizer)
    datacards.images(tmp_path, "six.jpg", size=(6, 6))
    listed = {1: ("six.jpg", 6, 6)}
    card = datacards.coco(tmp_path, listed, [], task="segmentation", background=None)

    with pytest.raises(MissingLibrary, match="pycocotools") as missing:
        datacards.load(card, "cat")
    assert str(missing.value).endswith(install("coco"))
