"""What all perturbation sequences share: frames, the place where they act, and their draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from simulator.conditions.condition import Parameters
from simulator.conditions.image_condition import (
    CROP224,
    ORIGINAL,
    PLACES,
    ImageCondition,
    Shorter256,
    Window,
)
from simulator.contract import U8
from simulator.contract.recipe import Recipe
from simulator.errors import UserError


@dataclass(frozen=True, eq=False)
class SequenceFrame(ImageCondition):
    """One frame of one sequence.

    Attributes:
        frame: from 0 to ``frames - 1``.
        place: see :class:`ImageCondition`; under ``crop224`` a frame is as in ImageNet-P before its
            frames became a video.
        difficulty: of noise, how strong it is: the released sets ``_2`` and ``_3``.
        frames: how many there are.
        noise: whether frames are independent draws, and are compared with the first one.
        shares: whether all frames of a sample have the same draws.
        strengths: the parameter of each difficulty; none where there is but one.
        change: the function.
    """

    frame: int
    place: str = ORIGINAL
    difficulty: int = 1
    lossless: ClassVar[bool] = True
    frames: ClassVar[int] = 31
    noise: ClassVar[bool] = False
    shares: ClassVar[bool] = False
    strengths: ClassVar[tuple[float, ...]] = ()
    change: ClassVar[Callable[..., U8]]

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

    def parameters(self) -> Parameters:
        """Return the frame and the place, and of noise the difficulty."""
        found: Parameters = {"frame": self.frame, "place": self.place}
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
        stronger = f",difficulty={self.difficulty}" if self.difficulty > 1 else ""
        return f"{stronger}{self.place_suffix}"

    @property
    def strength(self) -> float:
        """The parameter of its difficulty."""
        return self.strengths[self.difficulty - 1]

    def preparation(self) -> Recipe | None:
        """Return the resize that all frames at ``crop224`` begin with."""
        return Shorter256() if self.place == CROP224 else None

    def shown(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Return what the frame shows: what moves comes from the whole image."""
        if self.shifts:
            return self.change(self, rgb, window)
        return self.change(self, window.cut(rgb), rng)


def _sequence(change: Callable[..., U8], summary: str, **own: Any) -> type[SequenceFrame]:
    named = {
        "name": change.__name__,
        "summary": f"ImageNet-P: {summary}",
        "change": staticmethod(change),
        "examples": ("1", "3", "30", "3,crop224"),
        "__module__": change.__module__,
        "__doc__": change.__doc__,
    }
    return type(change.__name__, (SequenceFrame,), named | own)


def moving(
    summary: str, frames: int = 31
) -> Callable[[Callable[[SequenceFrame, U8, Window], U8]], type[SequenceFrame]]:
    """Make a function of a frame, an image and the part that is shown a sequence of its name.

    Args:
        summary: what happens, for reports.
        frames: how many frames there are.
    """
    return lambda change: _sequence(change, summary, frames=frames, shifts=True)


def still(
    summary: str, **own: Any
) -> Callable[[Callable[[SequenceFrame, U8, np.random.Generator], U8]], type[SequenceFrame]]:
    """Make a function of a frame, the image that it shows and a generator a sequence of its name.

    Args:
        summary: what happens, for reports.
        own: further attributes of the condition.
    """
    return lambda change: _sequence(change, summary, **own)
