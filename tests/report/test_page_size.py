"""An ordinary report is small enough to be sent by mail: measured on real photographs."""

import contextlib
import importlib.util
import io

import pytest
from made_pairs import pair
from shared_data import shared

from simulator import cli
from simulator.report import page

MANY = 200_000


@pytest.mark.prove
@pytest.mark.parametrize("resize", ["opencv-bilinear", "opencv-nearest"])
def test_the_page_of_eight_photographs_is_under_two_megabytes(opened, tmp_path, resize):
    """All pictures included, of a stack that differs in four axes of the input; charts are drawn.

    A photograph of 224 x 224 takes 0.1 MB as a PNG, a third more in the page; the page of this run
    had 7.1 MB while it contained the whole of plotly and each picture of 512 pixels.
    """
    folder = tmp_path / "run"
    words = ["--train", "pillow_fp32", "--deploy", "ascend_nv12_int8", "--limit", "8"]
    words += ["--set", f"deploy.resize={resize}", "--quick"]
    words += ["--data", str(shared("imagenet") / "val50"), "--out", str(folder)]
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(words) == 0
    place = folder / "report.html"

    assert place.stat().st_size < 2_000_000
    tab, wrong = opened(place)
    views = ["any", "all of deployment", "decoder", "color", "resize"]
    assert tab.locator("#looks canvas").count() == len(views)
    assert tab.get_by_role("radio", name="resize alone").count() >= 1
    drawn = "(e) => e.every((one) => one.querySelector('svg.main-svg'))"
    assert tab.locator("[data-figure]").evaluate_all(drawn)
    assert wrong == []


def test_the_page_of_many_made_up_records_is_small(tmp_path):
    """A run of eight samples written again and again; of a million, see docs/scale.md."""
    few = pair(tmp_path / "few", [0, 1, 2, 0] * 2, [0, 1, 2, 1] * 2, [0, 1, 2, 0] * 2)
    spec = importlib.util.spec_from_file_location("bench_large", "tools/bench_large.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.enlarged(few, MANY, tmp_path / "many")

    written = page.write(tmp_path / "many")

    assert written.stat().st_size < 15_000_000
    text = written.read_text(encoding="utf-8")
    assert f"{MANY // 2:,} image" in text and "they are in records.parquet" in text
