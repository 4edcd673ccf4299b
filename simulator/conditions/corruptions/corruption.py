"""Corruptions: functions of an image, each with parameters for every severity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from simulator.conditions.condition import Parameters
from simulator.conditions.image_condition import CROP224, ORIGINAL, PLACES, ImageCondition, Window
from simulator.contract import U8
from simulator.contract.raw import Raw
from simulator.contract.warp import Size, Warp
from simulator.errors import UserError
from simulator.profile.implementations import Choice

Change = Callable[[U8, Any, np.random.Generator], U8]
"""From an image, (H, W, 3) uint8 of any size from 1x1, which is not changed, the parameters of a
severity, and a generator, to the corrupted image. Also a RandomState with ``integers`` will do."""
Follow = Callable[[Size, Any], Warp]
"""From the size of an image and the parameters of a severity to where its pixels go."""

np.empty(31 << 20, np.uint8)
"""Allocated and freed: glibc then keeps freed arrays up to this size instead of giving them back to
the system, whose fresh pages cost a third of the time of all corruptions (measured)."""


@dataclass(frozen=True, eq=False)
class Corruption(ImageCondition):
    """One corruption at one severity.

    Attributes:
        severity: 1 (mild) to the number of *levels*.
        place: see :class:`ImageCondition`.
        levels: the parameters of each severity, mildest first.
        change: the function.
        follow: where pixels go, if it moves them.
        tools: the implementations of libraries that it uses.
        raw: the function of a raw plane, if it acts there as well.
    """

    severity: int
    place: str = ORIGINAL
    levels: ClassVar[tuple[Any, ...]]
    change: ClassVar[Callable[..., U8]]
    follow: ClassVar[Callable[..., Warp] | None] = None
    tools: ClassVar[Callable[..., Sequence[Choice]]] = staticmethod(lambda: ())
    raw: ClassVar[Callable[..., Raw] | None] = None

    @classmethod
    def parse(cls, parameters: str) -> Self:
        """Read ``SEVERITY`` or ``SEVERITY,PLACE``.

        Raises:
            UserError: the severity or the place does not exist.
        """
        known = range(1, len(cls.levels) + 1)
        number, comma, place = parameters.partition(",")
        if number not in map(str, known) or (comma and place not in PLACES):
            raise UserError(
                f"--under {cls.name}:{parameters}: {cls.name}:SEVERITY or "
                f"{cls.name}:SEVERITY,PLACE expected, with SEVERITY 1 to {known[-1]} and PLACE "
                f"{' or '.join(PLACES)}"
            )
        return cls(int(number), place or ORIGINAL)

    def parameters(self) -> Parameters:
        """Return the severity and the place."""
        return {"severity": self.severity, "place": self.place}

    @property
    def text(self) -> str:
        """The condition as written for ``--under``; the place only where it is not ``original``."""
        return f"{self.name}:{self.severity}{self.place_suffix}"

    def identity(self) -> Any:
        """Return what every condition on images does, and the tools."""
        return [*super().identity(), *(choice.identity() for choice in self.tools())]

    def warp(self, size: Size) -> Warp | None:
        """Return where pixels go; under ``crop224`` truth cannot follow."""
        if self.follow is None or self.place == CROP224:
            return None
        return self.follow(size, self.levels[self.severity - 1])

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Return the corrupted image; see :data:`Change`."""
        return self.change(rgb, self.levels[self.severity - 1], rng)

    def on_raw(self, raw: Raw, rng: np.random.Generator) -> Raw:
        """Return the corrupted raw plane."""
        if self.raw is None:
            return super().on_raw(raw, rng)
        return self.raw(raw, self.levels[self.severity - 1], rng)

    def shown(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Return the corrupted part."""
        return self.apply(window.cut(rgb), rng)


def corruption(
    summary: str,
    levels: tuple[Any, ...],
    *,
    has_chance: bool = False,
    follow: Follow | None = None,
    tools: Callable[[], Sequence[Choice]] = lambda: (),
    raw: Callable[[Raw, Any, np.random.Generator], Raw] | None = None,
) -> Callable[[Change], type[Corruption]]:
    """Make a function the corruption of its name.

    Args:
        summary: one line, for reports.
        levels: the parameters of each severity, mildest first.
        has_chance: whether it draws.
        follow: where pixels go, if it moves them.
        tools: the implementations of libraries that it uses.
        raw: the function of a raw plane, if it acts there as well.
    """
    middle = len(levels) // 2 + 1

    def made(change: Change) -> type[Corruption]:
        own = {
            "name": change.__name__,
            "summary": summary,
            "levels": levels,
            "has_chance": has_chance,
            "examples": ("1", f"{middle}", f"{len(levels)}", f"{middle},{CROP224}"),
            "change": staticmethod(change),
            "follow": follow and staticmethod(follow),
            "shifts": follow is not None,
            "tools": staticmethod(tools),
            "raw": raw and staticmethod(raw),
            "__module__": change.__module__,
            "__doc__": change.__doc__,
        }
        return type(change.__name__, (Corruption,), own)

    return made
