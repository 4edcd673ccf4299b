"""Latencies from a device's log: a CSV or Parquet table with every sample in each round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.digests import sha256
from simulator.errors import DataError, shortened
from simulator.files import TEXT, check_file
from simulator.latency.times import TOTAL, Times
from simulator.results.times import Ints

Mask = NDArray[np.bool_]
_LONGEST = 10**15
"""Nanoseconds, 11 days; a larger value must be in another unit."""
_NAMED = 5
"""An error names at most this many missing samples."""
SAMPLE = "sample"


def columns() -> tuple[str, ...]:
    """Return the columns of nanoseconds that a log may have: the total, and each stage."""
    return (f"{TOTAL}_ns", *(f"{step}_ns" for step in timed_steps()))


def load_times(path: Path, items: Sequence[Item]) -> Times:
    """Read the latencies that a device has logged.

    The table has a row per sample and round: ``image`` or ``sample``, the path below the data
    folder; optionally ``round``, an integer (only the order of its values matters); and whole
    nanoseconds, either ``total_ns`` or one or more of ``decode_ns``, ``color_ns``, ``resize_ns``,
    ``geometry_ns``, ``normalize_ns``, ``infer_ns``, ``postprocess_ns``, whose sum is then the
    total. Without ``round`` the n-th row of a sample is its n-th round. Rows of samples that are
    not evaluated are ignored.

    Args:
        path: a ``.parquet`` file, or a CSV file with a header.
        items: the samples.

    Raises:
        DataError: it is not such a table, lacks a sample in a round, or has an invalid latency.
    """
    table, stages = check_table(path)
    at, rounds = _places(path, table, items)
    found = {name: _column(path, table, name, at, rounds, len(items)) for name in stages}
    source = f"{path.name} (sha256 {(sha256(path) or '')[:12]})"
    if stages[0] == f"{TOTAL}_ns":
        return Times(found[f"{TOTAL}_ns"], {}, source)
    return Times(
        np.sum(list(found.values()), axis=0),
        {name.removesuffix("_ns"): values for name, values in found.items()},
        source,
    )


def check_table(path: Path) -> tuple[pa.Table, list[str]]:
    """Read the table and check its columns, but not its rows.

    Returns:
        The table, and the names of its columns of nanoseconds.

    Raises:
        DataError: it is not such a table.
    """
    table = _table(path)
    stages = [name for name in columns() if name in table.column_names]
    if not stages or (stages[0] == f"{TOTAL}_ns" and len(stages) > 1):
        raise DataError(f"{path}: needs either {TOTAL}_ns or columns of stages, such as infer_ns")
    return table, stages


def _table(path: Path) -> pa.Table:
    try:
        check_file(path, TEXT)
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, IsADirectoryError))
        why = "no such file" if missing else f"cannot be read: {error.strerror}"
        raise DataError(f"{shortened(str(path))}: {why}") from error
    try:
        table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a table: {' '.join(str(error).split())}") from error
    names, known = table.column_names, (SAMPLE, "image", "round", *columns())
    if SAMPLE in names and "image" not in names:
        names = ["image" if name == SAMPLE else name for name in names]
        table = table.rename_columns(names)
    if "image" not in names:
        raise DataError(f"{path}: no column image or {SAMPLE}; it has {', '.join(names)}")
    if odd := [name for name in names if name not in known]:
        raise DataError(f"{path}: unknown column {odd[0]!r}; known are {', '.join(known)}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path}: there are two columns {twice[0]!r}; keep one")
    if not table.num_rows:
        raise DataError(f"{path}: the table has no rows")
    return table


def _places(path: Path, table: pa.Table, items: Sequence[Item]) -> tuple[Ints, int]:
    """For each row its flat index into (rounds, samples), or -1; and the number of rounds."""
    index = {item.name: number for number, item in enumerate(items)}
    column = np.array([index.get(str(name), -1) for name in table["image"].to_pylist()], np.int64)
    wanted = column >= 0
    if "round" in table.column_names:
        given = _integers(path, table, "round", wanted)
    else:
        given = _occurrence(column)
    labels, row = np.unique(given[wanted], return_inverse=True)
    rounds = len(labels)
    places = np.full(len(column), -1, np.int64)
    places[wanted] = row * len(items) + column[wanted]
    counts = np.bincount(places[wanted], minlength=max(rounds, 1) * len(items))
    if (counts > 1).any():
        number, sample = divmod(int(np.argmax(counts > 1)), len(items))
        raise DataError(f"{path}: {items[sample].name!r} appears twice in round {labels[number]}")
    if (counts == 0).any():
        missing = np.flatnonzero(counts == 0)
        named = labels if rounds else [0]
        first = [
            f"{items[at % len(items)].name} (round {named[at // len(items)]})"
            for at in missing[:_NAMED]
        ]
        rest = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise DataError(
            f"{path}: {len(missing)} of {len(counts)} latencies are missing: "
            f"{', '.join(first)}{rest}; each of {len(items)} samples must be in every round"
        )
    return places, rounds


def _occurrence(column: Ints) -> Ints:
    """For each element, how many earlier elements have the same value."""
    order = np.argsort(column, kind="stable")
    ranked = column[order]
    start = np.searchsorted(ranked, ranked, side="left")
    found = np.empty_like(column)
    found[order] = np.arange(len(column)) - start
    return found


def _column(path: Path, table: pa.Table, name: str, at: Ints, rounds: int, n: int) -> Ints:
    ns = _integers(path, table, name, at >= 0)
    wrong = np.flatnonzero((at >= 0) & ((ns < 0) | (ns > _LONGEST)))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(f"{path}: row {row + 1}: {name}: {ns[row]} is not a latency in nanoseconds")
    found = np.empty(rounds * n, np.int64)
    found[at[at >= 0]] = ns[at >= 0]
    return found.reshape(rounds, n)


def _integers(path: Path, table: pa.Table, name: str, wanted: Mask) -> Ints:
    """A column as int64; empty cells are 0, which only rows that are not wanted may have."""
    values = table[name]
    if not pa.types.is_integer(values.type):
        raise DataError(f"{path}: {name}: integers expected, got {values.type}")
    if (empty := np.flatnonzero(wanted & values.is_null().to_numpy())).size:
        raise DataError(f"{path}: row {empty[0] + 1}: {name}: an integer expected, got nothing")
    try:
        found: Ints = values.cast(pa.int64()).fill_null(0).to_numpy()
    except pa.ArrowException as error:
        raise DataError(f"{path}: {name}: {error}") from error
    return found
