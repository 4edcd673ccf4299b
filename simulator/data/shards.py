"""Shards that are given as data: which files they are, and what is read of them, indexed once."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from simulator import cache
from simulator.data import remote
from simulator.data.address import Address, Root, bare, in_full, root_of
from simulator.data.archive import Archive, archive
from simulator.data.folder import Dataset, Files, Item
from simulator.data.folder_labels import label_of
from simulator.data.format import DataFormat
from simulator.data.labels import Labels
from simulator.data.tally import Tally
from simulator.errors import DataError
from simulator.limits import NAMES
from simulator.places import Where

TAR, PARQUET = ".tar", ".parquet"
VERSION = 1
"""Of the index; another one is made anew."""
_RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
_INDEX = "index.parquet"


class Row(NamedTuple):
    """A sample of a shard, as its index keeps it.

    Attributes:
        name: below the shard.
        place: numbers that say where it is in the shard.
        ending: of its file, with the dot.
        label: as it is written; None: it has none.
    """

    name: str
    place: tuple[int, int]
    ending: str
    label: str | None


Scan = Callable[[Archive, Tally], Iterable[Row]]
"""Reads a shard from its beginning to its end; what is left out is counted."""
Truth = Callable[[str, str], Any]
"""Returns the truth of a label; also given is where it is, for messages."""
MakePlace = Callable[[Archive, Row], Where]


class ShardFormat(DataFormat):
    """Samples in shards, each with a class, or for transcription with a text.

    Args:
        task: the task that the labels are for.
    """

    def __init__(self, task: str) -> None:
        self.task = task

    def truth(self, labels: Labels | None, label: str, where: str) -> Any:
        """Return what a label says: the text itself, or a class index.

        Raises:
            DataError: it is no class of the model.
        """
        return label if self.task == "transcription" else self.class_of(labels, label, where)

    def class_of(self, labels: Labels | None, label: str, where: str) -> int:
        """Return the class that a label names.

        Raises:
            DataError: it is no class of the model.
        """
        return label_of(label, labels, where)


def kind_of(root: Root, files: Files) -> str | None:
    """Return ``.tar`` or ``.parquet`` where a path or a URL is one of shards; else None.

    It is a shard by its name, several by a pattern (``val-{0000..0049}.tar``, ``val-*.parquet``),
    or a folder that has shards of one kind directly in it, no sample and no folder.
    """
    text = bare(root)
    for kind in (TAR, PARQUET):
        if text.lower().endswith(kind) or (kind == TAR and _packed(text)):
            return kind if isinstance(root, str) or not root.is_dir() else None
    if isinstance(root, Address) or (isinstance(root, Path) and not root.is_dir()):
        return None
    try:
        inside = _inside(root)
    except OSError:
        return None
    endings = {PurePosixPath(name).suffix.lower() for name in inside if not name.startswith(".")}
    kinds = endings & {TAR, PARQUET}
    plain = not any(name.endswith("/") for name in inside) and not endings & {*files.suffixes}
    return kinds.pop() if plain and len(kinds) == 1 else None


def _packed(text: str) -> bool:
    return re.search(r"\.(tgz|tar\.\w+)$", text.lower()) is not None


def _inside(root: Root) -> list[str]:
    """The names directly in a folder; those of folders end in ``/``."""
    if isinstance(root, str):
        return remote.names(root)
    return [one.name + "/" * one.is_dir() for one in root.iterdir()]


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
        raise DataError(
            f"{root}: a range of 1 to {NAMES:,} shards expected, upwards; got {names:,}"
        )


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
        inside = [name for name in _inside(root) if name.lower().endswith(kind)]
        return [f"{root.rstrip('/')}/{name}" for name in inside]
    if root.is_dir():
        return [one for one in root.iterdir() if _is_shard(one, kind)]
    if not root.exists() and glob.has_magic(str(root)):
        return [one for one in map(Path, glob.glob(str(root))) if _is_shard(one, kind)]
    return [root]


def _is_shard(path: Path, kind: str) -> bool:
    return path.suffix.lower() == kind and not path.name.startswith(".") and path.is_file()


def load(
    root: Root,
    shards: Sequence[Archive],
    scanned: tuple[Any, Scan],
    place: MakePlace,
    truth: Truth,
) -> Dataset:
    """Return the samples of shards, sorted by name; each shard is scanned once and remembered.

    Args:
        root: what was asked for.
        shards: of :func:`find_shards`.
        scanned: what the scan depends on besides the shard, as JSON; and the scan.
        place: makes the place of a sample.
        truth: of a label and where it is, for messages; called once for each label.

    Raises:
        DataError: a shard cannot be read, a label has no truth, or there is no sample.
    """
    tally, items, truths = Tally(), list[Item](), dict[str | None, Any]({None: None})
    for shard in shards:
        for row in _rows(shard, scanned, tally):
            if row.label not in truths:
                truths[row.label] = truth(str(row.label), f"{shard.where}: {row.name}")
            name = f"{shard.name}/{row.name}"
            items.append(Item(name, place(shard, row), truths[row.label]))
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


def _rows(shard: Archive, scanned: tuple[Any, Scan], tally: Tally) -> Iterator[Row]:
    """The rows of the index of a shard, which is made on first use."""
    words, scan = scanned
    state = [VERSION, shard.where, shard.size, shard.time, words]
    key = hashlib.blake2b(json.dumps(state).encode("utf-8", "surrogatepass"), digest_size=16)

    def write(folder: Path) -> None:
        left = Tally()
        rows = list(scan(shard, left))
        table = pa.table({
            "name": pa.array([row.name for row in rows], pa.string()),
            "first": pa.array([row.place[0] for row in rows], pa.int64()),
            "second": pa.array([row.place[1] for row in rows], pa.int64()),
            "ending": pa.array([row.ending for row in rows], pa.string()),
            "label": pa.array([row.label for row in rows], pa.string()),
        })  # fmt: skip
        told = json.dumps(left.counts())
        pq.write_table(table.replace_schema_metadata({"left": told}), folder / _INDEX)

    table = pq.read_table(cache.entry(f"shards/{key.hexdigest()}", write) / _INDEX)
    for one in json.loads(table.schema.metadata[b"left"]):
        tally.add(*one)
    for batch in table.to_batches():
        columns = (column.to_pylist() for column in batch.columns)
        for name, first, second, ending, label in zip(*columns, strict=True):
            yield Row(name, (first, second), ending, label)
