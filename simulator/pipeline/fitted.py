"""What is not ours gives, held against what the network takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.contract import Array, array_words
from simulator.contract.model import of_shape, shape_words
from simulator.errors import SampleError
from simulator.modalities.modality import Feed
from simulator.pipeline.listed import Tensors

Shape = tuple[int | None, ...]


def as_outputs(found: Tensors, wanted: Mapping[str, Shape]) -> dict[str, Array]:
    """Return outputs by their names on the card; a batch of 1 may be missing.

    One class more or fewer than the card has is let through: 1001 classes with a background are
    what is compared with 1000 without.

    Args:
        found: one array, or several by name.
        wanted: the shapes of those that the card needs, by name.

    Raises:
        SampleError: they do not fit; the message has both shapes.
    """
    if not isinstance(found, Mapping):
        found = dict.fromkeys(wanted, found) if len(wanted) == 1 else {"": found}
    told = ", ".join(f"{name} {array_words(one)}".strip() for name, one in found.items())
    must = ", ".join(f"{name} {shape_words(shape)}" for name, shape in wanted.items())
    outputs = {}
    for name, shape in wanted.items():
        one = found.get(name)
        laid = () if one is None or one.dtype.kind not in "fiu" else (one, one[None])
        fitting = [
            each for each in laid if of_shape(each.shape, shape) or _beside(each.shape, shape)
        ]
        if not fitting:
            more = (
                one is not None
                and one.ndim > 0
                and of_shape((*one.shape[:-1], one.shape[-1] - 1), shape)
            )
            hint = ": one class more, perhaps a background class at the start" if more else ""
            raise SampleError(f"gave {told}; the card's outputs are {must}{hint}")
        outputs[name] = np.ascontiguousarray(fitting[0], np.float32)
    return outputs


def fitted(found: Tensors, feeds: Sequence[Feed]) -> Tensors:
    """Return the network's input as the network takes it.

    A batch of 1 may be missing, and the channels of a picture may be last in place of first, or
    first in place of last. Floats of another width are rounded to that of the input.

    Args:
        found: what a front end made: one array, or several by the names of the inputs.
        feeds: the inputs of the network.

    Raises:
        SampleError: it does not fit; the message has both shapes.
    """
    if isinstance(found, Mapping):
        names = [feed.name for feed in feeds]
        if len(feeds) == 1 and len(found) == 1:
            return _one(next(iter(found.values())), feeds[0])
        if set(found) != set(names):
            given = ", ".join(found) or "nothing"
            wanted = ", ".join(map(str, names)) if len(feeds) > 1 else f"one, {_wanted(feeds[0])}"
            raise SampleError(f"gave the inputs {given}; the network takes {wanted}")
        return {str(feed.name): _one(found[str(feed.name)], feed) for feed in feeds}
    if len(feeds) > 1:
        wanted = ", ".join(str(feed.name) for feed in feeds)
        raise SampleError(f"gave one array; the network takes {wanted}: give a dict of arrays")
    return _one(found, feeds[0])


def changes(found: Tensors, feeds: Sequence[Feed]) -> list[str]:
    """Return what :func:`fitted` changes of what a front end made, besides a batch of 1."""
    lines = []
    for feed in feeds:
        array = next(iter(found.values())) if isinstance(found, Mapping) else found
        if isinstance(found, Mapping) and len(feeds) > 1:
            array = found[str(feed.name)]
        if array.dtype.newbyteorder("=") != feed.dtype:
            lines.append(f"{array.dtype}, rounded to the network's {feed.dtype}")
        plain = _layouts(array, "")
        if not any(of_shape(one.shape, feed.shape) for one in plain):
            lines.append(f"{array_words(array)}, transposed to the network's {feed.axes}")
    return lines


def _one(array: Array, feed: Feed) -> Array:
    laid = next(
        (one for one in _layouts(array, feed.axes) if of_shape(one.shape, feed.shape)), None
    )
    kinds = "f" if feed.dtype.kind == "f" else feed.dtype.kind + "iu" * (feed.dtype.kind in "iu")
    if laid is None or array.dtype.kind not in kinds:
        wanted = _wanted(feed)
        if laid is not None and array.dtype == np.uint8 and feed.dtype.kind == "f":
            wanted += ": give it floats, scaled and normalized as in training"
        raise SampleError(f"gave {array_words(array)}; the network takes {wanted}")
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(laid, feed.dtype)
    if array.dtype.kind == "f" and not np.isfinite(cast).all():
        raise SampleError(f"gave {array_words(array)} with values that are not finite")
    if array.dtype.kind in "iu" and not np.array_equal(cast, laid):
        raise SampleError(f"gave {array_words(array)}, which {feed.dtype} cannot hold")
    return cast


def _layouts(array: Array, axes: str) -> list[Array]:
    """The array as it is, with a batch of 1, and both with the channels at the other end."""
    found = [array, array[None]]
    if axes in ("NCHW", "NHWC"):
        to = (0, 3, 1, 2) if axes == "NCHW" else (0, 2, 3, 1)
        found += [one.transpose(to) for one in found if one.ndim == len(axes)]
    return found


def _beside(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    """Whether there is one class more or fewer in a row of classes."""
    count = wanted[-1] if len(wanted) == 2 else None
    return count is not None and len(shape) == 2 and abs(shape[1] - count) == 1


def _wanted(feed: Feed) -> str:
    shape = "x".join("?" if side is None else str(side) for side in feed.shape)
    return f"{feed.dtype} {shape}" + f" ({feed.axes})" * bool(feed.axes)
