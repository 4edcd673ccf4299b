"""Rounds on disk: one file per round while the run goes on, one table of all at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.contract.stage import timed_steps
from simulator.errors import RunError
from simulator.latency.stream import Round, RoundConditions
from simulator.latency.times import NEVER, TOTAL, Times, of_stages
from simulator.results.layout import ROUNDS
from simulator.results.parts import read_part
from simulator.results.store import RunWriter
from simulator.results.timed import TimedStack
from simulator.results.times import ABSENT, MAP, Ints, from_map, to_map

LATENCIES = "latencies.parquet"
_CONDITIONS = b"conditions"
SCHEMA = pa.schema(
    [
        pa.field("round", pa.int32(), nullable=False),
        pa.field("sample", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("side", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("digest", pa.string()),
        pa.field("failed", pa.string()),
        pa.field("ns", MAP),
        pa.field(f"{TOTAL}_ns", pa.int64()),
        pa.field("parts_ns", pa.list_(pa.int64())),
    ]
)
"""One row per round, stack and sample. ``failed`` is the reason of a failed inference, else null.
``ns`` has the stages that the stack or a device's log has; for a failed inference it is empty and
the total is null. ``parts_ns`` is the time until each part of an answer that comes in parts.
"""


def keep(run: RunWriter, one: Round, sides: Sequence[str], samples: Sequence[str]) -> None:
    """Write a round to disk, completely or not at all.

    Raises:
        RunError: it cannot be written.
    """
    conditions = {_CONDITIONS: json.dumps(one.conditions).encode()}
    table = _table(one, sides, samples).replace_schema_metadata(conditions)
    run.write_table(f"{ROUNDS}/{_name(one.number)}", table)


def kept(folder: Path, sides: Sequence[str], samples: Sequence[str]) -> list[Round]:
    """Return the rounds that an earlier attempt finished, in order.

    Raises:
        RunError: a file is damaged or of other samples, or a round before it is missing.
    """
    return [_round(place, sides, samples) for place in _files(folder)]


def merge(run: RunWriter, recorded: Mapping[str, Times], samples: Sequence[str]) -> None:
    """Write the table of all rounds: those measured here, and those of devices' logs.

    Args:
        run: its folder has the measured rounds, if any; the table is written to it.
        recorded: times by stack.
        samples: the names of the samples.

    Raises:
        RunError: it cannot be written, or a round cannot be read.
    """
    tables = [_read(place)[0] for place in _files(run.folder)]
    tables += [_logged(side, times, samples) for side, times in recorded.items()]
    run.write_table(LATENCIES, pa.concat_tables(tables).unify_dictionaries())


def times_of(table: pa.Table, stacks: Mapping[str, TimedStack]) -> dict[str, Times]:
    """Return the latencies of every stack, from the table of all rounds; inverse of :func:`merge`.

    Args:
        table: of :data:`SCHEMA`.
        stacks: what the summary says of each stack.

    Raises:
        ValueError: the rows of a stack are not whole rounds of the same samples, or a total is not
            the sum of its stages.
    """
    number, (sample, _), (side, names) = (
        table["round"].to_numpy(),
        _codes(table["sample"]),
        _codes(table["side"]),
    )
    total = table[f"{TOTAL}_ns"].fill_null(NEVER).to_numpy()
    stages, found = from_map(table["ns"]), {}
    for name, stack in stacks.items():
        mine = side == (names.index(name) if name in names else -1)
        shape = len(np.unique(number[mine])), len(np.unique(sample[mine]))
        if not mine.any() or mine.sum() != shape[0] * shape[1]:
            raise ValueError(f"{name}: its rows are not whole rounds")
        by_round, by_sample = (column[mine].reshape(shape) for column in (number, sample))
        if (by_round != by_round[:, :1]).any() or (by_sample != by_sample[:1]).any():
            raise ValueError(f"{name}: its rows are not rounds of the same samples")
        own = {stage: ns[mine].reshape(shape) for stage, ns in stages.items()}
        own = {stage: ns for stage, ns in own.items() if (ns != ABSENT).any()}
        times = Times(total[mine].reshape(shape), own, stack.source or "", stack.together)
        there = np.any([ns != ABSENT for ns in own.values()], axis=0)
        if (
            there & (times.total != sum(np.where(ns == ABSENT, 0, ns) for ns in own.values()))
        ).any():
            raise ValueError(f"{name}: a total is not the sum of its stages")
        found[name] = times
    return found


def _codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """The number of each value, and the values."""
    values = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return values.indices.to_numpy(), values.dictionary.to_pylist()


def _files(folder: Path) -> list[Path]:
    """The rounds' files in order; a missing round is an error, as numbers would be used twice."""
    found = sorted((folder / ROUNDS).glob("*.parquet"))
    for number, place in enumerate(found):
        if place.name != _name(number):
            raise _damaged(place, f"{_name(number)} is missing before it")
    return found


def _name(number: int) -> str:
    return f"{number:09d}.parquet"


def _damaged(place: Path, why: str) -> RunError:
    return RunError(f"{place}: {why}; delete it and the rounds after it to measure them again")


def _read(place: Path) -> tuple[pa.Table, RoundConditions]:
    """A round's rows, and its conditions."""
    try:
        with pq.ParquetFile(pa.BufferReader(read_part(place))) as opened:
            conditions = (opened.schema_arrow.metadata or {})[_CONDITIONS]
            rows = opened.read().replace_schema_metadata(None)
        if rows.schema != SCHEMA:
            raise ValueError(f"other columns: {', '.join(rows.column_names)}")
        return rows, json.loads(conditions)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise _damaged(place, f"damaged: {' '.join(str(error).split())}") from error


def _table(one: Round, sides: Sequence[str], samples: Sequence[str]) -> pa.Table:
    """Rows stack by stack, the samples of each in the order of the data set."""
    n, stacks = len(samples), len(sides)
    digests = one.digests.ravel()
    return _rows(
        np.full(stacks * n, one.number),
        _named(np.tile(np.arange(n), stacks), samples),
        _named(np.repeat(np.arange(stacks), n), sides),
        pa.array(digests.tolist(), pa.string(), mask=digests == ""),
        pa.array([one.failed.get((i, j)) for i in range(stacks) for j in range(n)], pa.string()),
        dict(zip(timed_steps(), np.moveaxis(one.ns, 2, 0), strict=True)),
        of_stages(one.ns).total,
        [one.parts.get((i, j)) for i in range(stacks) for j in range(n)],
    )


def _logged(side: str, times: Times, samples: Sequence[str]) -> pa.Table:
    """Rows round by round."""
    r, n = times.total.shape
    nothing = pa.nulls(r * n, pa.string())
    return _rows(
        np.repeat(np.arange(r), n),
        _named(np.tile(np.arange(n), r), samples),
        _named(np.zeros(r * n, np.int64), [side]),
        nothing,
        nothing,
        times.stages,
        times.total,
    )


def _rows(
    numbers: Ints,
    names: pa.Array,
    sides: pa.Array,
    digests: pa.Array,
    failed: pa.Array,
    stages: Mapping[str, Ints],
    total: Ints,
    parts: Sequence[Sequence[int] | None] | None = None,
) -> pa.Table:
    none = np.full(total.size, ABSENT, np.int64)
    columns = [stages.get(step, none).ravel() for step in timed_steps()]
    times = to_map(np.stack(columns, axis=1), timed_steps())
    whole = pa.array(total.ravel(), pa.int64(), mask=total.ravel() == NEVER)
    until = pa.array(parts or [None] * total.size, pa.list_(pa.int64()))
    arrays = [pa.array(numbers, pa.int32()), names, sides, digests, failed, times, whole, until]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _named(codes: Ints, names: Sequence[str]) -> pa.Array:
    values = pa.array(list(names), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)


def _round(place: Path, sides: Sequence[str], samples: Sequence[str]) -> Round:
    (table, conditions), stacks, n = _read(place), len(sides), len(samples)
    if table.num_rows != stacks * n:
        raise _damaged(place, f"{stacks * n} rows expected, got {table.num_rows}")
    if table["side"].to_pylist() != [side for side in sides for _ in samples] or (
        table["sample"].to_pylist() != list(samples) * stacks
    ):
        raise _damaged(place, "it holds other stacks or samples")
    kept, none = from_map(table["ns"]), np.full(stacks * n, ABSENT, np.int64)
    ns = [kept.get(step, none) for step in timed_steps()]
    digests = np.array(table["digest"].fill_null("").to_pylist(), "<U32").reshape(stacks, n)
    why = table["failed"].to_pylist()
    failed = {divmod(at, n): str(reason) for at, reason in enumerate(why) if reason is not None}
    until = table["parts_ns"].to_pylist()
    parts = {divmod(at, n): tuple(ns) for at, ns in enumerate(until) if ns is not None}
    number = int(table["round"][0].as_py())
    whole = np.stack(ns, axis=1).reshape(stacks, n, -1)
    return Round(number, whole, digests, failed, conditions, parts)
