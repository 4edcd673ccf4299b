"""What all perturbation sequences share: frames, the place where they act, and their draws."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from simulator.conditions.condition import Condition, Disturb
from simulator.conditions.corruptions import crop224
from simulator.conditions.corruptions.corruption import CROP224, ORIGINAL, PLACES, on_frame
from simulator.contract import U8, Encoded, Frame, inspect
from simulator.contract.recipe import Boundary, Recipe
from simulator.errors import UserError


@dataclass(frozen=True, slots=True)
class Window:
    """The part of an image that a frame shows.

    Attributes:
        top: its first row.
        left: its first column.
        height: rows.
        width: columns.
    """

    top: int
    left: int
    height: int
    width: int

    @classmethod
    def of(cls, rgb: U8) -> Window:
        """Return the whole image."""
        return cls(0, 0, *rgb.shape[:2])

    def cut(self, rgb: U8) -> U8:
        """Return a copy of the part."""
        rows = slice(self.top, self.top + self.height)
        return rgb[rows, self.left : self.left + self.width].copy()


@dataclass(frozen=True, eq=False)
class SequenceFrame(Condition):
    """One frame of one sequence.

    Attributes:
        frame: from 0 to ``frames - 1``.
        place: ``original``: on the frame that each stack's own decoder gives, in its own size;
            ``crop224``: on the file, as ImageNet-P was made before its frames became a video: the
            shorter side is resized to 256, the sequence shows the middle 224x224, saved as PNG.
        difficulty: of noise, how strong it is: the released sets ``_2`` and ``_3``.
        frames: how many there are.
        noise: whether frames are independent draws, and are compared with the first one.
        shares: whether all frames of a sample have the same draws.
        strengths: the parameter of each difficulty; none where there is but one.
    """

    frame: int
    place: str = ORIGINAL
    difficulty: int = 1
    modality: ClassVar[str | None] = "image"
    examples: ClassVar[tuple[str, ...]] = ("1", "3", "30", "3,crop224")
    frames: ClassVar[int] = 31
    noise: ClassVar[bool] = False
    shares: ClassVar[bool] = False
    strengths: ClassVar[tuple[float, ...]] = ()
    shifts: ClassVar[bool] = False
    """Whether what an image shows moves from frame to frame."""

    @property
    def acts_on(self) -> Boundary:  # type: ignore[override]
        """The frame, or the source for ``crop224``."""
        return Boundary.SOURCE if self.place == CROP224 else Boundary.FRAME

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether the image is moved, or cut under ``crop224``."""
        return self.shifts or self.place == CROP224

    @classmethod
    def parse(cls, parameters: str) -> Self:
        """Read ``FRAME``, and after commas a place, and of noise ``difficulty=2``, in any order.

        Raises:
            UserError: the frame or an option does not exist.
        """
        number, *given = parameters.split(",")
        known: dict[str, tuple[str, Any]] = {place: ("place", place) for place in PLACES}
        for one in range(1, len(cls.strengths) + 1):
            known[f"difficulty={one}"] = "difficulty", one
        chosen = dict(known[one] for one in given if one in known)
        if number not in map(str, range(cls.frames)) or len(chosen) < len(given):
            raise UserError(
                f"--under {cls.name}:{parameters}: {cls.name}:FRAME or {cls.name}:FRAME,OPTIONS "
                f"expected, with FRAME 0 to {cls.frames - 1} and OPTIONS of {', '.join(known)}"
            )
        return cls(int(number), **chosen)

    def parameters(self) -> dict[str, Any]:
        """Return the frame and the place, and of noise the difficulty."""
        found = {"frame": self.frame, "place": self.place}
        return found | {"difficulty": self.difficulty} if self.strengths else found

    @property
    def text(self) -> str:
        """The condition as written for ``--under``, without what is the usual."""
        return f"{self.name}:{self.frame}{self._suffix}"

    @property
    def draws(self) -> str:
        """The text, or what the texts of all frames have in common."""
        return f"{self.name}{self._suffix}" if self.shares else self.text

    @property
    def _suffix(self) -> str:
        place = "" if self.place == ORIGINAL else f",{self.place}"
        return f",difficulty={self.difficulty}{place}" if self.difficulty > 1 else place

    @property
    def strength(self) -> float:
        """The parameter of its difficulty."""
        return self.strengths[self.difficulty - 1]

    def identity(self) -> Any:
        """Return the parameters, and for ``crop224`` the decoder, the resizer and the writer."""
        parts = crop224.identity() if self.place == CROP224 else []
        return [self.name, self.parameters(), *parts]

    def open(self) -> Disturb:
        """Return the function for its place."""
        return self._file() if self.place == CROP224 else self._frame

    def preparation(self) -> Recipe | None:
        """Return the resize that all frames at ``crop224`` begin with."""
        return crop224.Shorter256() if self.place == CROP224 else None

    def memory(self, source: Encoded) -> int:
        """Return what a few float64 copies of the image need."""
        return 0 if self.place == CROP224 else 120 * source.width * source.height

    @abstractmethod
    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Return what the frame shows.

        Args:
            rgb: (H, W, 3) uint8 of any size from 1x1; not changed.
            window: the part that is shown.
            rng: draws what has chance in it.

        Returns:
            (h, w, 3) uint8 of the window's size.
        """

    def _frame(self, frame: Frame, rng: np.random.Generator) -> Frame:
        return on_frame(frame, lambda rgb: self.apply(rgb, Window.of(rgb), rng))

    def _file(self) -> Disturb:
        resize, writer, side = crop224.resized(), crop224.writer(), crop224.SIDE

        def disturb(image: Encoded, rng: np.random.Generator) -> Encoded:
            small, top, left = resize(image)
            shown = self.apply(small, Window(top, left, side, side), rng)
            return inspect(image.name, writer.png(shown))

        return disturb
