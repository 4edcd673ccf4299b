"""Tools that go on where they were stopped take no run of other settings."""

import sys
from pathlib import Path

import pytest
import tiny

from simulator import sweep
from simulator.errors import RunError

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from finished import of_same_settings


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
