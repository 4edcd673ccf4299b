"""Augmentation of the network's inputs: mirrored and shifted, drawn for each image and epoch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.errors import UserError

F32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Augmentation:
    """What is drawn.

    Attributes:
        flip: whether half of the images are mirrored, left to right.
        shift: by up to how many pixels an image is moved up or down, and left or right; what comes
            in is the image's own edge, mirrored.
    """

    flip: bool = False
    shift: int = 0

    @classmethod
    def parse(cls, words: Sequence[str]) -> Augmentation:
        """Read ``flip`` and ``shift:N``.

        Raises:
            UserError: a word is neither.
        """
        flip, shift = False, 0
        for word in words:
            if word == "flip":
                flip = True
            elif found := re.fullmatch(r"shift:([1-9]\d{0,3})", word):
                shift = int(found[1])
            else:
                raise UserError(f"--augment {word}: flip or shift:N expected, N in pixels")
        return cls(flip, shift)

    def __bool__(self) -> bool:
        return self.flip or self.shift > 0

    def apply(self, value: F32, rows: int, random: np.random.Generator) -> F32:
        """Return an input augmented.

        Args:
            value: one input.
            rows: the axis of rows; that of columns is the next.
            random: draws.
        """
        if self.flip and random.random() < 0.5:
            value = np.flip(value, rows + 1)
        if self.shift:
            around = [(self.shift, self.shift) if at in (rows, rows + 1) else (0, 0)
                      for at in range(value.ndim)]  # fmt: skip
            whole = np.pad(value, around, mode="reflect")
            for axis in (rows, rows + 1):
                first = int(random.integers(2 * self.shift + 1))
                whole = whole.take(range(first, first + value.shape[axis]), axis)
            value = whole
        return np.ascontiguousarray(value)
