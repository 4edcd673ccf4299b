"""One row for each sample: worked out by hand."""

import pyarrow as pa

from simulator.results.record_table import schema
from simulator.results.wide import wide

COLUMNS = (pa.field("label", pa.int32()), pa.field("prediction", pa.int32()))


def record(sample, side, prediction, condition=None, trial=0, **others):
    row = {"sample": sample, "side": side, "condition": condition, "trial": trial, "label": 7}
    return {**row, "prediction": prediction, **others}


def test_a_stack_that_lacks_a_sample_has_nulls_there():
    rows = [
        record("b", "train", 1, ns=[("decode", 2_000_000), ("infer", 500_000)]),
        record("b", "deploy", 2, ns=[("infer", 3_000_000)]),
        record("a", "deploy", None, skipped="broken", failed=True),
    ]

    found = wide(pa.Table.from_pylist(rows, schema(COLUMNS)))

    own = ["prediction", "digest", "failed"]
    times = {"train": ["decode_ms", "infer_ms", "total_ms"], "deploy": ["infer_ms", "total_ms"]}
    assert found.column_names == [
        "sample", "label", "skipped",
        *(f"{side}_{name}" for side in times for name in (*own, *times[side])),
    ]  # fmt: skip
    first, second = found.to_pylist()
    assert (first["train_prediction"], first["deploy_prediction"]) == (1, 2)
    assert (first["train_decode_ms"], first["train_total_ms"]) == (2.0, 2.5)
    assert (second["sample"], second["label"], second["skipped"]) == ("a", 7, "broken")
    assert (second["train_prediction"], second["train_infer_ms"]) == (None, None)
    assert second["deploy_total_ms"] is None


def test_each_condition_and_trial_has_a_row():
    rows = [record("a", side, 1, f"fog:{n}", n) for n in range(2) for side in ("x", "y")]

    found = wide(pa.Table.from_pylist([record("a", "x", 0), *rows], schema(COLUMNS)))

    assert found.select(["condition", "trial", "x_prediction", "y_prediction"]).to_pylist() == [
        {"condition": None, "trial": 0, "x_prediction": 0, "y_prediction": None},
        {"condition": "fog:0", "trial": 0, "x_prediction": 1, "y_prediction": 1},
        {"condition": "fog:1", "trial": 1, "x_prediction": 1, "y_prediction": 1},
    ]
