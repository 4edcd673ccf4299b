"""False and missed objects that stay, over the frames of a video with a permanent fault.

Source:
    Qutub et al., SAFECOMP 2022, section 6: an M of N tracker of pixels, in place of one of objects.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.impact import Blobs

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rule:
    """When a pixel of a blob is persistent.

    The paper's second condition has two readings. A, a pixel nearby has itself been occupied in
    :attr:`least` frames, never fires for an object that moves by more than a few pixels a frame:
    no pixel has. This is B: :attr:`least` of the frames have an occupied pixel nearby, one or
    another. The pixel itself is occupied now, or else every blob would grow by the radius.

    Attributes:
        window: N, how many frames count, this one among them; the paper's 15 are half a second.
        least: M, in how many of them the pixel, or one nearby, is occupied.
        radius: R, how far away a pixel is nearby, in pixels from center to center.
    """

    window: int = 15
    least: int = 10
    radius: float = 50.0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.window or self.radius < 0:
            raise ValueError(f"1 to {self.window} frames and a radius of at least 0, got {self}")


class Tracker:
    """Finds the persistent pixels of one kind of blob, frame after frame.

    Args:
        rule: when a pixel is persistent.
        coasting: whether a pixel stays persistent where it is not occupied in this frame, but was
            in enough of the last ones; the paper does so for false objects, not for missed ones.
    """

    def __init__(self, rule: Rule, coasting: bool) -> None:
        self.rule, self.coasting = rule, coasting
        self._frames: deque[tuple[Mask, Mask]] = deque()
        self._here: NDArray[np.int32] | None = None
        self._near: NDArray[np.int32] | None = None

    def update(self, blob: Mask) -> Mask:
        """Add a frame and return its persistent pixels.

        Args:
            blob: (H, W) bool; all frames have one size.

        Returns:
            (H, W) bool. Nothing is persistent before frame M.
        """
        near = nearby(blob, self.rule.radius)
        if self._here is None or self._near is None:
            self._here, self._near = np.zeros((2, *blob.shape), np.int32)
        if len(self._frames) == self.rule.window:
            old, old_near = self._frames.popleft()
            self._here -= old
            self._near -= old_near
        self._frames.append((blob.copy(), near))
        self._here += blob
        self._near += near
        stays = self._here >= self.rule.least
        if not self.coasting:
            stays &= blob
        found: Mask = stays | (blob & (self._near >= self.rule.least))
        return found


def nearby(blob: Mask, radius: float) -> Mask:
    """Return the pixels whose center is at most *radius* from that of an occupied one.

    The distance along the row is known for every pixel; a circle is a row of some length for each
    row that it has. That is several times faster than a distance transform of the whole image.
    """
    found = np.zeros_like(blob)
    rows, columns = np.flatnonzero(blob.any(axis=1)), np.flatnonzero(blob.any(axis=0))
    if not rows.size:
        return found
    reach = int(radius)
    window = (
        slice(max(int(rows[0]) - reach, 0), int(rows[-1]) + reach + 1),
        slice(max(int(columns[0]) - reach, 0), int(columns[-1]) + reach + 1),
    )
    apart, part = _along_rows(blob[window], reach), found[window]
    for up in range(min(reach, len(part) - 1) + 1):
        within = apart <= int(math.sqrt(radius * radius - up * up))
        part[up:] |= within[: len(part) - up]
        part[: len(part) - up] |= within[up:]
    return found


def _along_rows(blob: Mask, most: int) -> NDArray[np.uint16]:
    """How far the nearest occupied pixel of its row is from each; *most* + 1 if farther."""
    place = np.arange(blob.shape[1], dtype=np.int32)
    far = np.int32(2**30)
    before = np.maximum.accumulate(np.where(blob, place, -far), axis=1)
    after = np.minimum.accumulate(np.where(blob, place, far)[:, ::-1], axis=1)[:, ::-1]
    apart = np.minimum(place - before, after - place)
    return np.minimum(apart, most + 1).astype(np.uint16)


@dataclass(frozen=True, slots=True)
class Frame:
    """What persists in one frame.

    Attributes:
        false: A_FP, the share of the image that false objects occupy persistently.
        missed: A_FN, the share of the area that objects occupy without the fault and that stays
            free with it; None where nothing is there without the fault.
    """

    false: float
    missed: float | None


@dataclass(frozen=True, slots=True)
class Severity:
    """What one permanent fault did to a video.

    Attributes:
        frames: one a frame.
        false: the mean of A_FP over the frames in which a false object persists; 0 where none does.
        missed: the same of A_FN.
        false_frames: in how many frames a false object persists.
        missed_frames: the same of missed ones.
    """

    frames: tuple[Frame, ...]
    false: float
    missed: float
    false_frames: int
    missed_frames: int


def persistent(blobs: Iterable[Blobs], rule: Rule) -> Iterable[tuple[Frame, Mask, Mask]]:
    """Yield each frame's areas, and the masks of persistent false and missed pixels.

    Args:
        blobs: of the frames, in order; all of one size.
        rule: when a pixel is persistent.
    """
    false, missed = Tracker(rule, coasting=True), Tracker(rule, coasting=False)
    for blob in blobs:
        shown, hidden = false.update(blob.false), missed.update(blob.missed)
        seen = Blobs(shown, hidden, blob.occupied)
        yield Frame(seen.false_area, seen.missed_area), shown, hidden


def severity(frames: Sequence[Frame]) -> Severity:
    """Return how severe a permanent fault is.

    A fault is a persistent corruption of level L where ``false`` or ``missed`` is above L; the rate
    is of faults, not of frames: see :func:`simulator.analysis.faults.exceeding`.

    Args:
        frames: of the whole video.
    """
    shown = [frame.false for frame in frames if frame.false > 0]
    hidden = [frame.missed for frame in frames if frame.missed]
    return Severity(tuple(frames), _mean(shown), _mean(hidden), len(shown), len(hidden))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
