"""Pictures of what changed, drawn with PIL.ImageDraw and the font that Pillow brings."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

from backends.pillow.captions import fit, place
from backends.pillow.library import Image, ImageDraw, ImageFont
from simulator.contract import Color, Key, Painter, Panel, Rectangle

_BYTES = 1_000_000
_SIDE, _SIDE_OF_THREE, _SIDE_OF_MANY = 640, 480, 210
"""The longest side of an image, in pixels of the drawing, for up to two columns and for more; on a
page for up to three, and for more."""
_FOR_A_PAGE: dict[str, Any] = {"quality": 80, "subsampling": "4:4:4", "optimize": True}
_NARROWEST = 160
_COLORS = 64
_GAP = 8
_DASH = 4
_TITLE, _CAPTION, _LEGEND = 15, 12, 13
_WHITE, _BLACK, _SHADOW = (255, 255, 255), (0, 0, 0), (90, 90, 90)


class PillowPainter(Painter):
    """Draws on ``PIL.Image`` and shrinks the drawing until its PNG fits into 1 MB."""

    def _png(self, panels: Sequence[Panel], legend: Sequence[Key]) -> bytes:
        columns = _columns(panels)
        longest = max(max(panel.image.shape) for panel in panels)
        scale = _scale(panels, _SIDE if columns <= 2 else _SIDE_OF_THREE)
        while True:
            sheet = _sheet([_drawn(panel, scale) for panel in panels], panels, legend, columns)
            file = io.BytesIO()
            sheet.save(file, "PNG", compress_level=1)
            size = file.tell()
            if size <= _BYTES or scale * longest <= _NARROWEST:
                return file.getvalue()
            scale *= 0.97 * math.sqrt(_BYTES / size)

    def _jpeg(self, panels: Sequence[Panel], legend: Sequence[Key]) -> bytes:
        columns = _columns(panels)
        scale = _scale(panels, _SIDE_OF_THREE if columns <= 3 else _SIDE_OF_MANY)
        drawn = [_drawn(panel, scale) for panel in panels]
        file = io.BytesIO()
        _sheet(drawn, panels, legend, columns).save(file, "JPEG", **_FOR_A_PAGE)
        return file.getvalue()

    def _gif(self, panels: Sequence[Panel], legend: Sequence[Key], each: int) -> bytes:
        scale = _scale(panels, _SIDE_OF_THREE)
        longest = max(panels[0].image.shape)
        marked = [key.color for panel in panels for key in panel.legend]
        marked += [rectangle.color for panel in panels for rectangle in panel.rectangles]
        colors = list(dict.fromkeys((_WHITE, _BLACK, *marked)))
        while True:
            sheets = [_sheet([_drawn(one, scale)], [one], legend, 1) for one in panels]
            file = io.BytesIO()
            first, *others = _few_colors(sheets, colors)
            first.save(file, "GIF", save_all=True, append_images=others, duration=each, loop=0)
            size = file.tell()
            if size <= _BYTES or scale * longest <= _NARROWEST:
                return file.getvalue()
            scale *= 0.97 * math.sqrt(_BYTES / size)


def _few_colors(sheets: Sequence[Any], colors: Sequence[Color]) -> list[Any]:
    """One palette for all, without dithering: what stands still costs nothing.

    It holds exactly *colors*, which mean something, and otherwise those of the first, the middle
    and the last sheet.
    """
    some = [sheets[0], sheets[len(sheets) // 2], sheets[-1]]
    width, height = sheets[0].size
    beside = Image.new("RGB", (width, len(some) * height))
    for at, sheet in enumerate(some):
        beside.paste(sheet, (0, at * height))
    fixed = [value for color in colors[: _COLORS // 2] for value in color]
    found = beside.quantize(_COLORS - len(fixed) // 3).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([*fixed, *found])
    return [sheet.quantize(palette=palette, dither=Image.Dither.NONE) for sheet in sheets]


def _columns(panels: Sequence[Panel]) -> int:
    return len(panels) if len(panels) <= 3 else -(-len(panels) // 2)


def _scale(panels: Sequence[Panel], side: int) -> float:
    """What brings the longest image to *side* pixels, and small ones to half of it at most."""
    longest = max(max(panel.image.shape) for panel in panels)
    return side / longest if longest > side else float(max(1, side // 2 // longest))


def _drawn(panel: Panel, scale: float) -> Any:
    """The panel's image at its scale, with its boxes and captions."""
    height, width = (max(1, round(side * scale)) for side in panel.image.shape[:2])
    kernel = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
    picture = Image.fromarray(panel.image).resize((width, height), kernel)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=_CAPTION)
    across, down = width / panel.image.shape[1], height / panel.image.shape[0]
    edges = []
    for rectangle in panel.rectangles:
        x1, y1, x2, y2 = rectangle.box
        left, top = min(int(x1 * across), width - 1), min(int(y1 * down), height - 1)
        right, bottom = max(left, math.ceil(x2 * across) - 1), max(top, math.ceil(y2 * down) - 1)
        edges.append((left, top, right, bottom))
        _edge(draw, edges[-1], rectangle)
    captions = [rectangle.caption for rectangle in panel.rectangles]
    for index, spot, text in place(edges, captions, font, (width, height)):
        color = panel.rectangles[index].color
        draw.rectangle(spot, fill=color)
        draw.text((spot[0] + 2, spot[1]), text, fill=_ink(color), font=font)
    return picture


def _edge(draw: Any, box: tuple[int, int, int, int], rectangle: Rectangle) -> None:
    """Draw one box: dashed in its color and black, or solid with a thin dark outline."""
    width = rectangle.width
    left, top, right, bottom = box
    if not rectangle.dashed:
        if min(right - left, bottom - top) > 2 * width:
            draw.rectangle(
                (left + width, top + width, right - width, bottom - width), outline=_SHADOW
            )
        draw.rectangle(box, outline=rectangle.color, width=width)
        return
    draw.rectangle(box, outline=_BLACK, width=width)
    thick = width - 1
    for x in range(left, right + 1, 2 * _DASH):
        end = min(x + _DASH - 1, right)
        for y in (top, max(top, bottom - thick)):
            draw.rectangle((x, y, end, min(y + thick, bottom)), fill=rectangle.color)
    for y in range(top, bottom + 1, 2 * _DASH):
        end = min(y + _DASH - 1, bottom)
        for x in (left, max(left, right - thick)):
            draw.rectangle((x, y, min(x + thick, right), end), fill=rectangle.color)


def _ink(ground: Color) -> Color:
    """Return black or white, whichever has more contrast (luma of ITU-R BT.601)."""
    red, green, blue = ground
    return _BLACK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else _WHITE


def _sheet(
    pictures: Sequence[Any], panels: Sequence[Panel], legend: Sequence[Key], columns: int
) -> Any:
    """Titles over pictures, in rows of *columns*, over the legend."""
    title, words = ImageFont.load_default(size=_TITLE), ImageFont.load_default(size=_LEGEND)
    wide = max(_NARROWEST, *(picture.width for picture in pictures))
    high = max(picture.height for picture in pictures) + sum(title.getmetrics()) + _GAP
    rows = -(-len(pictures) // columns)
    width = _GAP + columns * (wide + _GAP)
    entries, below = _flow(legend, words, width)
    sheet = Image.new("RGB", (width, _GAP + rows * (high + _GAP) + below), _WHITE)
    draw = ImageDraw.Draw(sheet)
    for number, (picture, panel) in enumerate(zip(pictures, panels, strict=True)):
        x = _GAP + number % columns * (wide + _GAP)
        y = _GAP + number // columns * (high + _GAP)
        draw.text((x, y), fit(panel.title, title, wide), fill=_BLACK, font=title)
        sheet.paste(picture, (x, y + sum(title.getmetrics()) + _GAP // 2))
    top = sheet.height - below
    for key, text, x, y in entries:
        swatch = (x, top + y + 3, x + 17, top + y + 13)
        if key.dashed:
            _edge(draw, swatch, Rectangle(swatch, key.color, dashed=True))
        else:
            draw.rectangle(swatch, fill=key.color)
        draw.text((x + 22, top + y), text, fill=_BLACK, font=words)
    return sheet


def _flow(
    legend: Sequence[Key], font: Any, width: int
) -> tuple[list[tuple[Key, str, int, int]], int]:
    """Return each entry with text and position, in lines of at most *width*; and the height."""
    line, x, y, entries = sum(font.getmetrics()) + 4, _GAP, 0, []
    for key in legend:
        text = fit(key.words, font, width - 2 * _GAP - 22)
        wide = 22 + math.ceil(font.getlength(text))
        if x > _GAP and x + wide > width - _GAP:
            x, y = _GAP, y + line
        entries.append((key, text, x, y))
        x += wide + 2 * _GAP
    return entries, y + line + _GAP // 2 if entries else 0
