"""What Accuracy Checker's steps have done to an image so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, Keys, together


@dataclass(slots=True)
class Path:
    """The effect of the steps so far on an image.

    Attributes:
        order: the order of the channels.
        turned: the origins of the steps that reversed the channels.
        mean, std: the tensor is (x - mean) / std, in that order of channels.
        sums: the origins of the steps that normalized.
        resized: how sides were scaled (``squash``, ``greater``, ``fit_to_window``), if they were.
        size: (height, width) given to the resize.
        done: whether the image was cropped or padded.
        last: the keys of the resize.
        before: the crop before the resize, as a profile writes it, and the keys of its step.
    """

    draft: Draft
    order: str
    turned: list[str]
    mean: list[Fraction] = field(default_factory=lambda: [Fraction(0)] * 3)
    std: list[Fraction] = field(default_factory=lambda: [Fraction(1)] * 3)
    sums: list[str] = field(default_factory=list)
    resized: str = ""
    size: tuple[int, int] = (0, 0)
    done: bool = False
    last: Keys | None = None
    before: tuple[dict[str, Any], Keys] | None = None


def sides(keys: Keys, default: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Take ``size``, or ``dst_height`` and ``dst_width``, as (height, width)."""
    size = keys.take("size", values.pixels, 0)
    height = keys.take("dst_height", values.pixels, 0)
    width = keys.take("dst_width", values.pixels, 0)
    if size and (height or width):
        keys.refuse("size", "dst_height or dst_width is also given; write only one of them")
    if size:
        return size, size
    if height and width:
        return height, width
    if default is None or height or width:
        keys.problem("size", "not written; size, or dst_height and dst_width, expected")
    return default


def told(keys: Keys) -> str:
    """Return the origin of a step's size."""
    written = [key for key in ("size", "dst_height", "dst_width") if key in keys]
    return together(*([keys.origin(key) for key in written] or [keys.origin("type")]))
