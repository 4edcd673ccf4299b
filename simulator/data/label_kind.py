"""Label kinds: how the truths of samples are written, whatever source these are of."""

from __future__ import annotations

import posixpath
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from simulator.data.address import Root, safe
from simulator.data.folder import Dataset, Files, Truths, with_truths
from simulator.data.format import DataCard, DataFormat
from simulator.data.labels import Labels, numbered_lines
from simulator.data.source import samples_of
from simulator.data.tally import Tally
from simulator.entry_points import Table
from simulator.errors import DataError
from simulator.places import Where


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples that a source has, for a label kind to say their truths.

    Attributes:
        root: the path or the URL of the source.
        paths: where every sample is, by name.
        chosen: the names that the card's ``split`` lists; all where it has none.
        tally: what is left out, for the notes.
    """

    root: Root
    paths: Mapping[str, Where]
    chosen: frozenset[str]
    tally: Tally


class LabelKind(DataFormat):
    """One way to write the truths of samples.

    An instance is found by entry point, group ``simulator.labels``, under the name ``TASK.FORMAT``,
    or ``FORMAT`` where any task may have it: these are the words by which a card chooses it.

    Attributes:
        files: the key of the card that says where the samples are.
        without: what is said of samples that have no truth; empty: it is counted otherwise.
        none: what is said where no sample has one.
    """

    files: ClassVar[str] = "files"
    without: ClassVar[str] = ""
    none: ClassVar[str]

    @abstractmethod
    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> Truths:
        """Return the truths of samples by name; the others are left out.

        Args:
            samples: what the source has.
            card: one with :attr:`Spec`.
            labels: the classes of the model; None where its card has no label file.

        Raises:
            DataError: the annotations cannot be used.
        """

    def samples(self, card: DataCard, files: Files) -> Dataset:
        """Return the samples of a card."""
        pattern = set("*?[{") & set(getattr(card.spec, self.files))
        return samples_of((card.beside if pattern else card.root)(self.files), files)

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the samples, and leave out those without a truth; see :meth:`DataFormat.load`."""
        found = self.samples(card, files)
        paths, tally = {item.name: item.path for item in found.items}, Tally()
        split = card.place("split") if getattr(card.spec, "split", None) else None
        chosen = frozenset(paths) if split is None else _read_split(split, paths, tally)
        samples = Samples(found.root, paths, chosen, tally)
        truths = self.truths(samples, card, labels)
        notes = tally.notes()
        if not truths:
            reasons = "; ".join(notes) or "they have other names"
            raise DataError(f"{card.path}: {self.none} {found.root}: {reasons}")
        left = len(paths) - len(truths)
        if self.without and left:
            notes = (*notes, f"left out {files.count(left)} {self.without}")
        return with_truths(replace(found, notes=(*found.notes, *notes)), truths)


def _read_split(split: Where, paths: Mapping[str, Where], tally: Tally) -> frozenset[str]:
    """The samples that a list names, each in a line of its own, with or without its ending.

    This is the form of Pascal VOC's ``ImageSets/Main/*.txt``; lines without an image are counted.
    """
    stems: dict[str, list[str]] = {}
    for name in paths:
        stems.setdefault(stem(name), []).append(name)
    lines: dict[str, int] = {}
    for number, line in numbered_lines(split):
        text = line.strip()
        inside = safe(text, f"{split}:{number}")
        found = [inside] if inside in paths else stems.get(inside, [])
        if len(found) > 1:
            which = " or ".join(found)
            raise DataError(f"{split}:{number}: {text!r} may be {which}; write the ending")
        if not found:
            name = posixpath.basename(str(split))
            tally.add("left out", "line", f"of {name} without an image", text)
        elif found[0] in lines:
            raise DataError(f"{split}:{number}: {text!r} is also in line {lines[found[0]]}")
        else:
            lines[found[0]] = number
    if not lines:
        reasons = "; ".join(tally.notes()) or "it is empty"
        raise DataError(f"{split}: names no image of the data: {reasons}")
    return frozenset(lines)


def stem(name: str) -> str:
    """Return a path without its ending."""
    return posixpath.splitext(name)[0]


LABELS: Table[DataFormat] = Table(
    "simulator.labels", "label kind", lambda found: isinstance(found, DataFormat)
)
