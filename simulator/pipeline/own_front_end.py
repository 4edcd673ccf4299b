"""The step of a front end that is not ours, and the check of what it gives."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, SampleFile, clock
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.errors import SampleError
from simulator.modalities.modality import Feed
from simulator.profile.implementations import Choice


@dataclass(frozen=True, eq=False)
class OwnFrontEnd(Recipe):
    """Lets what is not ours make the network's input, in worker processes.

    Attributes:
        choice: the front end.
        feeds: the inputs that the network takes.
    """

    choice: Choice
    feeds: tuple[Feed, ...]
    stage = "front_end"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def identity(self) -> Any:
        """Return the front end, with the digests of its files, and the inputs."""
        wanted = [[f.name, f.dtype.str, list(f.shape), f.axes] for f in self.feeds]
        return ["front_end", self.choice.identity(), wanted]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what asks a worker; workers start with the first samples."""
        call = runtimes.apart(self.choice, "tensors")

        def apply(_: Any, context: Context) -> Array | Mapping[str, Array]:
            with clock.excluding():
                sample = file_of(context)
            found = call(sample)
            with clock.excluding():
                return fitted(found, self.feeds)

        return apply


def file_of(context: Context) -> SampleFile:
    """Return a sample as a file: its own, where no condition has changed its bytes."""
    place, data = getattr(context.item, "path", None), context.source.data
    if isinstance(place, Path):
        known = context.item.sha256
        same = hashlib.sha256(data).hexdigest() == known if known else place.read_bytes() == data
        if same:
            return SampleFile(context.sample, Path(os.path.abspath(place)), None)
    return SampleFile(context.sample, None, data)


def fitted(
    found: Array | Mapping[str, Array], feeds: Sequence[Feed]
) -> Array | Mapping[str, Array]:
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
            given, wanted = ", ".join(found) or "nothing", ", ".join(map(str, names))
            raise SampleError(f"gave the inputs {given}; the network takes {wanted}")
        return {str(feed.name): _one(found[str(feed.name)], feed) for feed in feeds}
    if len(feeds) > 1:
        wanted = ", ".join(str(feed.name) for feed in feeds)
        raise SampleError(f"gave one array; the network takes {wanted}: give a dict of arrays")
    return _one(found, feeds[0])


def _one(array: Array, feed: Feed) -> Array:
    laid = next((one for one in _layouts(array, feed.axes) if _fits(one.shape, feed.shape)), None)
    kinds = "f" if feed.dtype.kind == "f" else feed.dtype.kind + "iu" * (feed.dtype.kind in "iu")
    if laid is None or array.dtype.kind not in kinds:
        raise SampleError(f"gave {described(array)}; the network takes {_wanted(feed)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise SampleError(f"gave {described(array)} with values that are not finite")
    with np.errstate(over="ignore"):
        cast = np.ascontiguousarray(laid, feed.dtype)
    if array.dtype.kind in "iu" and not np.array_equal(cast, laid):
        raise SampleError(f"gave {described(array)}, which {feed.dtype} cannot hold")
    return cast


def _layouts(array: Array, axes: str) -> list[Array]:
    """The array as it is, with a batch of 1, and both with the channels at the other end."""
    found = [array, array[None]]
    if axes in ("NCHW", "NHWC"):
        to = (0, 3, 1, 2) if axes == "NCHW" else (0, 2, 3, 1)
        found += [one.transpose(to) for one in found if one.ndim == len(axes)]
    return found


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        b in (None, a) for a, b in zip(shape, wanted, strict=True)
    )


def described(array: Array) -> str:
    """Return an array's type and shape, for messages; and the range of one with integers."""
    shape = "x".join(map(str, array.shape)) or "a single value"
    if array.dtype.kind in "iu" and array.size:
        return f"{array.dtype} {shape} of {array.min()} to {array.max()}"
    return f"{array.dtype} {shape}"


def _wanted(feed: Feed) -> str:
    shape = "x".join("?" if side is None else str(side) for side in feed.shape)
    return f"{feed.dtype} {shape}" + f" ({feed.axes})" * bool(feed.axes)
