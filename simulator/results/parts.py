"""Parts of a run that is not finished: each is written beside its place and renamed into it.

What is there is whole, and has a checksum; a run goes on after its last part.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.files import TEXT, read_file, write_whole

CHECKSUM = 2**12
"""Bytes of a file with one checksum."""
ROWS_PER_GROUP = 16384
AGAIN = "delete it and the parts after it to measure them again"


def write_part(table: pa.Table, place: Path) -> None:
    """Write a part of a run, and before it its checksum: a part that is there can be checked."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=ROWS_PER_GROUP)
    data = buffer.getvalue()
    line = f"{hashlib.sha256(data).hexdigest()}  {place.name}\n"
    write_whole(checksum_of(place), line.encode())
    write_whole(place, data)


def read_part(place: Path) -> bytes:
    """Return the bytes of a Parquet file of a run that is not finished.

    Raises:
        OSError: it cannot be read, or its checksum.
        ValueError: they are not those that :func:`write_part` has written.
    """
    data = read_file(place, TEXT)
    told = read_file(checksum_of(place), CHECKSUM).decode("ascii", "replace").split()
    if told[:1] != [hashlib.sha256(data).hexdigest()]:
        raise ValueError("its bytes are not those that were written")
    return data


def checksum_of(place: Path) -> Path:
    """Return the file that has the checksum of a part, in the form of ``sha256sum``."""
    return place.with_name(f"{place.name}.sha256")
