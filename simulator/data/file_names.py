"""Labels in the names of files: ``3_jackson_0.wav`` is a 3."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import AfterValidator

from simulator.data.folder import Dataset, Files, Item, load_unlabelled
from simulator.data.folder_labels import label_of
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels
from simulator.errors import DataError


def _one_group(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if groups != 1:
        raise ValueError(f"one group in parentheses expected, which is the label; got {groups}")
    return pattern


class NamesSpec(DataSpec):
    """A card of files whose names say their class.

    Attributes:
        files: the folder.
        label: a regular expression for the whole name below the folder; its one group is the label.
    """

    files: str
    label: Annotated[str, AfterValidator(_one_group)]


class Names(DataFormat):
    """Labels by file name.

    Args:
        task: the task that they are for.
    """

    format: ClassVar[str] = "names"
    Spec: ClassVar[type[DataSpec]] = NamesSpec

    def __init__(self, task: str) -> None:
        self.task = task

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Return the files whose names fit; the others are counted."""
        assert isinstance(card.spec, NamesSpec)
        folder = load_unlabelled(card.root("files"), files)
        pattern = re.compile(card.spec.label)
        items = tuple(
            Item(one.name, one.path, label_of(found[1], labels, f"{card.path}: {one.name}"))
            for one in folder.items
            if (found := pattern.fullmatch(one.name))
        )
        if not items:
            raise DataError(f"{card.path}: label: fits none of the names in {folder.root}")
        left = len(folder.items) - len(items)
        notes = (f"left out {files.count(left)} whose names do not fit label",) if left else ()
        return Dataset(folder.root, items, notes)


CLASSIFICATION = Names("classification")
AUDIO_CLASSIFICATION = Names("audio_classification")
