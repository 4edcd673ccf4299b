"""The table of train option x test option, on answers that can be counted."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import decoder_table

YES, NO = True, False


def test_answers_are_sorted_by_sample_and_the_training_stack_is_left_out():
    rows = [("train", "a", NO), ("decode/x", "b", NO), ("decode/x", "a", YES)]
    records = pa.Table.from_pylist(
        [dict(zip(("side", "sample", "correct"), row, strict=True)) for row in rows]
    )

    assert {k: v.tolist() for k, v in decoder_table.answers(records).items()} == {"x": [YES, NO]}


def test_the_tables_by_hand(capsys):
    """Seeds of 50 % and 100 %: 75 ± 35.36; options of 75 % and 25 %: std 35.36; no gain: 0 to 0."""
    half, whole, none = (np.array(one) for one in ([YES, NO], [YES, YES], [NO, NO]))
    found = {
        "one": [{"x": half, "y": half}, {"x": whole, "y": none}],
        "two": [{"x": half, "y": whole}, {"x": whole, "y": whole}],
    }

    decoder_table.table(found, ["x", "y"])
    decoder_table.gains(found, ["x", "y"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| one | 75.00 ± 35.36 | 25.00 ± 35.36 | 50.00 | 35.36 | 2 |"
    assert lines[3] == "| two | 75.00 ± 35.36 | 100.00 ± 0.00 | 87.50 | 17.68 | 2 |"
    assert lines[6] == "| two | +0.00 (+0.00 to +0.00) | +75.00 (+50.00 to +100.00) |"
