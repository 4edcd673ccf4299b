"""Nanoseconds of stages as one map column, from and to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ABSENT = -1
"""Nanoseconds of a stage that a stack does not have."""
MAP = pa.map_(pa.string(), pa.int64())
Ints = NDArray[np.int64]


def to_map(ns: Ints, steps: Sequence[str]) -> pa.MapArray:
    """Return a map for each row.

    Args:
        ns: (rows, steps); :data:`ABSENT` where a row has no such step.
        steps: the names of the columns.
    """
    there = ns != ABSENT
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    names = pa.array(list(steps), pa.string()).take(pa.array(np.nonzero(there)[1]))
    return pa.MapArray.from_arrays(pa.array(ends), names, pa.array(ns[there], pa.int64()))


def from_map(
    column: pa.ChunkedArray | pa.Array, steps: Sequence[str] | None = None
) -> dict[str, Ints]:
    """Return (rows,) of each step that any row has; :data:`ABSENT` where a row has it not.

    Args:
        column: of maps; null is no step.
        steps: those that are wanted, in this order; every one that is there by default.
    """
    found: dict[str, Ints] = {}
    rows, at = len(column), 0
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        offsets = np.asarray(chunk.offsets)
        keys, values = (
            part.slice(offsets[0], offsets[-1] - offsets[0]) for part in (chunk.keys, chunk.items)
        )
        row = np.repeat(np.arange(at, at + len(chunk)), np.diff(offsets))
        encoded = keys.dictionary_encode()
        codes, taken = np.asarray(encoded.indices), np.asarray(values)
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            own = found.setdefault(name, np.full(rows, ABSENT, np.int64))
            own[row[codes == code]] = taken[codes == code]
        at += len(chunk)
    order = list(found) if steps is None else [step for step in steps if step in found]
    return {name: found[name] for name in order}


def total(stages: Mapping[str, Ints]) -> Ints:
    """Return (rows,) nanoseconds of all stages together; (0,) where there is no stage.

    Args:
        stages: by name (rows,), see :func:`from_map`.
    """
    own = [np.where(ns == ABSENT, 0, ns) for ns in stages.values()]
    return np.sum(own, axis=0, dtype=np.int64) if own else np.zeros(0, np.int64)
