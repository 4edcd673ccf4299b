"""Files that hold many samples each: which ones a path stands for, and their index, made once."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from math import prod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from simulator import cache
from simulator.data.address import Root, bare, in_full, root_of
from simulator.data.archive import Archive, archive
from simulator.data.folder import Dataset, Files, Item
from simulator.data.labels import Written
from simulator.data.source import Given, Source, names_in
from simulator.data.tally import Tally
from simulator.errors import DataError
from simulator.limits import NAMES
from simulator.places import Where

SUFFIXES = (".tar", ".parquet")
VERSION = 2
"""Of the index; another one is made anew."""
_RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
_INDEX = "index.parquet"
_COLUMNS = pa.schema({
    "name": pa.string(), "first": pa.int64(), "second": pa.int64(), "ending": pa.string(),
    "label": pa.string(),
})  # fmt: skip


class Row(NamedTuple):
    """A sample of a shard, as its index keeps it.

    Attributes:
        name: below the shard.
        first, second: where it is in the shard.
        ending: of its file, with the dot.
        label: as it is written; None: it has none.
    """

    name: str
    first: int
    second: int
    ending: str
    label: str | None


class Reader(NamedTuple):
    """How shards are read.

    Attributes:
        identity: what the rows depend on besides the shard; JSON.
        rows: reads a shard from its beginning to its end; what is left out is counted.
        place: returns where the bytes of a row are.
    """

    identity: Any
    rows: Callable[[Archive, Tally], Iterable[Row]]
    place: Callable[[Archive, Row], Where]


class Shards(Source):
    """Files of one kind that hold many samples each.

    Attributes:
        suffix: the ending of their names.
        packed: endings that are taken, to be refused with a reason.
        hint: ends messages on their labels.
    """

    suffix: ClassVar[str]
    packed: ClassVar[tuple[str, ...]] = ()
    hint: ClassVar[str] = ""

    def takes(self, given: Given) -> bool:
        """Whether this is a shard by its name, several by a pattern, or a folder of nothing else.

        Such a folder has shards of one kind directly in it, no sample and no folder.
        """
        if given.ends_with(self.suffix, *self.packed):
            return True
        others = {"/", *SUFFIXES, *given.files.suffixes} - {self.suffix}
        return self.suffix in given.endings and not given.endings & others

    @abstractmethod
    def reader(self, first: Archive, files: Files, spec: Any) -> Reader:
        """Return how shards are read, of which one is given; see :meth:`Source.open`."""

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Return the samples, sorted by name; each shard is scanned once and remembered."""
        shards = find_shards(root, self.suffix)
        reader = self.reader(shards[0], files, spec)
        tally, items, texts = Tally(), list[Item](), dict[str | None, Written | None]({None: None})
        for shard in shards:
            for row in _rows(shard, reader, tally):
                if row.label is not None and row.label not in texts:
                    where = f"{shard.where}: {row.name}"
                    texts[row.label] = Written(row.label, where, self.hint)
                place = reader.place(shard, row)
                items.append(Item(f"{shard.name}/{row.name}", place, texts[row.label]))
        if not items:
            reasons = "; ".join(tally.notes()) or "nothing is in it"
            raise DataError(f"{root}: has no sample: {reasons}")
        items.sort(key=lambda item: item.name)
        for one, other in itertools.pairwise(items):
            if one.name == other.name:
                raise DataError(f"{root}: two samples are called {one.name}")
        bare = sum(item.truth is None for item in items)
        notes = tally.notes()
        if 0 < bare < len(items):
            notes = (*notes, f"{bare:,} of {len(items):,} samples have no label")
        return Dataset(root, tuple(items), notes)


def find_shards(root: Root, kind: str) -> list[Archive]:
    """Return the shards that a path, a pattern, a folder or a URL stands for, sorted by name.

    Raises:
        DataError: there is none, one of a range is missing, or two have one name.
    """
    _refuse_many(root)
    found = [archive(one) for one in _expanded(root, kind)]
    if not found:
        raise DataError(f"{root}: there is no {kind} file")
    names: dict[str, Archive] = {}
    for one in found:
        if one.name in names:
            other = names[one.name].where
            raise DataError(f"{one.where}: {other} has the same name; rename one")
        names[one.name] = one
    return [names[name] for name in sorted(names)]


def _refuse_many(root: Root) -> None:
    """Refuse a path whose ranges stand for too many names, before one of them is made."""
    spans = [int(last) - int(first) + 1 for first, last in _RANGE.findall(bare(root))]
    names = prod(max(0, span) for span in spans)
    if not 1 <= names <= NAMES:
        wanted = f"a range of 1 to {NAMES:,} shards expected, upwards"
        raise DataError(f"{root}: {wanted}; got {names:,}")


def _expanded(root: Root, kind: str) -> list[Root]:
    if ranges := _RANGE.search(bare(root)):
        first, last = int(ranges[1]), int(ranges[2])
        text = in_full(root) if isinstance(root, str) else str(root)
        inner = [f"{text[: ranges.start()]}{number:0{len(ranges[1])}}{text[ranges.end() :]}"
                 for number in range(first, last + 1)]  # fmt: skip
        as_root = root_of if isinstance(root, str) else Path
        return [one for path in inner for one in _expanded(as_root(path), kind)]
    if isinstance(root, str):
        if bare(root).lower().endswith(kind):
            return [root]
        inside = [name for name in names_in(root) if name.lower().endswith(kind)]
        return [f"{root.rstrip('/')}/{name}" for name in inside]
    if root.is_dir():
        return [one for one in root.iterdir() if _is_shard(one, kind)]
    if not root.exists() and glob.has_magic(str(root)):
        return [one for one in map(Path, glob.glob(str(root))) if _is_shard(one, kind)]
    return [root]


def _is_shard(path: Path, kind: str) -> bool:
    return path.suffix.lower() == kind and not path.name.startswith(".") and path.is_file()


def _rows(shard: Archive, reader: Reader, tally: Tally) -> Iterator[Row]:
    """The rows of the index of a shard, which is made on first use."""
    state = [VERSION, shard.where, shard.size, shard.time, reader.identity]
    key = hashlib.blake2b(json.dumps(state).encode("utf-8", "surrogatepass"), digest_size=16)

    def write(folder: Path) -> None:
        left = Tally()
        rows = list(reader.rows(shard, left))
        told = json.dumps(left.counts())
        columns = _COLUMNS.with_metadata({"left": told})
        table = pa.Table.from_pylist([row._asdict() for row in rows], columns)
        pq.write_table(table, folder / _INDEX)

    table = pq.read_table(cache.entry(f"shards/{key.hexdigest()}", write) / _INDEX)
    for load in json.loads(table.schema.metadata[b"left"]):
        tally.add(*load)
    for batch in table.to_batches():
        columns = (column.to_pylist() for column in batch.columns)
        yield from map(Row._make, zip(*columns, strict=True))
