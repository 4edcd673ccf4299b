"""The truth of segmentation: a class for each pixel, read when it is needed."""

from __future__ import annotations

import hashlib
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated as Checked
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from simulator import registry
from simulator.contract import MaskReader, Stage
from simulator.contract.warp import WarpOf
from simulator.data.annotated import Annotated, AnnotatedSpec, files_beside, map_classes
from simulator.data.folder import Truths
from simulator.data.format import DataCard
from simulator.data.label_kind import Samples
from simulator.data.labels import Labels, as_index
from simulator.data.tally import some
from simulator.errors import DataError, SampleError, unknown
from simulator.files import IMAGE
from simulator.places import ByteSource, InMemory, Where, read_sample

IGNORE = 255
"""The value of pixels that are not judged; so a model has at most 255 classes, 0 to 254."""

_JUDGED = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
CITYSCAPES = dict.fromkeys(range(34), IGNORE) | {value: i for i, value in enumerate(_JUDGED)}
"""Cityscapes' ``labelIds`` to ``trainIds``.

Source: https://github.com/mcordts/cityscapesScripts, ``cityscapesscripts/helpers/labels.py``.
"""

_VALUES = 1 << 16

Indices = NDArray[np.uint8]


def _train_ids(given: object) -> object:
    """A named table, or a document's keys made integers."""
    if given is None:
        return None
    if isinstance(given, str):
        if given != "cityscapes":
            raise ValueError(unknown("table", given, ["cityscapes"]))
        return CITYSCAPES
    if not isinstance(given, dict):
        raise ValueError("cityscapes, or a mapping of mask values to classes expected")
    found = {}
    for key, value in given.items():
        if (index := as_index(str(key))) is None:
            raise ValueError(f"{key!r} is no mask value; write an integer")
        found[index] = value
    return found


Value = Checked[int, Field(ge=0, le=65535)]
TrainIds = dict[Value, Checked[int, Field(ge=0, le=IGNORE)]]


class IndexMaskSpec(AnnotatedSpec):
    """A card of masks whose values stand for classes; see :func:`make_values`."""

    classes: str | None = None
    ignore: Value | None = None
    train_ids: Checked[
        TrainIds | None,
        BeforeValidator(_train_ids, json_schema_input_type=Literal["cityscapes"] | TrainIds | None),
    ] = None
    image_suffix: str | None = None
    mask_suffix: str = ".png"


class MaskTruth(ABC):
    """The mask of one image."""

    @final
    def read(self, size: tuple[int, int] | None = None) -> Indices:
        """Read the mask.

        Args:
            size: (height, width) of the image; None: the size is not checked.

        Returns:
            (H, W) uint8: indices of the model's labels, 0 to 254, and :data:`IGNORE`.

        Raises:
            SampleError: the mask cannot be read, has another size, or a value that is no class.
        """
        mask = self._read()
        if size is not None and mask.shape != size:
            (rows, columns), (height, width) = mask.shape, size
            raise SampleError(f"the mask has {columns}x{rows} pixels, the image {width}x{height}")
        return mask

    @abstractmethod
    def digest(self) -> str | None:
        """Return a digest of this truth; None where its file cannot be read."""

    def is_here(self) -> bool:
        """Whether its file, if it has one, is to be seen from this process."""
        return True

    def carried(self) -> MaskTruth:
        """Return it with the bytes of its file, for a process that does not see that.

        Raises:
            OSError: the file cannot be read.
        """
        return self

    @abstractmethod
    def _read(self) -> Indices:
        """Return the mask, of any size."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMask(MaskTruth):
    """A mask that is in memory.

    Attributes:
        mask: (H, W) uint8, classes and IGNORE.
    """

    mask: Indices

    def digest(self) -> str:
        """Return the SHA-256 of the classes and the size."""
        return hashlib.sha256(repr(self.mask.shape).encode() + self.mask.tobytes()).hexdigest()

    def _read(self) -> Indices:
        return self.mask


@dataclass(frozen=True, slots=True, eq=False)
class MovedMask(MaskTruth):
    """A mask whose pixels follow those of its image; a new pixel is not judged.

    Attributes:
        mask: of the image as it was.
        warp: where its pixels go.
    """

    mask: MaskTruth
    warp: WarpOf

    def digest(self) -> str | None:
        """Return the digest of the mask as it was: its condition is recorded elsewhere."""
        return self.mask.digest()

    def is_here(self) -> bool:
        """Whether the mask as it was is to be seen."""
        return self.mask.is_here()

    def carried(self) -> MovedMask:
        """Return it with the bytes of the mask as it was."""
        return replace(self, mask=self.mask.carried())

    def _read(self) -> Indices:
        before = self.mask.read()
        height, width = before.shape
        sources = np.rint(self.warp((height, width)).sources).astype(np.int64)
        rows, columns = sources[..., 0], sources[..., 1]
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        found = np.full(before.shape, IGNORE, np.uint8)
        found[inside] = before[rows[inside], columns[inside]]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class IndexMask(MaskTruth):
    """A PNG file whose values stand for classes.

    Attributes:
        path: where the file is.
        classes: (65536,) int16, for each value a class 0 to 254, IGNORE, or -1 for none; shared by
            the masks of a data set.
    """

    path: Where
    classes: NDArray[np.int16]

    def digest(self) -> str | None:
        """Return the SHA-256 of the file and of what its values mean."""
        try:
            data = read_sample(self.path, IMAGE)
        except SampleError:
            return None
        return hashlib.sha256(data + self.classes.tobytes()).hexdigest()

    def is_here(self) -> bool:
        """Whether the file is there."""
        return isinstance(self.path, ByteSource) or self.path.is_file()

    def carried(self) -> IndexMask:
        """Return it with the bytes of the file."""
        return replace(self, path=InMemory.of(self.path, IMAGE))

    def _read(self) -> Indices:
        try:
            data = read_sample(self.path, IMAGE)
        except SampleError as error:
            raise SampleError(f"{self.path}: {error}") from error
        name = posixpath.basename(str(self.path))
        mask = reader().indices(data, name)
        found = self.classes[mask]
        if found.min() < 0:
            strange = some(str(value) for value in np.unique(mask[found < 0]))
            raise SampleError(f"{name}: values that are neither a class nor ignored: {strange}")
        return found.astype(np.uint8)


class IndexMasks(Annotated):
    """Masks in PNG files of class indices: a folder, with names and folders as the images'.

    ``image_suffix``, the end of an image's name, gives way to ``mask_suffix``; images without it
    are left out. None: whatever follows the last dot. No mask is opened.
    """

    Spec = IndexMaskSpec
    in_folder = True

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> Truths:
        """Return the masks of the images that have one."""
        spec = card.spec
        assert isinstance(spec, IndexMaskSpec)
        values = make_values(spec.train_ids, spec.ignore, card.names(), labels, str(card.path))
        found = files_beside(
            samples,
            self.annotations(card),
            spec.mask_suffix,
            image_ending=spec.image_suffix,
            missing="without a mask",
        )
        return {name: IndexMask(place, values) for name, place in found.items()}


MASKS = IndexMasks()


def make_values(
    train_ids: Mapping[int, int] | None,
    ignore: int | None,
    names: tuple[str, ...] | None,
    labels: Labels | None,
    where: str,
) -> NDArray[np.int16]:
    """Return the class of every value of a mask; see :class:`IndexMask`.

    Args:
        train_ids: the class of each value, IGNORE for none; None: the values are the classes.
        ignore: the value of pixels that are not judged.
        names: the classes in index order; each becomes the model's class of that name.
        labels: the classes of the model.
        where: the file, for messages.

    Raises:
        DataError: the model does not have a class, or has more than 255.
    """
    sized = next((len(known) for known in (names, labels) if known is not None), IGNORE)
    if max(sized, len(labels) if labels else 0) > IGNORE:
        raise DataError(f"{where}: masks have at most {IGNORE} classes, got {sized}")
    target = np.arange(sized)
    if names is not None and labels is not None:
        index = map_classes(names, names, labels, where)
        target = np.array([index[name] for name in names])
    table = np.full(_VALUES, -1, np.int16)
    meaning = {i: i for i in range(sized)} if train_ids is None else train_ids
    for value, train_id in meaning.items():
        if train_id != IGNORE and train_id >= sized:
            raise DataError(f"{where}: train_ids: {value}: {train_id} is not below {sized} classes")
        table[value] = IGNORE if train_id == IGNORE else target[train_id]
    if ignore is not None:
        table[ignore] = IGNORE
    return table


@cache
def reader() -> MaskReader:
    """Return the installed reader of mask files.

    Raises:
        MissingLibrary: its library is not installed.
    """
    backend = next(registry.serving(Stage.MASK))
    registry.check_installed(backend, f"masks are read with {backend.name}, which needs")
    made: MaskReader = backend.of(Stage.MASK)[0].make({})
    return made
