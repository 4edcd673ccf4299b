"""The answers of the stacks of a pair, read from its records."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.errors import RunError, one_line
from simulator.experiments.summary import SIDES

MOST_ANSWERS = 2**30
"""Bytes of the records of a pair in memory; one long text may be packed a thousand times."""
_ROWS = 1024
_KEYS = ("sample", "side", "condition", "trial", "digest", "skipped", "ns")


@dataclass(frozen=True, slots=True)
class SideAnswers:
    """The answers of one stack of a pair.

    Attributes:
        digests: of the network's outputs, by sample; None where the sample was skipped.
        records: every column of the task, by sample.
    """

    digests: dict[str, str | None]
    records: dict[str, dict[str, Any]]


def read_answers(content: bytes, manifest: Mapping[str, Any], where: str) -> dict[str, SideAnswers]:
    """Read ``records.parquet``, whoever has written it.

    Raises:
        RunError: it is none, or not that of the run of the manifest.
    """
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        samples = len(manifest["data"]["images"])
        if file.metadata.num_rows != len(SIDES) * samples:
            rows = file.metadata.num_rows
            raise RunError(f"{where}: {rows:,} records of {samples:,} samples and two stacks")
        table = _bounded(file, where)
        names = [n for n in table.column_names if n not in _KEYS]
        found = {side: SideAnswers({}, {}) for side in SIDES}
        for row in table.to_pylist():
            one, sample = found[row["side"]], row["sample"]
            one.digests[sample] = None if row["skipped"] is not None else str(row["digest"])
            one.records[sample] = {name: row[name] for name in names}
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{where}: not records of a pair: {one_line(error, 100)}") from error
    return found


def _bounded(file: pq.ParquetFile, where: str) -> pa.Table:
    batches, size = [], 0
    for batch in file.iter_batches(_ROWS):
        size += batch.nbytes
        if size > MOST_ANSWERS:
            raise RunError(f"{where}: records of more than {MOST_ANSWERS:,} bytes")
        batches.append(batch)
    return pa.Table.from_batches(batches, file.schema_arrow)
