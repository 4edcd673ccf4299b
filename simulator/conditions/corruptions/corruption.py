"""What all corruptions share: severities, the place where they act, and the way to the pixels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.condition import Condition, Disturb
from simulator.conditions.corruptions import crop224
from simulator.contract import U8, Encoded, Frame, PixelFormat
from simulator.contract.recipe import Boundary
from simulator.errors import UserError
from simulator.reference import color

ORIGINAL, CROP224 = "original", "crop224"
PLACES = (ORIGINAL, CROP224)
F64 = NDArray[np.float64]

np.empty(31 << 20, np.uint8)
"""Allocated and freed: glibc then keeps freed arrays up to this size instead of giving them back to
the system, whose fresh pages cost a third of the time of all corruptions (measured)."""


@dataclass(frozen=True, eq=False)
class Corruption(Condition):
    """One corruption at one severity.

    Attributes:
        severity: 1 (mild) to the number of *levels*.
        place: ``original``: on the frame that each stack's own decoder gives, in its own size;
            ``crop224``: on the file, as the published ImageNet-C was made, see :mod:`.crop224`.
        levels: the parameters of each severity, mildest first.
    """

    severity: int
    place: str = ORIGINAL
    modality: ClassVar[str | None] = "image"
    examples: ClassVar[tuple[str, ...]] = ("1", "3", "5", "3,crop224")
    levels: ClassVar[tuple[Any, ...]]

    @property
    def acts_on(self) -> Boundary:  # type: ignore[override]
        """The frame, or the source for ``crop224``."""
        return Boundary.SOURCE if self.place == CROP224 else Boundary.FRAME

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether the image is cut: under ``crop224``."""
        return self.place == CROP224

    @classmethod
    def parse(cls, parameters: str) -> Self:
        """Read ``SEVERITY`` or ``SEVERITY,PLACE``.

        Raises:
            UserError: the severity or the place does not exist.
        """
        return cls(*placed(cls.name, parameters, "SEVERITY", range(1, len(cls.levels) + 1)))

    def parameters(self) -> dict[str, Any]:
        """Return the severity and the place."""
        return {"severity": self.severity, "place": self.place}

    @property
    def text(self) -> str:
        """The condition as written for ``--under``; the place only where it is not ``original``."""
        place = "" if self.place == ORIGINAL else f",{self.place}"
        return f"{self.name}:{self.severity}{place}"

    @property
    def level(self) -> Any:
        """The parameters of its severity."""
        return self.levels[self.severity - 1]

    def identity(self) -> Any:
        """Return the parameters, and for ``crop224`` the decoder, the resizer and the writer."""
        parts = crop224.identity() if self.place == CROP224 else []
        return [self.name, self.parameters(), *parts]

    def open(self) -> Disturb:
        """Return the function for its place."""
        if self.place == CROP224:
            return crop224.opened(self.apply)
        return self._frame

    def memory(self, source: Encoded) -> int:
        """Return what a few float64 copies of the image need."""
        return 0 if self.place == CROP224 else 120 * source.width * source.height

    @abstractmethod
    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Return the corrupted image.

        Args:
            rgb: (H, W, 3) uint8 of any size from 1x1; not changed.
            rng: draws what has chance in it; also a numpy RandomState with an ``integers``.

        Returns:
            (H, W, 3) uint8.
        """

    def _frame(self, frame: Frame, rng: np.random.Generator) -> Frame:
        return on_frame(frame, lambda rgb: self.apply(rgb, rng))


def placed(name: str, parameters: str, word: str, known: range) -> tuple[int, str]:
    """Read ``NUMBER`` or ``NUMBER,PLACE``.

    Args:
        name: of the condition.
        parameters: what stands behind the colon.
        word: what the number is, for the message.
        known: the numbers that there are.

    Returns:
        The number and the place.

    Raises:
        UserError: one of them does not exist.
    """
    number, _, place = parameters.partition(",")
    if number not in map(str, known) or ("," in parameters and place not in PLACES):
        raise UserError(
            f"--under {name}:{parameters}: {name}:{word} or {name}:{word},PLACE expected, with "
            f"{word} {known[0]} to {known[-1]} and PLACE {' or '.join(PLACES)}"
        )
    return int(number), place or ORIGINAL


def on_frame(frame: Frame, apply: Callable[[U8], U8]) -> Frame:
    """Return a frame whose image was changed; YUV becomes RGB for it, and YUV again."""
    if frame.format is PixelFormat.RGB:
        return frame.with_planes(apply(frame.rgb))
    return _to_yuv(apply(_to_rgb(frame)), frame)


def unit(rgb: U8) -> F64:
    """Return levels in [0, 1] as a new float64 array."""
    return np.asarray(rgb / 255.0)


def cut(values: NDArray[Any]) -> U8:
    """Clip to [0, 1], scale and cut to whole levels, as ``np.uint8`` in the original; in place."""
    np.clip(values, 0, 1, out=values)
    values *= 255
    return values.astype(np.uint8)


def _to_rgb(frame: Frame) -> U8:
    """Convert a YUV frame; each chroma sample is repeated."""
    v, h = frame.format.subsampling
    size = frame.height, frame.width
    luma, *chroma = (plane.astype(np.float64) for plane in (frame.planes[0], *frame.chroma))
    full = [color.upsample(plane, v, h, size, "nearest") for plane in chroma]
    yuv = np.stack((luma, *full), axis=-1)
    return _rounded(color.yuv_to_rgb(yuv, str(frame.matrix), str(frame.range)))


def _to_yuv(rgb: U8, like: Frame) -> Frame:
    """Convert back to the format of *like*; chroma is the mean of what it covers."""
    v, h = like.format.subsampling
    yuv = color.rgb_to_yuv(rgb, str(like.matrix), str(like.range))
    u, w = (_rounded(color.downsample(yuv[..., c], v, h, "average")) for c in (1, 2))
    luma = _rounded(yuv[..., 0])
    if not like.format.semiplanar:
        return like.with_planes(luma, u, w)
    order = (u, w) if like.format is PixelFormat.NV12 else (w, u)
    return like.with_planes(luma, np.stack(order, axis=-1))


def _rounded(values: F64) -> U8:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
