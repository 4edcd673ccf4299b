"""The figures of Tables 7 and 8: the paper's own rows, and the intervals of a known difference."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tiny

from simulator import sweep
from simulator.errors import RunError

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import mix_tables
from finished import of_same_settings


@pytest.mark.parametrize(
    ("accuracies", "mean", "std"),
    [
        ([76.572, 72.168, 76.512, 72.090, 75.346, 74.072], 74.460, 2.02),
        ([76.154, 75.876, 76.344, 75.786, 76.444, 76.330], 76.156, 0.270),
        ([76.430, 76.426, 75.310], 76.055, 0.645),
        ([76.53, 76.524, 76.414], 76.489, 0.0653),
    ],
)
def test_the_papers_rows_come_out(accuracies, mean, std):
    """50,000 images, as many right as each accuracy says: Tables 7 and 8 of SysNoise."""
    count = 50_000
    right = np.arange(count) < np.array(accuracies)[:, None] / 100 * count
    found = mix_tables.figures(100 * right.mean(1))

    assert found[0] == pytest.approx(mean, abs=0.002)
    assert found[1] == pytest.approx(std, rel=0.005)


@pytest.mark.parametrize("other", [{"limit": 5}, {"limit": None}, {"data": "elsewhere"}])
def test_a_finished_run_of_other_settings_is_refused(tmp_path, other):
    card, data = tiny.card(tmp_path / "model"), tiny.data(tmp_path / "data", each=2)
    out = tmp_path / "run"
    suite = tmp_path / "one.yaml"
    suite.write_text(
        "schema: 1\nname: one\nsummary: one\ntrain: pillow_fp32\n"
        "columns: {order: {bgr: {color.order: bgr}}}\n"
    )
    (result,) = sweep(str(suite), models=[card], data=data, limit=4, out=out)
    asked = {"model": Path(card), "suite": suite, "data": data, "limit": 4, "under": None}
    of_same_settings(result.folder, **asked)

    (name,) = other
    with pytest.raises(RunError, match=f"of other settings: {name} is"):
        of_same_settings(result.folder, **asked | other)


def resampled(right):
    found = [lambda counts, one=one: counts @ one / counts.sum(1) for one in right]
    return mix_tables.resampled(found, right.shape[1])[None]


def test_several_seeds_say_by_how_much_they_differ():
    assert mix_tables.over(np.array([70.0, 71.0, 72.0]), 2) == "71.00 ± 1.00"
    assert mix_tables.over(np.array([71.25]), 2) == "71.25"


def test_a_network_against_itself_differs_by_nothing():
    tops = resampled(np.random.default_rng(0).random((6, 200)) < 0.7)

    assert mix_tables.compared(tops, tops) == [(0, (0, 0)), (0, (0, 0))]


def test_a_difference_lies_in_its_interval():
    """One spreads from 60 to 80 %, the other has 75 % everywhere."""
    random = np.random.default_rng(0)
    drawn = random.random(1000)
    wide = resampled(drawn < np.array([0.6, 0.7, 0.8])[:, None])
    even = resampled(drawn < np.array([0.75, 0.75, 0.75])[:, None])
    (spread, (low, high)), (gain, (least, most)) = mix_tables.compared(even, wide)

    assert -12 < low <= spread <= high < -8
    assert 3 < least <= gain <= most < 7
