"""Labels in the names of files: ``3_jackson_0.wav`` is a 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator

from simulator.data.folder import Dataset, Files, Item, load_unlabelled
from simulator.data.folder_labels import label_of
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels
from simulator.errors import DataError, one_line


def _one_group(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
        if groups == 1:
            _labels(pattern, [""])
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression of RE2: {one_line(error, 200)}") from None
    if groups != 1:
        raise ValueError(f"one group in parentheses expected, which is the label; got {groups}")
    return pattern


def _labels(pattern: str, names: Sequence[str]) -> list[str | None]:
    """Return the label in each name; None where the name does not fit.

    RE2 takes time that is linear in a name's length, whatever the pattern.
    """
    whole, column = f"^(?:{pattern})$", pa.array(names, pa.string())
    fits = pc.match_substring_regex(column, whole)
    found = pc.replace_substring_regex(column, whole, r"\1")
    labels: list[str | None] = pc.if_else(fits, found, None).to_pylist()
    return labels


class NamesSpec(DataSpec):
    """A card of files whose names say their class.

    Attributes:
        files: the folder.
        label: a regular expression of RE2 for the whole name below the folder; its one group is
            the label.
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
        found = _labels(card.spec.label, [one.name for one in folder.items])
        items = tuple(
            Item(one.name, one.path, label_of(label, labels, f"{card.path}: {one.name}"))
            for one, label in zip(folder.items, found, strict=True)
            if label is not None
        )
        if not items:
            raise DataError(f"{card.path}: label: fits none of the names in {folder.root}")
        left = len(folder.items) - len(items)
        notes = (f"left out {files.count(left)} whose names do not fit label",) if left else ()
        return Dataset(folder.root, items, notes)


CLASSIFICATION = Names("classification")
AUDIO_CLASSIFICATION = Names("audio_classification")
