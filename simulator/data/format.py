"""Data cards, and what their ``format`` names: a source of samples, or a kind of labels."""

from __future__ import annotations

import os
import posixpath
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from simulator.data import remote
from simulator.data.address import Root, is_url, root_of
from simulator.data.folder import IMAGES, Dataset, Files, read_truths
from simulator.data.folder_labels import label_of
from simulator.data.labels import Labels, Read, load_labels
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
