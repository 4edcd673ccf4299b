"""Image files that no stack processes: index masks, drawings of changes, written images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from simulator.contract.backend import Implementation
from simulator.contract.encoded import Encoded, inspect
from simulator.contract.frame import U8
from simulator.errors import SampleError, SimulatorError, Unsupported, first_line

Mask = NDArray[np.uint8] | NDArray[np.uint16]
"""(H, W) class indices."""

Color = tuple[int, int, int]
"""R, G, B, each 0 to 255."""

_GRAY, _PALETTE = 0, 3
_KINDS = {2: "an RGB picture", 4: "a gray picture with alpha", 6: "an RGBA picture"}
_COLOR_TYPE = 25
"""The offset of a PNG's color type, after signature, length, ``IHDR``, width, height, bit depth."""


class MaskReader(Implementation):
    """Reads index masks: PNG files whose samples are class indices."""

    @final
    def indices(self, data: bytes, name: str) -> Mask:
        """Read the class indices of one PNG, never its colors.

        Args:
            data: the whole file: a palette PNG (1, 2, 4 or 8 bits) gives its palette indices, a
                gray one (1, 2, 4, 8 or 16 bits) its samples as they are stored.
            name: the name of the file in messages.

        Returns:
            (H, W) uint8, or uint16 where the file has 16 bits; C-contiguous and writable.

        Raises:
            SampleError: the file is not such a PNG, is damaged, or is larger than MAX_PIXELS.

        Source:
            PNG specification 11.2.2 (color types and bit depths).
        """
        try:
            image = _index_png(data, name)
            mask = self._indices(image)
        except SimulatorError as error:
            raise SampleError(f"{name}: {error}") from error
        except Exception as error:  # the library's own reason, whatever its type
            raise SampleError(f"{name}: {type(self).__name__}: {first_line(error)}") from error
        wanted = (image.height, image.width), np.dtype(np.uint16 if image.bits == 16 else np.uint8)
        if (mask.shape, mask.dtype) != wanted:
            raise SampleError(f"{name}: {type(self).__name__} gave {mask.dtype} {mask.shape}")
        return mask.copy()

    @abstractmethod
    def _indices(self, image: Encoded) -> Mask:
        """Return (H, W) uint8, or uint16 for a 16-bit file; the PNG is palette or gray."""


def _index_png(data: bytes, name: str) -> Encoded:
    image = inspect(name, data)
    if image.format != "png":
        raise SampleError(f"is a {image.format.upper()}, not an index mask; masks are PNG files")
    if data[_COLOR_TYPE] not in (_GRAY, _PALETTE):
        kind = _KINDS[data[_COLOR_TYPE]]
        raise SampleError(f"is {kind}, not an index mask; convert it to indices")
    return image


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box on a picture.

    Attributes:
        box: x1, y1, x2, y2 in pixels of the panel's image; pixel i spans i to i + 1. Parts outside
            the image are cut off; a box with a NaN is not drawn.
        color: the color of its edge and of its caption's background.
        caption: one short line; omitted if it would hide other captions; may be empty.
        dashed: whether the edge alternates with black.
        width: the width of the edge, in pixels of the drawing.
    """

    box: tuple[float, float, float, float]
    color: Color
    caption: str = ""
    dashed: bool = False
    width: int = 2


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the legend: what a color means."""

    color: Color
    words: str
    dashed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One of several images drawn side by side.

    Attributes:
        image: (H, W, 3) uint8 RGB.
        title: one line above the image.
        rectangles: drawn in order, later ones on top; captions are placed last to first.
        overlay: (H, W) indices into *palette*, painted over the image; or None.
        palette: (n, 4) uint8 R, G, B and alpha: 0 (invisible) to 255 (opaque).
        legend: what the colors mean; one legend below the panels shows the entries of all.
    """

    image: U8
    title: str
    rectangles: tuple[Rectangle, ...] = ()
    overlay: Mask | None = None
    palette: U8 | None = None
    legend: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        image = self.image
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise ValueError(f"a panel is uint8 (H, W, 3), got {image.dtype} {image.shape}")
        if self.overlay is None:
            return
        if self.palette is None or self.palette.dtype != np.uint8 or self.palette.shape[1:] != (4,):
            raise ValueError("an overlay needs a palette, uint8 (n, 4)")
        if self.overlay.shape != image.shape[:2]:
            raise ValueError(f"the overlay is {self.overlay.shape}, the image {image.shape[:2]}")
        if int(self.overlay.max()) >= len(self.palette):
            raise ValueError(f"the overlay has an index {self.overlay.max()} without a color")


class Painter(Implementation):
    """Draws pictures for reports."""

    @final
    def png(self, panels: Sequence[Panel]) -> bytes:
        """Draw panels side by side, with titles above them and one legend below.

        All images have the same scale: large ones shrink, small ones (32x32) grow by an integer
        factor. Equal panels give equal bytes on one machine.

        Args:
            panels: at least one.

        Returns:
            A PNG file of about 1 MB at most.
        """
        return self._png(*_painted(panels))

    @final
    def jpeg(self, panels: Sequence[Panel]) -> bytes:
        """Draw the same smaller, for a page.

        Args:
            panels: at least one.

        Returns:
            A JPEG file of about 0.1 MB, without loss of color between pixels (4:4:4).
        """
        return self._jpeg(*_painted(panels))

    @final
    def gif(self, panels: Sequence[Panel], each: int) -> bytes:
        """Draw panels one after the other, over and over.

        Args:
            panels: at least one, with images of one size.
            each: milliseconds that a panel is shown; GIF counts them by ten.

        Returns:
            A GIF file of about 1 MB at most, with at most 64 colors.
        """
        if len({panel.image.shape for panel in panels}) > 1:
            raise ValueError("the images of a GIF have one size")
        return self._gif(*_painted(panels), each)

    @abstractmethod
    def _gif(self, panels: Sequence[Panel], legend: Sequence[Key], each: int) -> bytes:
        """Draw each panel with its title above and the legend below it."""

    @abstractmethod
    def _jpeg(self, panels: Sequence[Panel], legend: Sequence[Key]) -> bytes:
        """Draw like :meth:`_png`, images at most 480 pixels long."""

    @abstractmethod
    def _png(self, panels: Sequence[Panel], legend: Sequence[Key]) -> bytes:
        """Draw panels without overlays, with boxes inside the image and texts of one line each."""


class ImageWriter(Implementation):
    """Writes image files; equal pixels give equal bytes on one machine.

    Attributes:
        writes: the formats that it writes, as :attr:`simulator.contract.Encoded.format` names them.
    """

    writes: ClassVar[tuple[str, ...]] = ("png", "jpeg")

    @final
    def png(self, pixels: U8) -> bytes:
        """Return the bytes of a lossless PNG file.

        Args:
            pixels: (H, W) gray or (H, W, 3) RGB uint8.
        """
        return self._png(_checked_pixels(pixels))

    @final
    def jpeg(
        self,
        rgb: U8,
        quality: int,
        orientation: int = 1,
        *,
        optimize: bool = False,
        chroma: str = "4:2:0",
        progressive: bool = False,
    ) -> bytes:
        """Return the bytes of a JPEG file.

        Args:
            rgb: (H, W, 3) uint8.
            quality: libjpeg's quality, 1 to 100.
            orientation: the EXIF orientation, 1 to 8; 1 writes no EXIF.
            optimize: compute Huffman tables for this image; the pixels are the same.
            chroma: its sampling, ``4:2:0`` or ``4:4:4``.
            progressive: write several scans; the pixels are the same.
        """
        pixels = _checked_pixels(rgb)
        return self._jpeg(pixels, quality, orientation, optimize, chroma, progressive)

    @final
    def lossy(self, rgb: U8, format: str, quality: int, orientation: int = 1) -> bytes:
        """Return the bytes of a file in a lossy format, with what its encoder does by default.

        Args:
            rgb: (H, W, 3) uint8.
            format: one of :attr:`writes`, but not ``png``.
            quality: the encoder's quality, 1 to 100.
            orientation: as in EXIF, 1 to 8.
        """
        if format == "jpeg":
            return self.jpeg(rgb, quality, orientation)
        return self._lossy(_checked_pixels(rgb), format, quality, orientation)

    def _lossy(self, rgb: U8, format: str, quality: int, orientation: int) -> bytes:
        raise Unsupported(f"{type(self).__name__} does not write {format}")

    @abstractmethod
    def _png(self, pixels: U8) -> bytes:
        """Return a PNG file; the pixels are C-contiguous."""

    @abstractmethod
    def _jpeg(
        self,
        rgb: U8,
        quality: int,
        orientation: int,
        optimize: bool,
        chroma: str,
        progressive: bool,
    ) -> bytes:
        """Return a JPEG file; the pixels are C-contiguous."""


def _checked_pixels(pixels: U8) -> U8:
    gray = pixels.ndim == 2
    if pixels.dtype != np.uint8 or not (gray or pixels.shape[2:] == (3,)) or not pixels.size:
        raise ValueError(f"pixels are uint8 (H, W) or (H, W, 3), got {pixels.dtype} {pixels.shape}")
    return np.ascontiguousarray(pixels)


def _painted(panels: Sequence[Panel]) -> tuple[list[Panel], tuple[Key, ...]]:
    """The panels as painters get them, and one legend for all."""
    if not panels:
        raise ValueError("a picture needs at least one panel")
    legend = dict.fromkeys(
        replace(key, words=_line(key.words)) for panel in panels for key in panel.legend
    )
    return [_plain(panel) for panel in panels], tuple(legend)


def _plain(panel: Panel) -> Panel:
    """Return the panel with its overlay painted on, boxes cut to the image and texts cleaned."""
    height, width = panel.image.shape[:2]
    rectangles = tuple(
        replace(rectangle, box=box, caption=_line(rectangle.caption))
        for rectangle in panel.rectangles
        if (box := _inside(rectangle.box, height, width)) is not None
    )
    image = panel.image
    if panel.overlay is not None and panel.palette is not None:
        paint = panel.palette[panel.overlay].astype(np.uint16)
        alpha = paint[..., 3:]
        mixed = image * (255 - alpha) + paint[..., :3] * alpha
        image = ((mixed + 127) // 255).astype(np.uint8)
    return Panel(image, _line(panel.title), rectangles, legend=panel.legend)


def _inside(
    box: tuple[float, float, float, float], height: int, width: int
) -> tuple[float, float, float, float] | None:
    """Return the part of a box that is inside the image, or None."""
    if any(isnan(value) for value in box):
        return None
    (x1, x2), (y1, y2) = sorted((box[0], box[2])), sorted((box[1], box[3]))
    if x2 < 0 or y2 < 0 or x1 > width or y1 > height:
        return None
    return max(x1, 0.0), max(y1, 0.0), min(x2, float(width)), min(y2, float(height))


def _line(text: str) -> str:
    """Return one line that any font can draw, without control characters or lone surrogates."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
