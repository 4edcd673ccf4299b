"""Classes in the development kit of ILSVRC 2012."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import Field

from simulator.data import remote
from simulator.data.folder import Dataset, Files, Item
from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples
from simulator.data.labels import Labels, Written, as_index, numbered_lines, read_text
from simulator.data.matlab import table
from simulator.errors import DataError, one_line, reading
from simulator.places import Where, read

MATLAB = 2**24
"""Bytes of the devkit's ``meta.mat`` at most, packed and unpacked; it has 0.2 MB."""
_NUMBER = re.compile(r"(?:.*/)?ILSVRC\d{4}_val_(\d{8})\.\w+")
_WNID = re.compile(r"n\d{8}")


class DevkitSpec(DataSpec):
    """A card of the validation images of ILSVRC, as its archives bring them."""

    files: str = Field(description="the folder with ILSVRC2012_val_00000001.JPEG, or its URL")
    truth: str = Field(description="ILSVRC2012_validation_ground_truth.txt of the devkit")
    synsets: str = Field(description="the devkit's meta.mat or map_clsloc.txt")


class Devkit(LabelKind):
    """WordNet ids of ILSVRC's validation images.

    Line n of the truth is the ILSVRC2012_ID of the image with number n; the other file says which
    WordNet id that is. These ids are in another order than networks' classes.
    """

    Spec: ClassVar[type[DataSpec]] = DevkitSpec
    without = "without a number of ILSVRC"

    def samples(self, card: DataCard, files: Files) -> Dataset:
        """Return the images; behind a URL nothing is listed, as their numbers are known."""
        root = card.root("files")
        if not isinstance(root, str):
            return super().samples(card, files)
        numbers = range(1, len(read_text(card.place("truth")).split()) + 1)
        names = [f"ILSVRC2012_val_{number:08}.JPEG" for number in numbers]
        return Dataset(root, tuple(Item(name, remote.inside(root, name), None) for name in names))

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, Written]:
        """Return the WordNet ids."""
        truth, synsets = card.place("truth"), card.place("synsets")
        if labels is None or labels.wnids is None:
            raise DataError(
                f"{truth}: the devkit names classes by WordNet id, and the model's label file has "
                "none; write it as wnid<TAB>name"
            )
        wnids = _wnids(synsets)
        lines = read_text(truth).split()
        for number, text in enumerate(lines, 1):
            if as_index(text) not in wnids:
                raise DataError(f"{truth}:{number}: {text[:40]!r} is no ILSVRC2012_ID of {synsets}")
        fits = {name: _NUMBER.fullmatch(name) for name in samples.paths}
        numbered = {name: int(found[1]) for name, found in fits.items() if found}
        last = max(numbered.values(), default=0)
        if not numbered or last > len(lines) or 0 in numbered.values():
            what = f"an image has the number {last}" if numbered else "no image is called so"
            wanted = f"ILSVRC2012_val_00000001.JPEG to {len(lines):08} expected"
            raise DataError(f"{samples.root}: {wanted}, by the lines of {truth}; {what}")
        return {
            name: Written(wnids[int(lines[number - 1])], str(synsets))
            for name, number in numbered.items()
        }


ILSVRC = Devkit()


def _wnids(synsets: Where) -> dict[int | None, str]:
    """WordNet ids by ILSVRC2012_ID."""
    pairs = _of_matlab(synsets) if synsets.suffix.lower() == ".mat" else _of_text(synsets)
    found: dict[int | None, str] = {}
    for number, wnid in pairs:
        if found.setdefault(number, wnid) != wnid:
            raise DataError(f"{synsets}: the ILSVRC2012_ID {number} is {found[number]} and {wnid}")
    return found


def _of_text(synsets: Where) -> list[tuple[int, str]]:
    """The lines of ``map_clsloc.txt``: ``n02119789 1 kit_fox``."""
    pairs = []
    for number, line in numbered_lines(synsets):
        wnid, index = (*line.split(), "", "")[:2]
        if not _WNID.fullmatch(wnid) or (at := as_index(index)) is None:
            wanted = "a WordNet id and its ILSVRC2012_ID expected, as in 'n02119789 1 kit_fox'"
            raise DataError(f"{synsets}:{number}: {wanted}; got {line.strip()[:60]!r}")
        pairs.append((at, wnid))
    return pairs


def _of_matlab(synsets: Where) -> list[tuple[int, str]]:
    """The ``synsets`` of ``meta.mat``: ILSVRC2012_ID and WNID are their first two fields."""
    with reading(synsets):
        data = read(synsets, MATLAB)
    try:
        rows = table(data, "synsets", ("ILSVRC2012_ID", "WNID"), MATLAB)
        pairs = [(int(number), str(wnid)) for number, wnid in rows]
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{synsets}: not the devkit's meta.mat, whose synsets have ILSVRC2012_ID and WNID: "
            f"{one_line(error, 200)}"
        ) from error
    strange = next((wnid for _, wnid in pairs if not _WNID.fullmatch(wnid)), None)
    if strange is not None or not pairs:
        raise DataError(f"{synsets}: {str(strange)[:40]!r} is no WordNet id")
    return pairs
