"""Accuracy Checker's crops, before and after the resize, and its padding.

Sources, of open_model_zoo's ``accuracy_checker/preprocessor``: ``crop.py`` (``central_fraction``:
int(side * fraction); ``max_square``: the short side; OpenCV's crop starts at the half rounded down,
Pillow's at int(round(half))), ``geometric_transformations.py`` (``center_padding``).
"""

from __future__ import annotations

from fractions import Fraction

from simulator.importers import accuracy_checker_numbers as numbers
from simulator.importers import values
from simulator.importers.accuracy_checker_path import Path, sides, told
from simulator.importers.draft import Keys, together


def crop(path: Path, keys: Keys) -> None:
    """Follow ``crop``: to a size after the resize, or of a part of the image before it."""
    pillow = keys.take("use_pillow", values.boolean, False)
    fraction = keys.take("central_fraction", values.above_zero, None)
    square = keys.take("max_square", values.boolean, False)
    if fraction is not None or square:
        _crop_before(path, keys, fraction, pillow)
        return
    size = sides(keys)
    if path.done or path.resized not in ("squash", "greater"):
        keys.refuse("type", "a profile crops once, after a resize, and not after fit_to_window")
        return
    path.done = True
    if size is None or not path.size[0] or path.last is None:
        return
    if (path.resized, size) == ("squash", path.size):
        path.done = False  # nothing is cut
        return
    if path.size[0] != path.size[1]:
        path.last.refuse("dst_width", "a crop after a resize to two sizes; a profile has one")
        return
    if max(size) > path.size[0]:
        keys.refuse(
            "size",
            f"larger than the short side of {path.size[0]}; a profile's crop neither "
            "pads nor enlarges",
        )
        return
    draft = path.draft
    origin = path.last.origin("aspect_ratio_scale", "both sides are scaled")
    kind = "short_side_crop" if path.resized == "greater" else "squash_crop"
    draft.write("geometry", "kind", kind, together(origin, keys.origin("type")))
    rounding, rule = _rounding(keys, pillow)
    draft.write("geometry", "rounding", rounding, rule)
    draft.write("geometry", "short_side", path.size[0], told(path.last))
    draft.claim("geometry", "emulated", "accuracy_checker resize.py, crop.py")
    draft.network(size, told(keys))


def _rounding(keys: Keys, pillow: bool) -> tuple[str, str]:
    """The rounding of a crop's start, and where it comes from."""
    rule = "int(round(half)), as torchvision" if pillow else "half rounded down"
    named = keys.origin("use_pillow", "OpenCV's crop is the default")
    return "torchvision" if pillow else "floor", f"{named}; the crop starts at {rule}"


def _crop_before(path: Path, keys: Keys, fraction: Fraction | None, pillow: bool) -> None:
    key = "max_square" if fraction is None else "central_fraction"
    if path.resized or path.sums or path.before:
        why = "this crop of a part of the image must be the first step but for the channels' order"
        keys.refuse(key, why)
        return
    if fraction is not None and fraction > 1:
        keys.refuse(key, "a number up to 1 expected")
        return
    if fraction == 1:
        return  # nothing is cut
    part = {"aspect": "network"} if fraction is None else {"fraction": float(fraction)}
    path.before = {**part, "rounding": _rounding(keys, pillow)[0]}, keys


def write_before(path: Path) -> None:
    """Write the crop before the resize, if there is one, once the resize is known."""
    if path.before is None or path.last is None:
        return
    crop, keys = path.before
    key = "max_square" if "aspect" in crop else "central_fraction"
    if key == "max_square" and (path.size[0] != path.size[1] or not path.size[0]):
        keys.refuse(key, "a square, and the resize is not written as one to a square")
        return
    origin = together(keys.origin(key), _rounding(keys, crop["rounding"] == "torchvision")[1])
    path.draft.write("geometry", "crop_before_resize", crop, origin)
    path.draft.claim("geometry", "emulated", "accuracy_checker crop.py, resize.py")


def padding(path: Path, keys: Keys) -> None:
    """Follow ``padding`` after ``fit_to_window``."""
    size = sides(keys, path.size)
    level = keys.take("pad_value", numbers.level, 0)
    places = {"center": "center", "right_bottom": "top_left"}
    position = keys.choice("pad_type", places, "center")
    stride = keys.take("stride", values.pixels, 1)
    for key in ("enable_resize", "left_top_extend"):
        if keys.take(key, values.boolean, False):
            keys.refuse(key, "a profile's padding cannot express this")
    keys.take("use_numpy", values.boolean, False)
    keys.choice("numpy_pad_mode", {"constant": "constant"}, "constant")
    if path.done or path.sums or path.resized != "fit_to_window":
        keys.refuse(
            "type",
            "a profile pads what was resized with aspect_ratio_scale fit_to_window, "
            "once, and before normalization",
        )
        return
    path.done = True
    if size is None or not size[0]:
        return
    if size != path.size or any(side % stride for side in size):
        keys.refuse(
            "type",
            f"pads to another size than the resize's {path.size[0]}x{path.size[1]}; a "
            "profile's letterbox has one size",
        )
        return
    draft = path.draft
    assert path.last is not None
    draft.write("geometry", "kind", "letterbox", path.last.origin("aspect_ratio_scale"))
    draft.write("geometry", "rounding", "floor", "scale_fit_to_window: int(scale * side)")
    draft.write("geometry", "position", position, keys.origin("pad_type", "center is the default"))
    draft.write("geometry", "value", level, keys.origin("pad_value", "0,0,0 is the default"))
    draft.claim("geometry", "emulated", "accuracy_checker scale_fit_to_window, center_padding")
    draft.network(size, told(keys) if "size" in keys else told(path.last))
