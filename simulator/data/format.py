"""What the `format` of a data card names: sources of samples, and kinds of labels for them.

A data set is a source and labels. A source (a folder, a table, shards, a video) finds samples, and
may bring a text with each that says its truth. A label kind (COCO, VOC, masks, names of files)
says the truths of samples, whatever source they are of. Both are found by entry point.
"""

from __future__ import annotations

import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from simulator.data import remote
from simulator.data.address import Address, Root, bare, is_url, root_of
from simulator.data.folder import IMAGES, Dataset, Files, Truths, read_truths, with_truths
from simulator.data.folder_labels import label_of
from simulator.data.labels import Labels, Read, load_labels
from simulator.data.tally import Tally
from simulator.entry_points import Table
from simulator.errors import DataError
from simulator.places import Where
from simulator.profile.section import Section


class DataSpec(Section):
    """What every data card says; paths are relative to it."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str = ""
    task: str
    format: str


@dataclass(frozen=True, slots=True)
class DataCard:
    """A card that was checked.

    Attributes:
        path: the YAML document.
        spec: its content, as the schema of its format has it.
        format: how the annotations are written.
    """

    path: Path
    spec: DataSpec
    format: DataFormat

    @property
    def task(self) -> str:
        """The task that its annotations are for."""
        return self.spec.task

    def load(
        self, labels: Labels | None, files: Files = IMAGES, read: Read | None = None
    ) -> Dataset:
        """Open the samples with the truths that *read* gives; by default texts are classes.

        Raises:
            DataError: see :meth:`DataFormat.load`; or a text is no truth of the task.
        """
        found = self.format.load(self, labels, files)
        return read_truths(found, read or partial(label_of, labels=labels))

    def beside(self, key: str) -> Root:
        """Return the URL that a key of the card names, or a path or a pattern from the card."""
        named = str(getattr(self.spec, key))
        return root_of(named) if is_url(named) else Path(posixpath.join(self.path.parent, named))

    def root(self, key: str) -> Root:
        """Return the path or the URL that a key of the card names.

        Raises:
            DataError: nothing is at the path.
        """
        found = self.beside(key)
        if isinstance(found, Path) and not os.path.exists(found):
            raise DataError(f"{self.path}: {key}: there is no {found}")
        return found

    def place(self, key: str) -> Where:
        """Return where the file is that a key of the card names.

        Raises:
            DataError: nothing is at the path.
        """
        return remote.place(self.root(key))

    def file(self, key: str) -> Path:
        """Return the path that a key of the card names, of what is read from a disk only.

        Raises:
            DataError: nothing is there, or it is a URL.
        """
        found = self.root(key)
        if isinstance(found, str):
            raise DataError(f"{self.path}: {key}: {found}: copy it here, and write its path")
        return found

    def names(self) -> tuple[str, ...] | None:
        """Return the classes in the file that the card's ``classes`` names, where it names one."""
        listed = getattr(self.spec, "classes", None)
        return load_labels(self.place("classes")).names if listed else None


class DataFormat(ABC):
    """What a data card chooses by its ``format``.

    Attributes:
        annotated: whether people have annotated its samples.
        Spec: the schema of its cards.
    """

    annotated: ClassVar[bool] = True
    Spec: ClassVar[type[DataSpec]] = DataSpec

    @abstractmethod
    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the annotated samples of a card; the same ones in the same order each time.

        Args:
            card: one with :attr:`Spec`.
            labels: the classes of the model; None where its card has no label file.
            files: the files that are samples.

        Returns:
            The samples that have annotations, sorted by name, each with a truth: what the task
            takes, or a :class:`simulator.data.folder.Written`, which the task reads.

        Raises:
            DataError: the samples or the annotations cannot be used.
        """


@dataclass(frozen=True)
class Given:
    """A path or a URL that is given as data.

    Attributes:
        root: the path or the URL.
        files: the files that are samples.
    """

    root: Root
    files: Files

    def ends_with(self, *suffixes: str) -> bool:
        """Whether it is no folder here, and ends in one of some suffixes, in any case."""
        folder = isinstance(self.root, Path) and self.root.is_dir()
        return not folder and bare(self.root).lower().endswith(suffixes)

    @cached_property
    def endings(self) -> frozenset[str]:
        """The endings of the files directly in a folder, ``/`` for folders; empty where unknown."""
        try:
            inside = [] if isinstance(self.root, Address) else names_in(self.root)
        except OSError:
            return frozenset()
        plain = (name for name in inside if not name.startswith("."))
        return frozenset(
            "/" if one.endswith("/") else posixpath.splitext(one)[1].lower() for one in plain
        )


def names_in(root: Root) -> list[str]:
    """Return the names directly in a folder; those of folders end in ``/``.

    Raises:
        OSError: it is no folder, or cannot be listed.
    """
    if isinstance(root, str):
        return remote.names(root)
    with os.scandir(root) as entries:
        return [one.name + "/" * one.is_dir() for one in entries]


class Source(DataFormat):
    """Where samples are. Its labels, if it has some, are texts.

    An instance is found by entry point, group ``simulator.sources``; by its name there a card
    chooses it, for any task.

    Attributes:
        classes: what stands for the card by which its own labels are classes, where there is none.
    """

    classes: ClassVar[Any] = None

    def takes(self, given: Given) -> bool:
        """Whether this is the source of a path or a URL, without doubt."""
        return False

    @abstractmethod
    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find the samples.

        Args:
            root: the path or the URL.
            files: the files of a folder that are samples.
            spec: a :attr:`Spec`; None: without labels.

        Returns:
            The samples sorted by name; a truth is a :class:`simulator.data.folder.Written` or None.

        Raises:
            DataError: they cannot be used.
        """

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the samples of a card with their own labels; see :meth:`DataFormat.load`."""
        return self.open(card.beside("files"), files, card.spec)

    def load_classes(self, root: Root, files: Files, labels: Labels | None) -> Dataset:
        """Open samples with their own labels, which are classes.

        Raises:
            DataError: they cannot be used, or a label is no class of the model.
        """
        return read_truths(self.open(root, files, self.classes), partial(label_of, labels=labels))


SOURCES: Table[Source] = Table(
    "simulator.sources", "source", lambda found: isinstance(found, Source)
)
FOLDER = "folder"
"""The source of what no other one takes."""


def source_of(root: Root, files: Files) -> Source:
    """Return the source that takes a path or a URL."""
    given = Given(root, files)
    return next((one for one in SOURCES if one.takes(given)), SOURCES[FOLDER])


def samples_of(root: Root, files: Files) -> Dataset:
    """Return the samples that a path or a URL has, without labels.

    Raises:
        DataError: they cannot be used.
    """
    found = source_of(root, files).open(root, files)
    return with_truths(found, dict.fromkeys(item.name for item in found.items))


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples that a source has, for a label kind to say their truths.

    Attributes:
        root: the path or the URL of the source.
        paths: where every sample is, by name.
        chosen: the names that the card asks for.
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
        samples = Samples(found.root, paths, self.chosen(paths, card, tally), tally)
        truths = self.truths(samples, card, labels)
        notes = samples.tally.notes()
        if not truths:
            reasons = "; ".join(notes) or "they have other names"
            raise DataError(f"{card.path}: {self.none} {found.root}: {reasons}")
        left = len(samples.paths) - len(truths)
        if self.without and left:
            notes = (*notes, f"left out {files.count(left)} {self.without}")
        return with_truths(replace(found, notes=(*found.notes, *notes)), truths)

    def chosen(self, paths: Mapping[str, Where], card: DataCard, tally: Tally) -> frozenset[str]:
        """Return the names of the samples that the card asks for: by default all."""
        return frozenset(paths)


LABELS: Table[DataFormat] = Table(
    "simulator.labels", "label kind", lambda found: isinstance(found, DataFormat)
)


def formats_of(task: str) -> tuple[str, ...]:
    """Return the words that cards of a task may have as their ``format``."""
    kinds = [name.removeprefix(f"{task}.") for name in LABELS.names]
    return tuple({*(one for one in kinds if "." not in one), *SOURCES.names} - {FOLDER})


def format_of(task: str, word: str) -> DataFormat:
    """Return what a word of :func:`formats_of` names."""
    known = next((name for name in (f"{task}.{word}", word) if name in LABELS), None)
    return LABELS[known] if known else SOURCES[word]
