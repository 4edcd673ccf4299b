"""Transcripts as LJSpeech has them: a line ``NAME|TEXT|TEXT IN WORDS`` for each sound."""

from __future__ import annotations

import posixpath
from typing import ClassVar

from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples
from simulator.data.labels import Labels, numbered_lines
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


class Transcripts(LabelKind):
    """Transcripts in one table."""

    Spec: ClassVar[type[DataSpec]] = TranscriptsSpec
    without = "without a transcript"
    none = "transcripts: has none of the samples in"

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, str]:
        """Return the transcripts."""
        table = card.place("transcripts")
        texts: dict[str, str] = {}
        for number, line in numbered_lines(table):
            name, *given = line.split("|")
            if not given:
                raise DataError(f"{table}:{number}: NAME|TEXT expected, got {line!r:.80}")
            if name in texts:
                raise DataError(f"{table}:{number}: {name!r} has a line already; keep one")
            texts[name] = given[-1]
        stems = {name: posixpath.splitext(name)[0] for name in samples.paths}
        return {name: texts[stem] for name, stem in stems.items() if stem in texts}


TRANSCRIPTS = Transcripts()
