"""Transcripts as LJSpeech has them: a line ``NAME|TEXT|TEXT IN WORDS`` for each sound."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import ClassVar

from simulator.data.folder import Dataset, Files, Item, load_unlabelled
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels, read_text
from simulator.errors import DataError


class TranscriptsSpec(DataSpec):
    """A card of sounds with their transcripts.

    Attributes:
        files: the folder of the sounds.
        transcripts: the table; a name is that of a file without its suffix, and of several texts
            the last one counts, in which LJSpeech writes numbers in words.
    """

    files: str
    transcripts: str


class Transcripts(DataFormat):
    """Transcripts in one table."""

    task = "transcription"
    format: ClassVar[str] = "ljspeech"
    Spec: ClassVar[type[DataSpec]] = TranscriptsSpec

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Return the sounds that have a transcript; the others are counted."""
        table, folder = card.place("transcripts"), load_unlabelled(card.root("files"), files)
        texts: dict[str, str] = {}
        for number, line in enumerate(read_text(table).split("\n"), 1):
            name, *given = line.split("|")
            if line.strip() and not given:
                raise DataError(f"{table}:{number}: NAME|TEXT expected, got {line!r:.80}")
            if name in texts:
                raise DataError(f"{table}:{number}: {name!r} has a line already; keep one")
            if line.strip():
                texts[name] = given[-1]
        items = tuple(
            Item(one.name, one.path, texts[name])
            for one in folder.items
            if (name := str(PurePosixPath(one.name).with_suffix(""))) in texts
        )
        if not items:
            raise DataError(f"{table}: has none of the {files.noun}s in {folder.root}")
        left = len(folder.items) - len(items)
        notes = (f"left out {files.count(left)} without a transcript",) if left else ()
        return Dataset(folder.root, items, notes)


TRANSCRIPTS = Transcripts()
