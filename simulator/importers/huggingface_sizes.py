"""The sizes of Hugging Face Transformers' image processors: what is resized, cropped or padded."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import huggingface_types as types
from simulator.importers import values
from simulator.importers.image_steps import ImageSteps
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel

_NATIVE = "images keep their size; write the kind native into the profile"


def one_size(keys: Keys, key: str, square: bool | None) -> dict[str, int]:
    """Take a size that all images get: both sides, or the short one.

    Args:
        keys: of the processor.
        key: the one of the size.
        square: of a size that is one number; see :class:`types.Type`.
    """

    def check(value: Any) -> dict[str, int]:
        if isinstance(value, dict):
            if set(value) not in ({"height", "width"}, {"shortest_edge"}):
                raise ValueError(
                    "only {height, width} and {shortest_edge} give one size; with "
                    "other rules the size of the network's input varies by image"
                )
            return {name: values.pixels(side) for name, side in value.items()}
        if isinstance(value, list) and len(value) == 2:
            return {"height": values.pixels(value[0]), "width": values.pixels(value[1])}
        if square is None:
            raise ValueError("both sides, or the short one? write {height, width} or "
                             "{shortest_edge}")  # fmt: skip
        side = values.pixels(value)
        return {"height": side, "width": side} if square else {"shortest_edge": side}

    return keys.need(key, check, {}, "it sets the size of the resized images")


def geometry(steps: ImageSteps, keys: Keys, name: str, kernel: Kernel) -> None:
    """Follow a resize to one size, and a crop."""
    kind = types.TYPES.get(name, types.PLAIN)
    if not keys.need("do_resize", values.boolean, True, types.CHANGES):
        why = "images keep their size; a profile resizes every image to the network's size"
        keys.refuse("do_resize", why)
        keys.skip("size", "crop_size")
        return
    size = one_size(keys, "size", kind.square)
    plain = kind is types.PLAIN and "crop_size" not in keys
    if kind.crops is None and "do_center_crop" not in keys and not plain:
        keys.problem("do_center_crop", f"not written; {types.CHANGES}")
    crops = keys.take("do_center_crop", values.boolean, bool(kind.crops))
    if name == "ConvNext":
        _convnext(steps, keys, size, crops, kernel)
        return
    if not crops:
        keys.aside({"crop_size": "do_center_crop is false"})
    crop = one_size(keys, "crop_size", True) if crops else size
    if not size or not crop:
        return
    if "shortest_edge" in size:
        size = {"shortest_edge": _enlarged(keys, name, size["shortest_edge"])}
    if "shortest_edge" in crop:
        why = "the size of the network's input varies by image; this needs do_center_crop and a "
        keys.refuse("crop_size" if crops else "size", f"{why}crop_size of {{height, width}}")
        return
    side = size.get("shortest_edge", 0)
    both = (side, side) if side else (size["height"], size["width"])
    keys.only("keep_aspect_ratio", False, "the size of the network's input varies by image")
    if any(one % keys.take("ensure_multiple_of", values.pixels, 1) for one in both):
        keys.refuse("ensure_multiple_of", "the size is no multiple of it, and would be rounded")
    steps.resize(keys, "size", "short_side" if side else "squash", both, kernel)
    if crops:
        steps.crop(keys, "crop_size", (crop["height"], crop["width"]), "down")


def _enlarged(keys: Keys, name: str, side: int) -> int:
    """The short side of a resize that is larger than the size says, for a crop after it."""
    if name == "Levit":
        return int(256 / 224 * side)
    if name == "PoolFormer":
        return int(side / float(keys.take("crop_pct", values.above_zero, Fraction(9, 10))))
    return side


def longest(keys: Keys) -> int:
    """Take the long side alone."""

    def check(value: Any) -> int:
        if not isinstance(value, dict) or set(value) != {"longest_edge"}:
            raise ValueError("{longest_edge} expected")
        return values.pixels(value["longest_edge"])

    keys.only("do_resize", True, _NATIVE)
    return keys.need("size", check, 0, "it sets the size of the resized images")


def keep_ratio(steps: ImageSteps, keys: Keys, rounding: Any, kernel: Kernel) -> None:
    """Resize as ``get_size_with_aspect_ratio`` does; ``size`` may be one number in older files."""

    def check(value: Any) -> tuple[int, int]:
        if isinstance(value, int):
            longest = keys.take("max_size", values.pixels, 1333)
            value = {"shortest_edge": value, "longest_edge": longest}
        if not isinstance(value, dict) or set(value) != {"shortest_edge", "longest_edge"}:
            raise ValueError("{shortest_edge, longest_edge} or {height, width} expected")
        return values.pixels(value["shortest_edge"]), values.pixels(value["longest_edge"])

    keys.only("do_resize", True, _NATIVE)
    size = keys.need("size", check, (0, 0), "it sets the size of the resized images")
    if rounding == "maskformer":
        step = next((key for key in ("size_divisibility", "size_divisor") if key in keys), "")
        divisor = keys.take(step, values.whole, 32)
        if divisor not in (0, 32):
            keys.refuse(step, "a profile stretches to multiples of 32, or not at all")
        rounding = rounding if divisor else "transformers"
    steps.resize(keys, "size", "keep_ratio", size, kernel, rounding, "max_size")


def _convnext(
    steps: ImageSteps, keys: Keys, size: dict[str, int], crops: bool, kernel: Kernel
) -> None:
    """ConvNextImageProcessor.resize: below 384 int(size / crop_pct) and a crop, else a squash."""
    fraction = keys.take("crop_pct", values.above_zero, Fraction(224, 256))
    if crops:
        why = "ConvNext crops as part of its resize; a second crop is not possible"
        keys.refuse("do_center_crop", why)
    keys.skip("crop_size")
    edge = size.get("shortest_edge")
    if edge is None:
        if size:
            keys.refuse("size", "ConvNextImageProcessor needs {shortest_edge}")
        return
    short_side = int(edge / float(fraction))
    if edge >= 384:
        steps.resize(keys, "size", "squash", (edge, edge), kernel, how="crop_pct")
    elif short_side > values.PIXELS:
        keys.refuse("crop_pct", f"the short side becomes {short_side} pixels")
    else:
        both = (short_side, short_side)
        steps.resize(keys, "size", "short_side", both, kernel, how="crop_pct")
        steps.crop(keys, "size", (edge, edge), "down")
