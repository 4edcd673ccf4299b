"""Which part of an image each of two front ends sees, and at what size, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Difference
from simulator.diagnose.registration import Place, gray, placed
from simulator.identify.solve import ORDERS
from simulator.modalities.image.geometry import Geometry
from simulator.reference.resize import weights

SAME = 0.35
"""Pixels of the input up to which two places are the same: what another kernel or color moves."""
_WHOLE = 0.12
"""Pixels within which a size or a place is a whole one."""
_HALF = 0.8
"""Pixels by which a place may be rounded."""
_TURNS = [name for name in ORDERS if name.startswith(("in order", "mir", "up", "rotated by 180"))]
Size = tuple[int, int]
"""Rows and columns."""


@dataclass(frozen=True, slots=True)
class Placing:
    """Where images lie in the inputs that a front end made of them.

    Attributes:
        places: of each image.
        sizes: of each image.
        network: size of the input.
        turned: one of the orders of elements that mirror or rotate.
        padding: what surrounds the images, in words; empty where nothing does.
    """

    places: tuple[Place, ...]
    sizes: tuple[Size, ...]
    network: Size
    turned: str = "in order"
    padding: str = ""

    def apart(self, other: Placing) -> float:
        """Return by how many pixels of the input two placings are apart, at most."""
        return max(
            _apart(a, b, size, self.network)
            for a, b, size in zip(self.places, other.places, self.sizes, strict=True)
        )

    def beside(self, other: Placing) -> tuple[float, float]:
        """Return by how many pixels the middle of the first image is moved down and right."""
        a, b = self.places[0], other.places[0]
        down = b.top + b.rows / 2 - a.top - a.rows / 2
        right = b.left + b.columns / 2 - a.left - a.columns / 2
        return down, right

    def like(self, geometry: Geometry) -> bool:
        """Return whether a geometry places the images so."""
        if self.turned != "in order":
            return False
        if geometry.kind == "letterbox" and self.padding not in ("", str(geometry.value)):
            return False
        for place, (height, width) in zip(self.places, self.sizes, strict=True):
            cut = geometry.cut(height, width)
            inner = height - cut.rows, width - cut.columns
            rows, columns = geometry.resized(*inner)
            at = geometry.placement(inner, (rows, columns))
            scale = rows / inner[0], columns / inner[1]
            whole = Place(
                height * scale[0],
                width * scale[1],
                at.top - cut.top * scale[0],
                at.left - cut.left * scale[1],
            )
            if _apart(place, whole, (height, width), self.network) > SAME:
                return False
        return True

    @property
    def as_it_is(self) -> bool:
        """Whether the images are not resized."""
        pairs = zip(self.places, self.sizes, strict=True)
        return all(
            abs(one.rows - rows) < _HALF and abs(one.columns - columns) < _HALF
            for one, (rows, columns) in pairs
        )

    @property
    def told(self) -> str:
        """What a front end does, in words of the field."""
        if (cropped := self._cropped_before()) is not None:
            return cropped
        free = [(self.network[0] - one.rows, self.network[1] - one.columns) for one in self.places]
        crops = any(min(one) < -_HALF for one in free)
        pads = any(max(one) > _HALF for one in free)
        where = self._where(free)
        scaled = self._scaled(pads)
        if not (crops or pads):
            return scaled or "no resize"
        if crops and pads:
            return f"{scaled or 'no resize'}, then {where} cropped, and padded with {self.padding}"
        if crops:
            crop = {"center": "center crop", "": "crop elsewhere"}.get(where, f"crop at {where}")
            return f"{scaled} and {crop}" if scaled else f"{crop} without a resize"
        sides = {
            "center": "on both sides",
            "the top left": "on the right and below",
            "the bottom right": "on the left and above",
        }.get(where, "elsewhere")
        return f"{scaled or 'no resize'} and padding {sides} with {self.padding}"

    def _cropped_before(self) -> str | None:
        """A crop of the image itself: its ends are whole pixels of the image, not of the input."""
        sides = set()
        for place, size in zip(self.places, self.sizes, strict=True):
            some = (place.rows, place.top), (place.columns, place.left)
            ends = [
                (-start * side / scaled, (n - start) * side / scaled)
                for (scaled, start), side, n in zip(some, size, self.network, strict=True)
            ]
            if all(_whole(scaled) and _whole(start) for scaled, start in some):
                return None
            if not all(_whole(end, 2 * _WHOLE) for pair in ends for end in pair):
                return None
            sides.add(tuple(round(b - a) for a, b in ends))
        rows, columns = self.network
        if len(set(self.sizes)) > 1 or len(sides) > 1:
            crop = "a crop of the image"
        else:
            ((height, width),) = sides
            crop = f"a crop of {width} x {height} pixels of the image"
        return f"{crop}, resized to {columns} x {rows}"

    def _scaled(self, pads: bool) -> str:
        """To what the images are scaled; empty where they are not."""
        if self.as_it_is:
            return ""
        pairs = list(zip(self.places, self.sizes, strict=True))
        ratios = [(one.rows / h) / (one.columns / w) for one, (h, w) in pairs]
        sizes = {(round(one.columns), round(one.rows)) for one in self.places}
        if any(abs(ratio - 1) > 0.01 for ratio in ratios):
            columns, rows = next(iter(sizes))
            if len(sizes) == 1:
                return f"squash to {columns} x {rows}"
            return f"another scale of each side (image 1: to {columns} x {rows})"
        for name, side in (("long", max), ("short", min))[:: 1 if pads else -1]:
            if len(found := {side(one) for one in sizes}) == 1:
                return f"{name} side {found.pop()}"
        return f"scale {np.mean([one.rows / h for one, (h, _) in pairs]):.4g}"

    def _where(self, free: Sequence[tuple[float, float]]) -> str:
        """Where in the free space, or in what is cut off, the images begin."""
        shares = {
            "center": (0.5, 0.5),
            "the top left": (0, 0),
            "the bottom right": (1, 1),
            "the top": (0, 0.5),
            "the left": (0.5, 0),
        }
        for name, (down, right) in shares.items():
            if all(
                abs(one.top - down * y) < _HALF + 0.3 and abs(one.left - right * x) < _HALF + 0.3
                for one, (y, x) in zip(self.places, free, strict=True)
            ):
                return name
        return ""

    def region(self, at: int) -> str:
        """Which part of an image is seen, in its own pixels."""
        place, (height, width) = self.places[at], self.sizes[at]
        ends = []
        for scaled, start, n, side in (
            (place.columns, place.left, self.network[1], width),
            (place.rows, place.top, self.network[0], height),
        ):
            by = side / scaled
            ends.append(f"{max(0, -start * by):.0f}-{min(side, (n - start) * by):.0f}")
        return f"columns {ends[0]} and rows {ends[1]}"


def _whole(value: float, within: float = _WHOLE) -> bool:
    return abs(value - round(value)) < within


def _apart(one: Place, other: Place, size: Size, network: Size) -> float:
    """Pixels of the input by which what lies at its edges is apart."""
    found = []
    for axis, name, start in ((0, "rows", "top"), (1, "columns", "left")):
        a, b = ((getattr(p, name), getattr(p, start)) for p in (one, other))
        for end in (0, network[axis]):
            there = (end - a[1]) / a[0], (end - b[1]) / b[0]
            found.append(abs(there[0] - there[1]) * a[0])
    return float(max(found))


def placing(images: Sequence[Array], levels: Sequence[Array]) -> Placing | None:
    """Return where images lie in inputs; None where one of them is not found.

    Args:
        images: (H, W, 3), as decoded.
        levels: the inputs as levels, each (3, h, w).
    """
    for turned in _TURNS:
        places = []
        for image, one in zip(images, levels, strict=True):
            back = ORDERS[turned](one)
            place = placed(gray(image), gray(back.transpose(1, 2, 0)))
            if place is None:
                break
            places.append(place)
        else:
            sizes = tuple((one.shape[0], one.shape[1]) for one in images)
            network = levels[0].shape[1], levels[0].shape[2]
            found = Placing(tuple(map(_rounded, places)), sizes, network, turned)
            padding = _padding(found, [ORDERS[turned](one) for one in levels])
            return replace(found, padding=padding)
    return None


def _rounded(place: Place) -> Place:
    """Whole pixels where sizes and places are about whole."""
    values = [place.rows, place.columns, place.top, place.left]
    if not all(map(_whole, values)):
        return place
    rows, columns, top, left = (float(round(one)) for one in values)
    return Place(rows, columns, top, left, place.correlation)


def _padding(found: Placing, levels: Sequence[Array]) -> str:
    """The level around the images."""
    outside = []
    for place, one in zip(found.places, levels, strict=True):
        rows, columns = np.arange(one.shape[1]) + 0.5, np.arange(one.shape[2]) + 0.5
        out = ((rows < place.top - 1) | (rows > place.top + place.rows + 1))[:, None] | (
            (columns < place.left - 1) | (columns > place.left + place.columns + 1)
        )
        outside.append(one[:, out])
    values = np.concatenate(outside, axis=1)
    if not values.size:
        return ""
    middle = np.median(values, axis=1)
    if np.abs(values - middle[:, None]).max() > 1:
        return "the picture's own edge"
    levels_of = [f"{round(float(one), 1):g}" for one in middle]
    return levels_of[0] if len(set(levels_of)) == 1 else ", ".join(levels_of)


def difference(train: Placing, deploy: Placing, names: Sequence[str]) -> Difference:
    """Return what another placing is called."""
    one, two = train.told, deploy.told
    tail = " and center crop"
    if one == two:
        down, right = train.beside(deploy)
        name = f"the image lies {right:+.2g} pixels right and {down:+.2g} down of where it should"
    elif all(some.startswith("short side ") and some.endswith(tail) for some in (one, two)):
        name = f"{two.removesuffix(tail)} in place of {one.split()[2]}"
    else:
        name = f"{two} in place of {one}"
    shown = tuple(
        f"{name} ({width} x {height}): training sees {train.region(at)}, the deployment "
        f"{deploy.region(at)}"
        for at, (name, (height, width)) in enumerate(zip(names, train.sizes, strict=True))
    )
    return Difference(name, f"resize and crop as in training: {train.told}", {}, shown)


KERNELS = {
    "bilinear with antialiasing": ("bilinear", True, "drop"),
    "bilinear without antialiasing": ("bilinear", False, "repeat"),
    "nearest": ("nearest", False, "repeat"),
    "bicubic with antialiasing": ("bicubic", True, "drop"),
    "bicubic without antialiasing": ("bicubic_75", False, "repeat"),
    "box (area)": ("box", True, "drop"),
    "lanczos": ("lanczos", True, "drop"),
}
"""Kernels that libraries resize with, by name: the reference's arguments."""


def sampled(image: Array, place: Place, network: Size, kernel: str) -> Array:
    """Return an image as it lies in the input, (3, h, w) whole levels; NaN where it does not.

    Args:
        image: (H, W, 3).
        place: of it.
        network: size of the input.
        kernel: one of :data:`KERNELS`.
    """
    sides = zip(
        image.shape[:2], (place.rows, place.columns), (place.top, place.left), network, strict=True
    )
    rows, columns = (_axis(*side, kernel) for side in sides)
    made = np.einsum("hy,yxc,wx->chw", rows, image.astype(np.float64), columns, optimize=True)
    return np.asarray(np.rint(np.clip(made, 0, 255)))


def _axis(side: int, scaled: float, start: float, wanted: int, kernel: str) -> Array:
    """The (wanted, side) matrix of one axis, NaN outside of the image."""
    name, antialias, edge = KERNELS[kernel]
    found = np.full((wanted, side), np.nan)
    if _whole(scaled) and _whole(start):
        size, first = round(scaled), round(start)
        whole = weights(side, size, name, antialias=antialias, edge=edge)
        kept = slice(max(0, first), min(wanted, first + size))
        found[kept] = whole[kept.start - first : kept.stop - first]
        return found
    begin, end = (round(at * side / scaled) for at in (-start, wanted - start))
    begin, end = max(0, begin), min(side, end)
    found[:] = 0
    found[:, begin:end] = weights(end - begin, wanted, name, antialias=antialias, edge=edge)
    return found
