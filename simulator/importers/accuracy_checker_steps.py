"""Accuracy Checker's ``preprocessing``: a list of steps, followed from the reader to the tensor.

Sources, of open_model_zoo's ``accuracy_checker/preprocessor``: ``resize.py`` (``scale_greater``:
int(size * long / short); ``scale_fit_to_window``), ``crop.py`` (OpenCV's starts at the half rounded
down, Pillow's at int(round(half))), ``geometric_transformations.py`` (``center_padding``),
``normalization.py`` (subtract, then divide), ``color_space_conversion.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from simulator.importers import accuracy_checker_numbers as numbers
from simulator.importers import values
from simulator.importers.draft import Draft, Keys, together

_OPENCV = {"NEAREST": "nearest", "LINEAR": "bilinear", "BILINEAR": "bilinear", "CUBIC": "bicubic",
           "BICUBIC": "bicubic", "AREA": "area", "LANCZOS4": "lanczos4"}  # fmt: skip
_PILLOW = {"NEAREST": "nearest", "NONE": "nearest", "BILINEAR": "bilinear", "LINEAR": "bilinear",
           "BICUBIC": "bicubic", "CUBIC": "bicubic", "BOX": "box", "LANCZOS": "lanczos",
           "ANTIALIAS": "lanczos", "HAMMING": "hamming"}  # fmt: skip
_TF = {"BILINEAR": "bilinear", "AREA": "area", "BICUBIC": "bicubic"}
_KERNELS = {"opencv": ("opencv", _OPENCV, "LINEAR"), "pillow": ("pillow", _PILLOW, "BILINEAR"),
            "tf": ("tensorflow", _TF, "BILINEAR")}  # fmt: skip
_SCALES = {"greater": "greater", "fit_to_window": "fit_to_window"}


@dataclass(slots=True)
class _Path:
    """The effect of the steps so far on an image.

    Attributes:
        order: the order of the channels.
        turned: the origins of the steps that reversed the channels.
        mean, std: the tensor is (x - mean) / std, in that order of channels.
        sums: the origins of the steps that normalized.
        resized: how sides were scaled (``squash``, ``greater``, ``fit_to_window``), if they were.
        size: (height, width) given to the resize.
        done: whether the image was cropped or padded.
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


def follow(draft: Draft, steps: list[Keys], order: str, reader: str) -> None:
    """Write color, resize, geometry and normalize.

    Args:
        draft: the draft of the profile.
        steps: the keys of each step.
        order: the order of the channels that the reader returns.
        reader: the origin of that order.
    """
    path = _Path(draft, order, [reader])
    kinds: dict[str, Callable[[_Path, Keys], None]] = {
        "resize": _resize, "auto_resize": _auto_resize, "crop": _crop, "padding": _padding,
        "normalization": _normalization, "bgr_to_rgb": _turn, "rgb_to_bgr": _turn,
    }  # fmt: skip
    before = len(draft.problems)
    for keys in steps:
        if "type" not in keys:
            keys.problem("type", "not written; it selects the step")
        step = keys.choice("type", kinds, None)
        if step is not None:
            step(path, keys)
            if len(draft.problems) == before:
                keys.rest(named=("type",))
        if len(draft.problems) > before:  # what follows would only repeat it
            return
    if path.last is None and steps:
        steps[0].problem("type", "no step resizes; a profile resizes every image to one size")
    draft.write("color", "format", "rgb", reader)
    draft.write("color", "order", path.order, together(*path.turned))
    _finish(path)
    said = together(*path.sums or ["no step normalizes; the model may do it"])
    draft.normalize(path.mean, path.std, lambda _: said)


def _finish(path: _Path) -> None:
    """Report what is missing if the image has no fixed size after the last step."""
    if path.last is None or path.done:
        return
    if path.resized == "squash":
        path.draft.write("geometry", "kind", "squash", _told(path.last))
        if path.size[0]:
            _card(path, path.size, _told(path.last))
        return
    scale = path.resized
    path.last.refuse(
        "aspect_ratio_scale",
        "the size varies by image; a profile needs a "
        f"{'crop' if scale == 'greater' else 'padding'} after it",
    )


def _card(path: _Path, size: tuple[int, int], origin: str) -> None:
    told = origin.removeprefix("from ")
    path.draft.card.append(f"input: height: {size[0]}, width: {size[1]} ({told})")


def _sides(keys: Keys, default: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """``size``, or ``dst_height`` and ``dst_width``, as (height, width)."""
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


def _told(keys: Keys) -> str:
    written = [key for key in ("size", "dst_height", "dst_width") if key in keys]
    return together(*([keys.origin(key) for key in written] or [keys.origin("type")]))


def _resize(path: _Path, keys: Keys) -> None:
    if not _may_resize(path, keys):
        return
    flags = {"use_pillow": "pillow", "use_tensorflow": "tf"}
    used = [name for flag, name in flags.items() if keys.take(flag, values.boolean, False)]
    named = keys.choice("resize_realization", {name: name for name in _KERNELS}, "")
    if len({*used, named} - {""}) > 1:
        keys.refuse("type", "more than one library is named; write resize_realization alone")
    library = named or (used[0] if used else "opencv")
    backend, kernels, default = _KERNELS[library]
    said = [keys.origin(key) for key in (*flags, "resize_realization") if key in keys]
    origin = together(*(said or [keys.origin("resize_realization", "opencv is the default")]))
    _kernel(path, keys, backend, kernels, default, origin)
    path.size = _sides(keys) or (0, 0)
    path.resized = keys.choice("aspect_ratio_scale", _SCALES, "squash")
    path.last = keys
    if keys.take("include_boundary", values.boolean, False):
        keys.refuse("include_boundary", "sides are made divisible; a profile has no such rounding")


def _auto_resize(path: _Path, keys: Keys) -> None:
    if not _may_resize(path, keys):
        return
    origin = keys.origin("type")
    _kernel(path, keys, "opencv", _OPENCV, "LINEAR", f"{origin}; cv2.resize")
    path.resized, path.last = "squash", keys


def _may_resize(path: _Path, keys: Keys) -> bool:
    before = "resize" if path.resized else "normalization" if path.sums else ""
    if path.done:
        before = "crop or padding"
    if before:
        keys.refuse(
            "type", f"a {before} comes before it; a profile resizes once, as the first step"
        )
        for key in keys.values:
            keys.take(key, lambda value: value, None)
    return not before


def _kernel(
    path: _Path, keys: Keys, backend: str, kernels: dict[str, str], default: str, origin: str
) -> None:
    def check(value: Any) -> str:
        word = values.text(value).upper()
        if word not in kernels:
            raise ValueError(f"{backend} offers {', '.join(kernels)} here")
        return kernels[word]

    draft = path.draft
    chosen = keys.take("interpolation", check, kernels[default])
    named = keys.origin("interpolation", f"{default} is the default")
    draft.write("resize", "backend", backend, origin)
    draft.write("resize", "interpolation", chosen, named)
    if backend == "tensorflow":
        if chosen != "area":
            draft.write("resize", "antialias", False, "tf.image.resize is called without antialias")
        draft.write("resize", "coordinates", "half_pixel", "TensorFlow 2; in 1 it was legacy")
    draft.write("resize", "domain", "rgb", "the reader gives no YUV")
    draft.claim("resize", "native", f"Accuracy Checker's resizer of {backend}")


def _crop(path: _Path, keys: Keys) -> None:
    for key in ("central_fraction", "max_square"):
        if keys.values.get(key):
            why = "it crops the image before it is resized; a profile crops only after the resize"
            keys.refuse(key, why)
            return
        keys.take(key, lambda value: value, None)
    pillow = keys.take("use_pillow", values.boolean, False)
    size = _sides(keys)
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
    rule = "int(round(half)), as torchvision" if pillow else "half rounded down"
    named = keys.origin("use_pillow", "OpenCV's crop is the default")
    rounding = "torchvision" if pillow else "floor"
    draft.write("geometry", "rounding", rounding, f"{named}; the crop starts at {rule}")
    draft.write("geometry", "short_side", path.size[0], _told(path.last))
    draft.claim("geometry", "emulated", "accuracy_checker resize.py, crop.py")
    _card(path, size, _told(keys))


def _padding(path: _Path, keys: Keys) -> None:
    size = _sides(keys, path.size)
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
    _card(path, size, _told(keys) if "size" in keys else _told(path.last))


def _normalization(path: _Path, keys: Keys) -> None:
    keys.take("images_only", values.boolean, False)
    mean = keys.take("mean", numbers.channels, [Fraction(0)] * 3)
    std = keys.take("std", numbers.divisors, [Fraction(1)] * 3)
    if "mean" not in keys and "std" not in keys:
        keys.problem("mean", "not written, and no std; one of them expected")
    path.mean = [m + s * more for m, s, more in zip(path.mean, path.std, mean, strict=True)]
    path.std = [s * more for s, more in zip(path.std, std, strict=True)]
    path.sums += [keys.origin(key) for key in ("mean", "std") if key in keys]


def _turn(path: _Path, keys: Keys) -> None:
    path.order = "bgr" if path.order == "rgb" else "rgb"
    path.turned.append(keys.origin("type"))
    path.mean.reverse()
    path.std.reverse()
