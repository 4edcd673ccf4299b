"""Accuracy Checker's ``preprocessing``: a list of steps, followed from the reader to the tensor.

Sources, of open_model_zoo's ``accuracy_checker/preprocessor``: ``resize.py`` (``scale_greater``:
int(size * long / short); ``scale_fit_to_window``: int(scale * side)), ``crop.py``
(``central_fraction``: int(side * fraction); ``max_square``: the short side; OpenCV's crop starts at
the half rounded down, Pillow's at int(round(half))), ``geometric_transformations.py``
(``center_padding``), ``normalization.py`` (subtract, then divide), ``color_space_conversion.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, Order, together
from simulator.importers.image_steps import ImageSteps
from simulator.importers.keys import Keys
from simulator.importers.open_model_zoo import Inside, divisors, numbers
from simulator.importers.resizing import Kernel, Rounding, Scaling, Size

_OPENCV = {"NEAREST": "nearest", "LINEAR": "bilinear", "BILINEAR": "bilinear", "CUBIC": "bicubic",
           "BICUBIC": "bicubic", "AREA": "area", "LANCZOS4": "lanczos4"}  # fmt: skip
_PILLOW = {"NEAREST": "nearest", "NONE": "nearest", "BILINEAR": "bilinear", "LINEAR": "bilinear",
           "BICUBIC": "bicubic", "CUBIC": "bicubic", "BOX": "box", "LANCZOS": "lanczos",
           "ANTIALIAS": "lanczos", "HAMMING": "hamming"}  # fmt: skip
_TF = {"BILINEAR": "bilinear", "AREA": "area", "BICUBIC": "bicubic"}
_KERNELS = {"opencv": ("opencv", _OPENCV, "LINEAR"), "pillow": ("pillow", _PILLOW, "BILINEAR"),
            "tf": ("tensorflow", _TF, "BILINEAR")}  # fmt: skip
_STEP: Order = ("divide", "normalization.py: data - mean, then / std; there in float64")
_IR: Order = ("multiply", "Model Optimizer puts Add(-mean) and Multiply(1 / scale) into the IR")
_SCALES: dict[str, Scaling] = {"greater": "short_side", "fit_to_window": "fit"}
_SIDES = ("size", "dst_height", "dst_width")


@dataclass(slots=True)
class _Steps(ImageSteps):
    """The effect of the steps, and the crop before the resize with the keys of its step."""

    before: tuple[dict[str, str | float], Keys] | None = None


def follow(
    draft: Draft, each: Sequence[Keys], order: str, reader: str, inside: Inside | None = None
) -> None:
    """Write color, resize, geometry and normalize.

    Args:
        draft: the draft of the profile.
        each: the keys of each step.
        order: the order of the channels that the reader returns.
        reader: the origin of that order.
        inside: what the network does with the tensor then, if it has steps of its own.
    """
    steps = _Steps(draft, "Accuracy Checker", order, [reader])
    kinds: dict[str, Callable[[_Steps, Keys], None]] = {
        "resize": _resize, "auto_resize": _auto_resize, "crop": _crop, "padding": _padding,
        "normalization": _normalization, "bgr_to_rgb": _turn, "rgb_to_bgr": _turn,
    }  # fmt: skip
    before = len(draft.problems)
    for keys in each:
        step = keys.choice("type", kinds, None, need="it selects the step")
        if step is not None:
            step(steps, keys)
        if len(draft.problems) == before:
            keys.rest(named=("type",))
        if len(draft.problems) > before:  # what follows would only repeat it
            return
    if not each:
        return
    made = steps.normalization
    normalizes = bool(made.origins)
    if inside is not None and inside.is_known:
        _embedded(steps, inside)
    in_ir = inside is not None and (
        inside.normalization.origins if inside.is_known else not normalizes
    )
    steps.finish(_IR if in_ir else _STEP, each[0])
    _write_before(steps)
    if inside is not None and not inside.is_known:
        _unknown(draft, inside, normalizes)


def _sides(keys: Keys, default: Size = (0, 0)) -> tuple[str, Size]:
    """Take ``size``, or ``dst_height`` and ``dst_width``; return the key of the first, and both."""
    size, height, width = (keys.take(key, values.pixels, 0) for key in _SIDES)
    keys.tell(*_SIDES)
    if size and (height or width):
        keys.refuse("size", "dst_height or dst_width is also given; write only one of them")
    if size or (height and width):
        return ("size", (size, size)) if size else ("dst_height", (height, width))
    if default == (0, 0) or height or width:
        keys.problem("size", "not written; size, or dst_height and dst_width, expected")
    return "type", default


def _resize(steps: _Steps, keys: Keys) -> None:
    flags = {"use_pillow": "pillow", "use_tensorflow": "tf"}
    used = [name for flag, name in flags.items() if keys.take(flag, values.boolean, False)]
    named = keys.choice("resize_realization", {name: name for name in _KERNELS}, "")
    if len({*used, named} - {""}) > 1:
        keys.refuse("type", "more than one library is named; write resize_realization alone")
    said = [keys.origin(key) for key in (*flags, "resize_realization") if key in keys]
    origin = together(*(said or [keys.origin("resize_realization", "opencv is the default")]))
    kernel = _kernel(keys, named or (used[0] if used else "opencv"), origin)
    key, size = _sides(keys)
    scaling = keys.choice("aspect_ratio_scale", _SCALES, "squash")
    divisible = "sides are made divisible; a profile has no such rounding"
    keys.only("include_boundary", False, divisible)
    steps.resize(keys, key, scaling, size, kernel, how="aspect_ratio_scale")


def _auto_resize(steps: _Steps, keys: Keys) -> None:
    kernel = _kernel(keys, "opencv", f"{keys.origin('type')}; cv2.resize")
    steps.resize(keys, "type", "squash", None, kernel)


def _kernel(keys: Keys, library: str, origin: str) -> Kernel:
    backend, kernels, default = _KERNELS[library]

    def check(value: Any) -> str:
        word = values.text(value).upper()
        if word not in kernels:
            raise ValueError(f"{backend} offers {', '.join(kernels)} here")
        return kernels[word]

    chosen = keys.take("interpolation", check, kernels[default])
    named = keys.origin("interpolation", f"{default} is the default")
    fields: dict[str, object] = {}
    if backend == "tensorflow":
        fields = {"antialias": False} if chosen != "area" else {}
        fields["coordinates"] = "half_pixel"  # of TensorFlow 2; in 1 it was legacy
    source = f"Accuracy Checker's resizer of {backend}"
    return Kernel(backend, chosen, origin, named, source, fields)


def _crop(steps: _Steps, keys: Keys) -> None:
    """Follow ``crop``: to a size after the resize, or of a part of the image before it."""
    start: Rounding = "even" if keys.take("use_pillow", values.boolean, False) else "down"
    keys.tell("use_pillow")
    fraction = keys.take("central_fraction", values.above_zero, None)
    if keys.take("max_square", values.boolean, False) or fraction is not None:
        _crop_before(steps, keys, fraction, "torchvision" if start == "even" else "floor")
    else:
        steps.crop(keys, *_sides(keys), start)


def _crop_before(steps: _Steps, keys: Keys, fraction: Fraction | None, rounding: str) -> None:
    key = "max_square" if fraction is None else "central_fraction"
    if steps.is_resized or steps.normalization.origins or steps.before:
        why = "this crop of a part of the image must be the first step but for the channels' order"
        keys.refuse(key, why)
    elif fraction is not None and fraction > 1:
        keys.refuse(key, "a number up to 1 expected")
    elif fraction != 1:  # else nothing is cut
        part = {"aspect": "network"} if fraction is None else {"fraction": float(fraction)}
        steps.before = {**part, "rounding": rounding}, keys


def _write_before(steps: _Steps) -> None:
    if steps.before is None:
        return
    crop, keys = steps.before
    key = "max_square" if "aspect" in crop else "central_fraction"
    if key == "max_square" and (steps.size[0] != steps.size[1] or not steps.size[0]):
        keys.refuse(key, "a square, and the resize is not written as one to a square")
        return
    named = keys.origin("use_pillow", "OpenCV's crop is the default")
    origin = together(keys.origin(key), named)
    steps.draft.write("geometry", "crop_before_resize", crop, origin)
    steps.draft.claim("geometry", "emulated", "accuracy_checker crop.py, resize.py")


def _padding(steps: _Steps, keys: Keys) -> None:
    key, size = _sides(keys, steps.size)
    key = "pad_type" if key == "type" and "pad_type" in keys else key
    level = keys.take("pad_value", numbers, [Fraction(0)] * 3)
    places = {"center": "center", "right_bottom": "top_left"}
    position = keys.choice("pad_type", places, "center")
    stride = keys.take("stride", values.pixels, 1)
    for name in ("enable_resize", "left_top_extend"):
        keys.only(name, False, "a profile's padding cannot express this")
    keys.take("use_numpy", values.boolean, False)
    keys.choice("numpy_pad_mode", {"constant": "constant"}, "constant")
    keys.tell("pad_type")
    if any(side % stride for side in size):
        keys.refuse("stride", "the size is no multiple of it; a profile's letterbox has one size")
        return
    said = keys.origin("pad_value", "0,0,0 is the default")
    steps.pad(keys, key, size, level, position, said)


def _normalization(steps: _Steps, keys: Keys) -> None:
    keys.take("images_only", values.boolean, False)
    mean = keys.take("mean", numbers, [Fraction(0)] * 3)
    std = keys.take("std", divisors, [Fraction(1)] * 3)
    written = [key for key in ("mean", "std") if key in keys]
    if not written:
        keys.problem("mean", "not written, and no std; one of them expected")
    steps.normalize(mean, std, *map(keys.origin, written))


def _turn(steps: _Steps, keys: Keys) -> None:
    steps.reverse(keys.origin("type"))


def _embedded(steps: _Steps, inside: Inside) -> None:
    """Do before the network what is inside of it: the model card's ONNX file has it not."""
    own = inside.normalization
    if inside.reverse:
        steps.reverse(inside.reverse)
    steps.normalize(own.mean, own.std, *own.origins)
    for section in ("normalize", "color") if inside.reverse else ("normalize",):
        steps.draft.claim(section, inside.kind, inside.source)


def _unknown(draft: Draft, inside: Inside, steps_normalize: bool) -> None:
    """Take an IR that may normalize as right for its network, unless the steps normalize."""
    said = "taken as if it had none, since a step here normalizes"
    if not steps_normalize:
        said = "taken to give the network what its model card says"
        for section, name in (("color", "order"), ("normalize", "mean"), ("normalize", "std")):
            draft.write(section, name, "model", f"not known; {said}")
    for section in ("color", "normalize"):
        draft.claim(section, inside.kind, f"{inside.source}; {said}")
