"""Samples in Parquet files, as Hugging Face writes them: ``image: {bytes, path}`` and ``label``."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from simulator.data.archive import Archive
from simulator.data.folder import Files
from simulator.data.format import DataSpec
from simulator.data.shards import Reader, Row, Shards
from simulator.data.tally import Tally
from simulator.errors import DataError, one_line, reading
from simulator.places import ByteSource, too_large

GROUP = 2**31
"""Bytes of one column of one row group at most: they are unpacked together."""
GROUPS = 3
"""Row groups that stay unpacked: samples come in order, to be run and to be hashed."""
_reading = threading.Lock()


@dataclass(frozen=True, slots=True)
class Cell(ByteSource):
    """The bytes in one row of a Parquet file.

    Attributes:
        shard: the file.
        column: of the bytes; ``image.bytes`` for a field of a struct.
        group: the row group.
        row: in the group.
        suffix: the ending of the file that it was, with the dot; empty: not known.
    """

    shard: Archive
    column: str
    group: int
    row: int
    suffix: str

    def read(self, most: int) -> bytes:
        """Return the bytes; the row group is unpacked, and kept for its other rows."""
        try:
            with _reading:  # else every thread would unpack the same group
                column = _column(self.shard, self.column, self.group)
            found = column[self.row]
        except (pa.ArrowException, IndexError) as error:
            raise OSError(errno.EIO, f"{self.shard.name}: {one_line(error)}", str(self)) from error
        if not found.is_valid:
            raise OSError(errno.ENODATA, "the row has no bytes", str(self))
        size = len(found.as_buffer())
        if size > most:
            raise too_large(self, size, most)
        return bytes(found.as_py())

    def state(self) -> tuple[int, ...]:
        """Return the time and size of the file, and where this is in it."""
        return self.shard.time, self.shard.size, self.group, self.row

    def __str__(self) -> str:
        return f"{self.shard.where}: {self.column} of row {self.row} in group {self.group}"


@lru_cache(maxsize=GROUPS)
def _column(shard: Archive, column: str, group: int) -> pa.Array:
    with shard.opened() as file:
        table = pq.ParquetFile(file).read_row_group(group, columns=[column], use_threads=False)
    return table.flatten().column(column).combine_chunks()


def _scan(shard: Archive, tally: Tally, spec: Any) -> Iterator[Row]:
    column, path, label, names = _schema(shard, spec)
    asked = [one for one in (path, label) if one is not None]
    with reading(shard.where, pa.ArrowException), shard.opened() as file:
        opened = pq.ParquetFile(file)
        number = 0
        for group in range(opened.num_row_groups):
            _check_size(shard, opened, group, column)
            rows = opened.metadata.row_group(group).num_rows
            table = opened.read_row_group(group, columns=asked, use_threads=False)
            none = [None] * rows
            paths = table.flatten().column(path).to_pylist() if path else none
            labels = table.column(label).to_pylist() if label else none
            for row, (was, value) in enumerate(zip(paths, labels, strict=True)):
                ending = PurePosixPath(str(was or "")).suffix.lower()
                text = _label(value, names, f"{shard.where}: {label} of row {number}")
                yield Row(f"{number:08d}{ending}", group, row, ending, text)
                number += 1


def _label(value: Any, names: list[str] | None, where: str) -> str | None:
    if value is None or value == -1:  # what Hugging Face writes where the label is not known
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"{where}: a class expected, got {str(value)[:40]!r}")
    if names is None or isinstance(value, str):
        return str(value)
    if not 0 <= value < len(names):
        raise DataError(f"{where}: {value} is none of the file's {len(names)} classes")
    return names[value]


def _check_size(shard: Archive, opened: pq.ParquetFile, group: int, column: str) -> None:
    found = opened.metadata.row_group(group)
    sizes = [found.column(at) for at in range(found.num_columns)]
    size = sum(chunk.total_uncompressed_size for chunk in sizes if chunk.path_in_schema == column)
    if size > GROUP:
        raise DataError(
            f"{shard.where}: row group {group}: {size:,} bytes in {column} would be unpacked; "
            f"{GROUP:,} at most: write it with fewer rows in a group"
        )


def _schema(shard: Archive, spec: Any) -> tuple[str, str | None, str | None, list[str] | None]:
    """The columns of the bytes, of the path and of the label, and the names of the classes."""
    with reading(shard.where, pa.ArrowException), shard.opened() as file:
        schema = pq.read_schema(file)
    column, path = _bytes(shard, schema, spec and spec.sample)
    classes = _classes(schema)
    if spec is None:
        return column, path, None, None
    usual = next(iter(classes)) if len(classes) == 1 else "label"
    label = spec.label or (usual if usual in schema.names else None)
    if label not in (None, *schema.names):
        has = ", ".join(schema.names)
        raise DataError(f"{shard.where}: label: no column {label}; it has {has}")
    return column, path, label, classes.get(label or "") if spec.by == "name" else None


def _bytes(shard: Archive, schema: pa.Schema, sample: str | None) -> tuple[str, str | None]:
    """The column of the bytes, and that of the path."""
    fit = [field for field in schema if _holds_bytes(field.type)]
    some = [field for field in fit if sample in (None, field.name)]
    if len(some) != 1:
        has = ", ".join(f"{field.name}: {field.type}" for field in schema)[:300]
        what = f"{sample} is no column" if sample else f"{len(fit)} columns"
        raise DataError(
            f"{shard.where}: {what} with the bytes of files, where one is expected (a binary, or a "
            f"struct with a field bytes); write `sample` in a data card; it has {has}"
        )
    name, kind = some[0].name, some[0].type
    if not pa.types.is_struct(kind):
        return name, None
    has_path = any(field.name == "path" for field in kind)
    return f"{name}.bytes", f"{name}.path" if has_path else None


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        kind = next((field.type for field in kind if field.name == "bytes"), pa.null())
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _classes(schema: pa.Schema) -> dict[str, list[str]]:
    """The names of the classes of columns, as Hugging Face's metadata list them."""
    try:
        known = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        classes = {name: one for name, one in known.items() if isinstance(one, dict)}
        return {
            name: [str(each) for each in one["names"]]
            for name, one in classes.items()
            if one.get("_type") == "ClassLabel" and "names" in one
        }
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


class ParquetSpec(DataSpec):
    """A card of Parquet files with the bytes of samples."""

    files: str = Field(description="a Parquet file, a folder of them, `val-*.parquet` or a URL")
    sample: str | None = Field(
        default=None, description="the column with the bytes; default: the only one there is"
    )
    label: str | None = Field(
        default=None, description="the column with the label; default: the only one with classes"
    )
    by: Literal["name", "index"] = Field(
        default="name", description="what agrees with the model: the file's class names, or indices"
    )


class Parquet(Shards):
    """Samples in Parquet files, with their labels, called ``SHARD.parquet/00000012.jpg``."""

    Spec: ClassVar[type[DataSpec]] = ParquetSpec
    classes: ClassVar[Any] = SimpleNamespace(sample=None, label=None, by="name")
    suffix = ".parquet"
    hint = "; if the indices agree, write `by: index` in a data card of format parquet"

    def reader(self, first: Archive, files: Files, spec: Any) -> Reader:
        """Return how the files are read, whose columns are as in the first one."""
        column = _schema(first, spec)[0]
        identity = [spec.sample, spec.label, spec.by] if spec else None
        return Reader(identity, partial(_scan, spec=spec), partial(_place, column))


def _place(column: str, shard: Archive, row: Row) -> Cell:
    return Cell(shard, column, row.first, row.second, row.ending)


PARQUET = Parquet()
