"""Sources: where samples are. Each may bring a text with every sample that says its truth."""

from __future__ import annotations

import os
import posixpath
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from simulator.data import remote
from simulator.data.address import Address, Root, bare
from simulator.data.folder import Dataset, Files, read_truths, with_truths
from simulator.data.folder_labels import label_of
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels
from simulator.entry_points import Table


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
        return [entry.name + "/" * entry.is_dir() for entry in entries]


class Source(DataFormat):
    """Where samples are. Its labels, if it has some, are texts.

    An instance is found by entry point, group ``simulator.sources``. One with labels has a
    :attr:`Spec` of its own: a card of any task chooses it by the name of its entry point.

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


def labelled_sources() -> list[str]:
    """Return the names of the sources that a card may choose."""
    return [name for name in SOURCES.names if SOURCES[name].Spec is not DataSpec]


def source_of(root: Root, files: Files) -> Source:
    """Return the source that takes a path or a URL."""
    given = Given(root, files)
    return next((source for source in SOURCES if source.takes(given)), SOURCES[FOLDER])


def samples_of(root: Root, files: Files) -> Dataset:
    """Return the samples that a path or a URL has, without labels.

    Raises:
        DataError: they cannot be used.
    """
    found = source_of(root, files).open(root, files)
    return with_truths(found, dict.fromkeys(item.name for item in found.items))
