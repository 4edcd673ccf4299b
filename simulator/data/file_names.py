"""Labels in the names of files: ``3_jackson_0.wav`` is a 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator

from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples
from simulator.data.labels import Labels, Written
from simulator.errors import one_line


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


class Names(LabelKind):
    """Labels by file name."""

    Spec: ClassVar[type[DataSpec]] = NamesSpec
    without = "whose names do not fit label"
    none = "label: fits none of the names in"

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, Written]:
        """Return the labels in the names that fit."""
        assert isinstance(card.spec, NamesSpec)
        found = zip(samples.paths, _labels(card.spec.label, list(samples.paths)), strict=True)
        texts = {name: text for name, text in found if text is not None}
        return {name: Written(text, f"{card.path}: {name}") for name, text in texts.items()}


NAMES = Names()
