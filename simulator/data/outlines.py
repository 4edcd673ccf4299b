"""Segmentation truth from COCO's polygons and run lengths.

Source:
    https://cocodataset.org/#format-data; run lengths as in cocoapi's ``common/maskApi.c``
    (``rleFrString``: five bits a character, differences to the count before the last).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.contract.library import Library
from simulator.data.annotated import Annotated, AnnotatedSpec, map_classes
from simulator.data.coco import is_crowd, read_coco
from simulator.data.folder import Truths
from simulator.data.format import DataCard
from simulator.data.label_kind import Samples
from simulator.data.labels import Labels
from simulator.data.masks import IGNORE, Indices, MaskTruth
from simulator.errors import DataError, SampleError

rasterizer = Library("pycocotools.mask", distribution="pycocotools", extra="coco")
_FAR = 100_000
"""Corners farther away, in pixels, are refused: pycocotools walks along every edge."""
_BITS = 60


class CocoMaskSpec(AnnotatedSpec):
    """A card of COCO outlines; ``background`` is the class of pixels that no object covers."""

    background: str | None


class Outline(NamedTuple):
    """An annotated object: its class, or IGNORE for a crowd, and COCO's ``segmentation``."""

    label: int
    segmentation: Any


@dataclass(frozen=True, slots=True, eq=False)
class OutlineMask(MaskTruth):
    """The objects of one image, drawn when the mask is read.

    Crowds come first and are not judged; then the others, larger ones first, so that small objects
    stay on top of the large ones that they overlap.

    Attributes:
        height: rows of the image.
        width: columns of the image.
        background: the index of pixels that no object covers.
        outlines: the objects.
    """

    height: int
    width: int
    background: int
    outlines: tuple[Outline, ...]

    def digest(self) -> str:
        """Return the SHA-256 of everything that the mask is made of."""
        parts = [self.height, self.width, self.background, self.outlines]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _read(self) -> Indices:
        mask = np.full((self.height, self.width), self.background, np.uint8)
        drawn = [(outline.label, self._drawn(outline.segmentation)) for outline in self.outlines]
        drawn.sort(key=lambda pair: (pair[0] != IGNORE, -np.count_nonzero(pair[1])))
        for label, inside in drawn:
            mask[inside] = label
        return mask

    def _drawn(self, segmentation: Any) -> NDArray[np.bool_]:
        if isinstance(segmentation, dict):
            return _from_runs(segmentation, self.height, self.width)
        try:
            corners = [np.array(polygon, np.float64) for polygon in segmentation]
        except (ValueError, TypeError, OverflowError) as error:
            raise SampleError("segmentation: a polygon is a list of x, y, x, y, …") from error
        for corner in corners:
            if corner.ndim != 1 or len(corner) % 2 or len(corner) < 6:
                raise SampleError("segmentation: a polygon is at least three pairs x, y")
            if not (np.abs(corner) < _FAR).all():
                raise SampleError("segmentation: a corner of a polygon is far outside of the image")
        runs = rasterizer.frPyObjects([c.tolist() for c in corners], self.height, self.width)
        whole = rasterizer.merge(runs)
        drawn = {"size": whole["size"], "counts": whole["counts"].decode("ascii")}
        return _from_runs(drawn, self.height, self.width)


class CocoMasks(Annotated):
    """Masks from the outlines in COCO's JSON: one file.

    Without labels of the model, *background* comes first, unless it is a category itself, then the
    categories by ascending id.
    """

    Spec = CocoMaskSpec
    in_folder = False

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> Truths:
        """Return the masks of the images whose objects all have an outline."""
        annotations = self.annotations(card)
        assert isinstance(card.spec, CocoMaskSpec)
        rasterizer.load()  # now, not after the first inference
        background, coco = card.spec.background, read_coco(samples, annotations)
        categories = list(coco.categories.values())
        first = [] if background is None or background in categories else [background]
        names, classes = first + categories, coco.classes(labels, len(first))
        if (count := len(labels or names)) > IGNORE:
            raise DataError(f"{annotations}: masks have at most {IGNORE} classes, got {count}")
        behind = IGNORE
        if background is not None:
            where = f"{annotations}: background"
            behind = map_classes([background], names, labels, where)[background]
        truths = {}
        for (name, height, width), group in coco.annotated(samples.tally):
            if not (isinstance(height, int) and isinstance(width, int)):
                why = "height and width expected, as integers"
                raise DataError(f"{annotations}: image {name!r}: {why}")
            if any(not one.get("segmentation") for one in group):
                what = "with an object that has no outline"
                samples.tally.add("left out", "image", what, name)
                continue
            indices = [IGNORE if is_crowd(coco, a) else classes[a["category_id"]] for a in group]
            outlines = tuple(map(Outline, indices, (a["segmentation"] for a in group)))
            truths[name] = OutlineMask(height, width, behind, outlines)
        return truths


MASKS = CocoMasks()


def _from_runs(segmentation: dict[str, object], height: int, width: int) -> NDArray[np.bool_]:
    """Pixels of run lengths, which go down the columns and start outside of the object."""
    counts, size = segmentation.get("counts"), segmentation.get("size")
    if size != [height, width]:
        raise SampleError(f"segmentation: run lengths of size {size}, the image {[height, width]}")
    runs: Any = _counts(counts) if isinstance(counts, str) else counts
    whole = isinstance(runs, list) and all(type(run) is int and run >= 0 for run in runs)
    if not whole or sum(runs) != height * width:
        why = f"do not add up to {height * width} pixels"
        raise SampleError(f"segmentation: run lengths that {why}")
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape(width, height).T


def _counts(text: str) -> list[int]:
    counts: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > _BITS:
            raise SampleError(f"segmentation: {character!r} in compressed run lengths")
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            if bits & 16:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value = shift = 0
    return counts
