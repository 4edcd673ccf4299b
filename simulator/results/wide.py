"""The records of a run as one wide table: a row for each sample, with columns for each stack."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from simulator.results.times import ABSENT, from_map, total

KEY = ("sample", "condition", "trial")
ONCE = ("label", "skipped")
"""Columns that are the same for all stacks."""


def wide(records: pa.Table) -> pa.Table:
    """Return a row for each sample, and for each condition and trial where there are some.

    Args:
        records: see :func:`simulator.results.record_table.schema`.

    Returns:
        ``sample``, ``label`` where the task has classes, ``skipped``; then of every stack what the
        records have of it, ``train_prediction``, and its times in ms, ``train_decode_ms`` to
        ``train_total_ms``. ``condition`` and ``trial`` are left out where there was no condition.
    """
    if records["condition"].null_count == len(records):
        records = records.drop_columns(["condition", "trial"])
    keys = [name for name in KEY if name in records.column_names]
    once = [name for name in ONCE if name in records.column_names]
    rows: dict[tuple[object, ...], int] = {}
    for key in zip(*(records[name].to_pylist() for name in keys), strict=True):
        rows.setdefault(key, len(rows))
    sides = pc.unique(records["side"]).to_pylist()
    found: dict[str, pa.ChunkedArray] = {}
    for side in sides:
        own = records.filter(pc.equal(records["side"], side))
        at = np.full(len(rows), -1)
        for number, key in enumerate(zip(*(own[name].to_pylist() for name in keys), strict=True)):
            at[rows[key]] = number
        own = own.take(pa.array(at, mask=at < 0))
        for name in (*keys, *once):
            kept = found.get(name)
            found[name] = own[name] if kept is None else pc.coalesce(kept, own[name])
        rest = [name for name in own.column_names if name not in (*keys, *once, "side", "ns")]
        found |= {f"{side}_{name}": own[name] for name in rest}
        found |= {f"{side}_{step}_ms": ms for step, ms in _times(own["ns"]).items()}
    ordered = sorted(found, key=lambda name: name not in (*keys, *once))
    return pa.table({name: found[name] for name in ordered})


def _times(column: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Milliseconds of each stage and of all together; null where a sample has it not."""
    stages = from_map(column)
    if not stages:
        return {}
    absent = {name: ns == ABSENT for name, ns in stages.items()}
    absent["total"] = np.all([*absent.values()], axis=0)
    stages["total"] = total(stages)
    return {name: pa.array(ns / 1e6, mask=absent[name]) for name, ns in stages.items()}
