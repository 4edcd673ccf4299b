"""The size of an image in Accuracy Checker: crops before and after the resize, and padding.

Sources, of open_model_zoo's ``accuracy_checker/preprocessor``: ``crop.py`` (``central_fraction``:
int(side * fraction); ``max_square``: the short side; OpenCV's crop starts at the half rounded down,
Pillow's at int(round(half))), ``geometric_transformations.py`` (``center_padding``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from simulator.importers import values
from simulator.importers.draft import Draft, Normalization, together
from simulator.importers.image_steps import gray_level
from simulator.importers.keys import Keys
from simulator.importers.open_model_zoo import numbers

_SIDES = ("size", "dst_height", "dst_width")


@dataclass(slots=True)
class Path:
    """The effect of the steps so far on an image.

    Attributes:
        order: the order of the channels.
        turned: the origins of the steps that reversed the channels.
        normalization: in that order of channels.
        resized: how sides were scaled (``squash``, ``greater``, ``fit_to_window``), if they were.
        size: (height, width) given to the resize.
        done: whether the image was cropped or padded.
        last: the keys of the resize.
        before: the crop before the resize, as a profile writes it, and the keys of its step.
    """

    draft: Draft
    order: str
    turned: list[str]
    normalization: Normalization = field(default_factory=Normalization)
    resized: str = ""
    size: tuple[int, int] = (0, 0)
    done: bool = False
    last: Keys | None = None
    before: tuple[dict[str, str | float], Keys] | None = None

    def reverse(self, origin: str) -> None:
        """Reverse the channels."""
        self.order = "bgr" if self.order == "rgb" else "rgb"
        self.turned.append(origin)
        self.normalization.reverse()


def sides(keys: Keys, default: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Take ``size``, or ``dst_height`` and ``dst_width``, as (height, width)."""
    size, height, width = (keys.take(key, values.pixels, 0) for key in _SIDES)
    if size and (height or width):
        keys.refuse("size", "dst_height or dst_width is also given; write only one of them")
    if size:
        return size, size
    if height and width:
        return height, width
    if default is None or height or width:
        keys.problem("size", "not written; size, or dst_height and dst_width, expected")
    return default


def _told(keys: Keys) -> str:
    """Return the origin of a step's size."""
    written = [keys.origin(key) for key in _SIDES if key in keys]
    return together(*(written or [keys.origin("type")]))


def crop(path: Path, keys: Keys) -> None:
    """Follow ``crop``: to a size after the resize, or of a part of the image before it."""
    pillow = keys.take("use_pillow", values.boolean, False)
    fraction = keys.take("central_fraction", values.above_zero, None)
    if keys.take("max_square", values.boolean, False) or fraction is not None:
        _crop_before(path, keys, fraction, pillow)
        return
    size, last = sides(keys), path.last
    if path.done or path.resized not in ("squash", "greater"):
        keys.refuse("type", "a profile crops once, after a resize, and not after fit_to_window")
    elif size is None or not path.size[0] or last is None:
        path.done = True
    elif (path.resized, size) == ("squash", path.size):
        pass  # nothing is cut
    elif path.size[0] != path.size[1]:
        last.refuse("dst_width", "a crop after a resize to two sizes; a profile has one")
    elif max(size) > path.size[0]:
        why = "a profile's crop neither pads nor enlarges"
        keys.refuse("size", f"larger than the short side of {path.size[0]}; {why}")
    else:
        path.done = True
        draft = path.draft
        origin = last.origin("aspect_ratio_scale", "both sides are scaled")
        kind = "short_side_crop" if path.resized == "greater" else "squash_crop"
        draft.write("geometry", "kind", kind, together(origin, keys.origin("type")))
        draft.write("geometry", "rounding", *_rounding(keys, pillow))
        draft.write("geometry", "short_side", path.size[0], _told(last))
        draft.claim("geometry", "emulated", "accuracy_checker resize.py, crop.py")
        draft.network(size, _told(keys))


def _rounding(keys: Keys, pillow: bool) -> tuple[str, str]:
    """The rounding of a crop's start, and where it comes from."""
    rule = "int(round(half)), as torchvision" if pillow else "half rounded down"
    named = keys.origin("use_pillow", "OpenCV's crop is the default")
    return "torchvision" if pillow else "floor", f"{named}; the crop starts at {rule}"


def _crop_before(path: Path, keys: Keys, fraction: Fraction | None, pillow: bool) -> None:
    key = "max_square" if fraction is None else "central_fraction"
    if path.resized or path.normalization.origins or path.before:
        why = "this crop of a part of the image must be the first step but for the channels' order"
        keys.refuse(key, why)
    elif fraction is not None and fraction > 1:
        keys.refuse(key, "a number up to 1 expected")
    elif fraction != 1:  # else nothing is cut
        part = {"aspect": "network"} if fraction is None else {"fraction": float(fraction)}
        path.before = {**part, "rounding": _rounding(keys, pillow)[0]}, keys


def padding(path: Path, keys: Keys) -> None:
    """Follow ``padding`` after ``fit_to_window``."""
    size = sides(keys, path.size)
    level = keys.take("pad_value", numbers, [Fraction(0)] * 3)
    places = {"center": "center", "right_bottom": "top_left"}
    position = keys.choice("pad_type", places, "center")
    stride = keys.take("stride", values.pixels, 1)
    for key in ("enable_resize", "left_top_extend"):
        keys.only(key, False, "a profile's padding cannot express this")
    keys.take("use_numpy", values.boolean, False)
    keys.choice("numpy_pad_mode", {"constant": "constant"}, "constant")
    last = path.last
    if path.done or path.resized != "fit_to_window" or last is None:
        why = "a profile pads once, what was resized with aspect_ratio_scale fit_to_window"
        keys.refuse("type", why)
        return
    pixel = gray_level(level, path.normalization)
    if isinstance(pixel, str):
        keys.refuse("pad_value", pixel)
    path.done = True
    if size is None or not size[0]:
        return
    if size != path.size or any(side % stride for side in size):
        said = f"pads to another size than the resize's {path.size[0]}x{path.size[1]}"
        keys.refuse("type", f"{said}; a profile's letterbox has one size")
        return
    draft = path.draft
    draft.write("geometry", "kind", "letterbox", last.origin("aspect_ratio_scale"))
    draft.write("geometry", "rounding", "floor", "scale_fit_to_window: int(scale * side)")
    draft.write("geometry", "position", position, keys.origin("pad_type", "center is the default"))
    draft.write("geometry", "value", pixel, keys.origin("pad_value", "0,0,0 is the default"))
    draft.claim("geometry", "emulated", "accuracy_checker scale_fit_to_window, center_padding")
    draft.network(size, _told(keys if "size" in keys else last))


def finish(path: Path) -> None:
    """Write what follows from all steps; report an image without a fixed size after the last."""
    draft, last = path.draft, path.last
    if last is None:
        return
    if not path.done and path.resized == "squash":
        draft.write("geometry", "kind", "squash", _told(last))
        if path.size[0]:
            draft.network(path.size, _told(last))
    elif not path.done:
        needed = "crop" if path.resized == "greater" else "padding"
        why = f"the size varies by image; a profile needs a {needed} after it"
        last.refuse("aspect_ratio_scale", why)
    if path.before is None:
        return
    crop, keys = path.before
    key = "max_square" if "aspect" in crop else "central_fraction"
    if key == "max_square" and (path.size[0] != path.size[1] or not path.size[0]):
        keys.refuse(key, "a square, and the resize is not written as one to a square")
        return
    origin = together(keys.origin(key), _rounding(keys, crop["rounding"] == "torchvision")[1])
    draft.write("geometry", "crop_before_resize", crop, origin)
    draft.claim("geometry", "emulated", "accuracy_checker crop.py, resize.py")
