"""WebDataset: tar archives with the files of a sample side by side, ``a.jpg`` and ``a.cls``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from simulator.data import shards, tar
from simulator.data.address import Root
from simulator.data.archive import Archive
from simulator.data.folder import Dataset, Files
from simulator.data.format import DataCard, DataSpec
from simulator.data.labels import Labels
from simulator.data.shards import Row, ShardFormat, Truth
from simulator.data.tally import Tally
from simulator.errors import DataError, one_line

CLASS = "cls"
"""The ending of a file that has a class index, and nothing else."""


def load_tars(
    root: Root, files: Files, label: str | None, truth: Truth, sample: str | None = None
) -> Dataset:
    """Return the samples of tar archives, called ``SHARD.tar/KEY.ENDING``.

    Args:
        root: an archive, several of them by a pattern, or a folder.
        files: the endings of samples.
        label: the ending of the file with the label, or ``json.KEY``; None: labels are not read.
        truth: of a label and where it is; may raise DataError.
        sample: the ending of the samples, where a group has several that could be one.

    Raises:
        DataError: see :func:`simulator.data.shards.load`.
    """
    found = shards.find_shards(root, shards.TAR)
    words = [sorted(files.suffixes), files.noun, label, sample]
    scan = partial(_scan, files=files, label=label, sample=sample)
    return shards.load(root, found, (words, scan), _place, truth)


def _place(shard: Archive, row: Row) -> tar.TarMember:
    return tar.TarMember(shard, *row.place, row.ending)


def _scan(
    shard: Archive, tally: Tally, files: Files, label: str | None, sample: str | None
) -> Iterator[Row]:
    ending, _, key = (label or "").partition(".")
    for one in tar.grouped(shard):
        if isinstance(one, str):
            tally.add("left out", "member", one, shard.name)
            continue
        name, parts = one
        wanted = [
            own for own in parts if own == sample or (not sample and f".{own}" in files.suffixes)
        ]
        if len(wanted) > 1:
            raise DataError(
                f"{shard.where}: {name} has {' and '.join(wanted)}: which is the {files.noun}? "
                "Write `sample` in a data card"
            )
        if not wanted:
            tally.add("left out", "group of files", "without a sample", f"{shard.name}/{name}")
            continue
        place = parts[wanted[0]]
        text = _label(shard, parts[ending], key) if ending in parts else None
        yield Row(f"{name}.{wanted[0]}", (place.offset, place.size), f".{wanted[0]}", text)


def _label(shard: Archive, member: tar.Member, key: str) -> str:
    where = f"{shard.where}: {member.name}"
    if member.size > tar.LABEL:
        raise DataError(f"{where}: {member.size:,} bytes are no label")
    try:
        text = shard.part(member.offset, member.size).decode("utf-8")
        found = json.loads(text)[key] if key else text.strip()
    except OSError as error:
        raise DataError(f"{where}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError, KeyError, TypeError, IndexError) as error:
        told = f"there is no key {key!r}" if isinstance(error, KeyError) else one_line(error)
        raise DataError(f"{where}: is no label: {told}") from error
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise DataError(f"{where}: {key}: a text or an integer expected")
    return str(found)


class WebDatasetSpec(DataSpec):
    """A card of tar archives."""

    files: str = Field(description="an archive, a folder of them, `val-{0000..0049}.tar` or a URL")
    label: str | None = Field(
        default=None,
        description="the ending of the file with the label, or json.KEY; none: no truth",
    )
    sample: str | None = Field(
        default=None, description="the ending of the samples, where several could be one"
    )


class WebDataset(ShardFormat):
    """Samples in tar archives, with their labels."""

    format: ClassVar[str] = "webdataset"
    Spec: ClassVar[type[DataSpec]] = WebDatasetSpec

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the archives; see :func:`load_tars`."""
        spec: Any = card.spec
        truth = partial(self.truth, labels)
        return load_tars(card.beside("files"), files, spec.label, truth, spec.sample)


CLASSIFICATION = WebDataset("classification")
AUDIO_CLASSIFICATION = WebDataset("audio_classification")
TRANSCRIPTION = WebDataset("transcription")
