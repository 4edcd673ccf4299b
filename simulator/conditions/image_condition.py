"""Conditions on an image: on each stack's own frame, or on the file as published sets were made.

The place ``crop224`` is that of the published ImageNet-C and ImageNet-P: decode, resize the shorter
side to 256 (Pillow's bilinear), take the middle 224x224, disturb it, and save it. Every stack
decodes that file. The EXIF orientation is ignored, as by the original, and not written.

Source:
    https://github.com/hendrycks/robustness, ImageNet-C/create_c/make_imagenet_c.py;
    torchvision, ``Resize(256)`` (the longer side is cut to a whole number) and ``CenterCrop(224)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.condition import Condition, Disturb
from simulator.conditions.image_files import decoded, decoding, resizing, writing
from simulator.contract import (
    U8,
    Encoded,
    Frame,
    ImageWriter,
    PixelFormat,
    Resizer,
    inspect,
)
from simulator.contract.encoded import MAX_PIXELS
from simulator.contract.raw import Raw
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.errors import SampleError
from simulator.reference import color

ORIGINAL, CROP224 = "original", "crop224"
PLACES = (ORIGINAL, CROP224)
SHORTER, SIDE, QUALITY = 256, 224, 85
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Window:
    """The part of an image that is shown."""

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


class ImageCondition(Condition):
    """A condition on an image at one of two places.

    Attributes:
        place: ``original``: on the frame that each stack's own decoder gives, in its own size;
            ``crop224``: on the file, see the module.
        shifts: whether what an image shows moves.
        lossless: whether ``crop224`` saves a PNG; else a JPEG of quality 85 with optimized tables
            and 4:2:0 chroma, as ImageNet-C.
    """

    place: str
    modality: ClassVar[str | None] = "image"
    shifts: ClassVar[bool] = False
    lossless: ClassVar[bool] = False

    @property
    def acts_on(self) -> Boundary:  # type: ignore[override]
        """The frame, or the source for ``crop224``."""
        return Boundary.SOURCE if self.place == CROP224 else Boundary.FRAME

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether the image is moved, or cut under ``crop224``."""
        return self.shifts or self.place == CROP224

    @property
    def place_suffix(self) -> str:
        """The end of its text: the place where it is not ``original``."""
        return "" if self.place == ORIGINAL else f",{self.place}"

    def identity(self) -> Any:
        """Return the parameters, and for ``crop224`` the decoder, the resizer and the writer."""
        parts = _tools() if self.place == CROP224 else []
        return [self.name, self.parameters(), *parts]

    def memory(self, source: Encoded) -> int:
        """Return what a few float64 copies of the image need."""
        return 0 if self.place == CROP224 else 120 * source.width * source.height

    def open(self) -> Disturb:
        """Return the function for its place."""
        return self._file() if self.place == CROP224 else self._frame

    @abstractmethod
    def shown(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Return the disturbed part of an image.

        Args:
            rgb: (H, W, 3) uint8 of any size from 1x1; not changed.
            window: the part that is shown.
            rng: draws what has chance in it.

        Returns:
            (h, w, 3) uint8 of the window's size.
        """

    def on_raw(self, raw: Raw, rng: np.random.Generator) -> Raw:
        """Return the disturbed raw plane of a file that has one.

        Raises:
            SampleError: it acts on pixels only.
        """
        raise SampleError(f"{self.name} acts on pixels, and what was decoded is a raw plane")

    def _frame(self, frame: Frame | Raw, rng: np.random.Generator) -> Frame | Raw:
        """Change a frame; YUV becomes RGB for it, and YUV again. A raw plane stays one."""
        if isinstance(frame, Raw):
            return self.on_raw(frame, rng)
        is_rgb = frame.format is PixelFormat.RGB
        rgb = frame.rgb if is_rgb else _to_rgb(frame)
        found = self.shown(rgb, Window.of(rgb), rng)
        return frame.with_planes(found) if is_rgb else _to_yuv(found, frame)

    def _file(self) -> Disturb:
        resize, writer = _resized(), _writer()

        def disturb(image: Encoded, rng: np.random.Generator) -> Encoded:
            found = self.shown(*resize(image), rng)
            if self.lossless:
                return inspect(image.name, writer.png(found))
            return inspect(image.name, writer.jpeg(found, QUALITY, optimize=True))

        return disturb


@dataclass(frozen=True, eq=False)
class Shorter256(Recipe):
    """Resizes once for many conditions at ``crop224``; their own resize then changes nothing."""

    stage = "condition"
    gives: ClassVar[Boundary | None] = Boundary.SOURCE
    timed = False

    def identity(self) -> Any:
        """Return the decoder, the resizer and the writer."""
        return ["crop224", *_tools()]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function from a file to a PNG whose shorter side is 256."""
        resize, writer = _resized(), _writer()

        def apply(image: Encoded, context: Context) -> Encoded:
            return inspect(image.name, writer.png(resize(image)[0]))

        return apply

    def words(self) -> str:
        """Return what it does."""
        return f"shorter side {SHORTER}"


def unit(rgb: U8) -> F64:
    """Return levels in [0, 1] as a new float64 array."""
    return np.asarray(rgb / 255.0)


def cut(values: NDArray[Any]) -> U8:
    """Clip to [0, 1], scale and cut to whole levels, as ``np.uint8`` in the original; in place."""
    np.clip(values, 0, 1, out=values)
    values *= 255
    return values.astype(np.uint8)


def _tools() -> list[Any]:
    """The decoder, the resizer and the writer with their library's version."""
    return [choice.identity() for choice in (decoding(), resizing("bilinear"), writing())]


def _writer() -> ImageWriter:
    found: ImageWriter = writing().make()
    return found


def _resized() -> Callable[[Encoded], tuple[U8, Window]]:
    """Return a function from a file to its image, whose shorter side is 256, and to the crop."""
    decode = decoded()
    resizer: Resizer = resizing("bilinear").make()

    def resize(image: Encoded) -> tuple[U8, Window]:
        whole, _ = decode(image)
        height, width = whole.shape[:2]
        shorter = min(height, width)
        rows, columns = SHORTER * height // shorter, SHORTER * width // shorter
        if rows * columns > MAX_PIXELS:
            raise SampleError(
                f"{width}x{height} pixels would become {columns}x{rows} before the crop: more than "
                f"{MAX_PIXELS:,}"
            )
        small = resizer.resize(whole, rows, columns)
        top, left = (round((side - SIDE) / 2) for side in small.shape[:2])
        return small, Window(top, left, SIDE, SIDE)

    return resize


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
