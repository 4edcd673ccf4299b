"""From a network's scores to a class for each pixel of the image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8, Array
from simulator.data.masks import IGNORE
from simulator.errors import ModelError
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import stored
from simulator.tasks.finite import check_finite, check_probabilities
from simulator.tasks.segmentation.card import MAX_CLASSES, Settings, check_count, places, show
from simulator.tasks.segmentation.sampling import Taps, in_image, resize, resized

Plane = NDArray[np.float32]


def decode(outputs: Mapping[str, Array], settings: Settings, placement: Placement) -> U8:
    """Choose a class for every pixel of the image.

    The output is resized to ``settings.size``, and its part that is not padding to the image; the
    argmax is between the two, or at the end where ``resized`` is logits. Scores are interpolated
    in float32, one class after the other. Nearest gives the same before and after an argmax.

    Args:
        outputs: by name; that of the card has a batch of 1.
        settings: see :func:`simulator.tasks.segmentation.card.resolve`.
        placement: where the image lies in the network's input.

    Returns:
        (height, width) uint8 of the image as it is stored; of equal scores the lowest class wins.
        Pixels that the network did not see, because of a crop (before or after the resize) or of
        a dropped odd row or column, are 255: no answer, and not judged.

    Raises:
        ModelError: the output is not what the card promises.
        NotFinite: the model gave NaN or an infinity.
    """
    settings = settings.at(placement)
    if settings.scores not in outputs:
        raise ModelError(f"no output {settings.scores!r}; the model gave {', '.join(outputs)}")
    planes = _planes(outputs[settings.scores], settings)
    up = _up(planes.shape[1:], settings)
    (rows, seen_rows), (columns, seen_columns) = in_image(placement, settings)
    if settings.resized == "logits":
        mask = _argmax(resize(resize(plane, *up), rows, columns) for plane in planes)
    else:
        if settings.kind == "labels":
            small = resize(_as_mask(planes[0], settings.scores), *up)
        elif settings.upsample and settings.upsample.mode == "nearest":
            small = resize(_argmax(planes), *up)
        else:
            small = _argmax(resize(plane, *up) for plane in planes)
        mask = resize(small, rows, columns)
    if not (seen_rows.all() and seen_columns.all()):
        mask = np.where(seen_rows[:, None] & seen_columns, mask, np.uint8(IGNORE))
    top, left, bottom, right = placement.cut
    if any(placement.cut):
        mask = np.pad(mask, [(top, bottom), (left, right)], constant_values=IGNORE)
    return stored(mask, placement.orientation)


def _planes(output: Array, settings: Settings) -> NDArray[np.float32]:
    """The output as (C, h, w) float32, finite; C is 1 for labels."""
    name, labels = settings.scores, settings.kind == "labels"
    if output.dtype.kind not in "fiu":
        raise ModelError(f"output {name!r}: expected numbers, got {output.dtype}")
    channel, *sides = places(name, output.shape, settings.kind, settings.layout)
    count = 1 if labels else output.shape[channel]
    if not labels:
        check_count(name, count)
    last = settings.layout == "NHWC"
    h, w = (output.shape[side] for side in sides)
    values = np.moveaxis(output[0], -1, 0) if last else output.reshape(count, h, w)
    with np.errstate(over="ignore"):  # a float64 that is no float32 is refused as an infinity
        planes = np.ascontiguousarray(values, np.float32)
    check_finite(planes)
    if settings.kind == "probabilities" and output.dtype.kind == "f":
        check_probabilities(planes, f"output {name!r}: ")
    return planes


def _as_mask(values: Plane, name: str) -> U8:
    """Labels that the model chose itself, of any type."""
    mask = values.astype(np.uint8) if values.min() >= 0 and values.max() < MAX_CLASSES else None
    if mask is None or not np.array_equal(mask, values):
        raise ModelError(
            f"output {name!r}: labels are whole numbers from 0 to {MAX_CLASSES - 1}, got"
            f" {float(values.min()):.6g} to {float(values.max()):.6g}"
        )
    return mask


def _up(found: tuple[int, ...], settings: Settings) -> tuple[Taps, Taps]:
    """From the output to where classes are chosen."""
    wanted, sampling = settings.size, settings.upsample
    if sampling is None:
        if found != wanted:
            raise ModelError(
                f"output {settings.scores!r}: classes are chosen at {wanted[0]}x{wanted[1]}, but it"
                f" is {show(found)}; write logits_upsample, mode and coordinate_transformation_mode"
            )
        sampling = settings.resize
    rows, columns = (resized(*sides, sampling) for sides in zip(wanted, found, strict=True))
    return rows, columns


def _argmax(planes: Iterable[Plane]) -> U8:
    """The class of the largest score; planes are made and held one at a time."""
    classes = iter(planes)
    best = next(classes).copy()
    mask = np.zeros(best.shape, np.uint8)
    for index, plane in enumerate(classes, 1):
        larger = (plane > best).view(np.uint8)
        np.maximum(mask, larger * np.uint8(index), out=mask)
        np.maximum(best, plane, out=best)
    return mask
