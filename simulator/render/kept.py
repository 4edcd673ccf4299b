"""What is kept of each sample: its pixels or its tensor in a file of their own, and its truth."""

from __future__ import annotations

import hashlib
import io
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.contract import ImageWriter, array_words
from simulator.contract.recipe import Context
from simulator.data.folder import Item
from simulator.data.masks import MaskTruth
from simulator.data.truth import Boxes
from simulator.errors import DataError, SampleError, UserError
from simulator.experiments.pictures.decoded import writer
from simulator.files import IMAGE, read_file, write_whole
from simulator.modalities.modality import Placing
from simulator.pipeline.walk import StageError, Walk
from simulator.render.experiment import Form
from simulator.tasks.task import Task

ASIDE = "rendered"
"""The name of the stack's chain in the plan."""
IMAGES, SPOOL, MASKS = "images", ".spool", "masks"


class Row(NamedTuple):
    """A sample that is kept.

    Attributes:
        sample: its name in the data.
        name: of its file below the folder that has the images, or its shard.
        sha256: of its PNG or tensor.
        truth: as JSON: a class, a text, or objects; None: there is none, or a mask beside it.
    """

    sample: str
    name: str
    sha256: str
    truth: Any


@dataclass(frozen=True, slots=True)
class Keeper:
    """Writes what comes of each sample; plain data, so that any process can.

    Attributes:
        home: the folder of the rendered data.
        format: what is kept of a sample.
        task: what its truth is of.
        placing: where a sample lies in the network's input.
        names: of each sample's file.
    """

    home: Path
    format: Form
    task: Task
    placing: Placing
    names: Mapping[str, str]

    def identity(self) -> Any:
        """Return what truths depend on besides the samples."""
        return self.placing.identity()

    def __call__(self, walk: Walk, outcomes: Mapping[int, Any]) -> Row:
        """Write a sample that is not there yet.

        Raises:
            StageError: the stack or its truth fails on it.
        """
        context = walk.context
        name = self.names[context.sample]
        place = self.home / (IMAGES if self.format == "folder" else SPOOL) / name
        known = place.exists()
        content = read_file(place, IMAGE) if known else self._content(walk.aside(ASIDE))
        try:
            truth = self._truth(context, name, known)
        except SampleError as error:
            raise StageError("truth", error) from error
        if not known:
            _write(place, content)
        return Row(context.sample, name, hashlib.sha256(content).hexdigest(), truth)

    def _content(self, value: Any) -> bytes:
        if self.format == "npy":
            if not isinstance(value, np.ndarray) or len(value) != 1:
                raise UserError("--format npy: for networks with one input, a row a sample")
            out = io.BytesIO()
            np.save(out, value[0])
            return out.getvalue()
        whole = isinstance(value, np.ndarray) and value.ndim == 3 and value.shape[2] == 3
        if not whole or value.dtype != np.uint8:
            got = array_words(value) if isinstance(value, np.ndarray) else "no pixels"
            raise UserError(
                f"--format {self.format}: a PNG keeps 8-bit RGB, and the stack gives {got} before "
                "it normalizes; use --format npy"
            )
        return _png().png(value)

    def _truth(self, context: Context, name: str, known: bool) -> Any:
        """A truth as JSON, in the pixels that are kept; a mask is written."""
        truth = context.truth
        if truth is None or not self.task.in_pixels:
            return truth
        self.task.opened(truth, context.source)
        placed = self.task.placed(truth, self.placing(context.source))
        if isinstance(placed, Boxes):
            return _objects(placed)
        if not known:
            _write(self.home / MASKS / Path(name).with_suffix(".png"), _png().png(placed.read()))
        return None


def keeper(
    home: Path, format: Form, task: Task, placing: Placing, items: Sequence[Item],
    suffixes: Sequence[str], shard: int,
) -> Keeper:  # fmt: skip
    """Plan what is written.

    Args:
        home: the folder of the rendered data.
        format: what is kept of a sample.
        task: what truths are of.
        placing: where a sample lies in the network's input.
        items: the samples.
        suffixes: the ends of their names.
        shard: samples of a shard.

    Raises:
        UserError: a truth cannot be written, or no installed library writes PNG.
        DataError: two samples would be one file.
    """
    for item in items:
        if not isinstance(item.truth, (int, str, Boxes, MaskTruth, type(None))):
            raise UserError(
                f"render: what is annotated for {task.name} cannot be written; classes, texts, "
                "boxes and masks can"
            )
    if format != "npy" and writer() is None:
        raise UserError("render: no installed backend writes PNG; pip install pillow")
    names = {
        item.name: _name(item.name, number, format, suffixes, shard)
        for number, item in enumerate(items)
    }
    owners: dict[str, str] = {}
    for sample, name in names.items():
        if (other := owners.setdefault(name, sample)) != sample:
            raise DataError(f"{other} and {sample} would both be written to {name}; rename one")
    return Keeper(home, format, task, placing, names)


def _name(sample: str, number: int, format: Form, suffixes: Sequence[str], shard: int) -> str:
    if format == "folder":
        stem, ending = posixpath.splitext(sample)
        return f"{stem if ending.lower() in suffixes else sample}.png"
    ending = "png" if format == "tar" else "npy"
    return f"{number // shard:04d}.{format}/{number:08d}.{ending}"


@cache
def _png() -> ImageWriter:
    found = writer()
    assert found is not None
    return found


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, content)


def _objects(truth: Boxes) -> dict[str, Any]:
    assert truth.size is not None
    arrays = {key: getattr(truth, key) for key in ("xywh", "classes", "crowd", "area", "difficult")}
    return {"size": [*truth.size], **{key: array.tolist() for key, array in arrays.items()}}
