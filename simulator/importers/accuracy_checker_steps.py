"""Accuracy Checker's ``preprocessing``: a list of steps, followed from the reader to the tensor.

Sources, of open_model_zoo's ``accuracy_checker/preprocessor``: ``resize.py`` (``scale_greater``:
int(size * long / short); ``scale_fit_to_window``),
``normalization.py`` (subtract, then divide), ``color_space_conversion.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from simulator.importers import accuracy_checker_fit as fit
from simulator.importers import values
from simulator.importers.accuracy_checker_fit import Path
from simulator.importers.draft import Draft, Order, together
from simulator.importers.image_steps import after_normalization
from simulator.importers.keys import Keys
from simulator.importers.open_model_zoo import Inside, divisors, numbers

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
_SCALES = {"greater": "greater", "fit_to_window": "fit_to_window"}


def follow(
    draft: Draft, steps: Sequence[Keys], order: str, reader: str, inside: Inside | None = None
) -> None:
    """Write color, resize, geometry and normalize.

    Args:
        draft: the draft of the profile.
        steps: the keys of each step.
        order: the order of the channels that the reader returns.
        reader: the origin of that order.
        inside: what the network does with the tensor then, if it has steps of its own.
    """
    path = Path(draft, order, [reader])
    kinds: dict[str, Callable[[Path, Keys], None]] = {
        "resize": _resize, "auto_resize": _auto_resize, "crop": fit.crop, "padding": fit.padding,
        "normalization": _normalization, "bgr_to_rgb": _turn, "rgb_to_bgr": _turn,
    }  # fmt: skip
    before = len(draft.problems)
    for keys in steps:
        step = keys.choice("type", kinds, None, need="it selects the step")
        if step is not None:
            step(path, keys)
        if len(draft.problems) == before:
            keys.rest(named=("type",))
        if len(draft.problems) > before:  # what follows would only repeat it
            return
    if path.last is None and steps:
        steps[0].problem("type", "no step resizes; a profile resizes every image to one size")
    if inside is not None and inside.is_known:
        _embedded(path, inside)
    draft.write("color", "format", "rgb", reader)
    draft.write("color", "order", path.order, together(*path.turned))
    fit.finish(path)
    made = path.normalization
    said = together(*made.origins or ["no step normalizes; the model may do it"])
    in_ir = inside is not None and (
        inside.normalization.origins if inside.is_known else not made.origins
    )
    draft.normalize(made.mean, made.std, _IR if in_ir else _STEP, lambda _: said)
    if inside is not None and not inside.is_known:
        _unknown(draft, inside, bool(made.origins))


def _resize(path: Path, keys: Keys) -> None:
    if not _may_resize(path, keys):
        return
    flags = {"use_pillow": "pillow", "use_tensorflow": "tf"}
    used = [name for flag, name in flags.items() if keys.take(flag, values.boolean, False)]
    named = keys.choice("resize_realization", {name: name for name in _KERNELS}, "")
    if len({*used, named} - {""}) > 1:
        keys.refuse("type", "more than one library is named; write resize_realization alone")
    said = [keys.origin(key) for key in (*flags, "resize_realization") if key in keys]
    origin = together(*(said or [keys.origin("resize_realization", "opencv is the default")]))
    _kernel(path, keys, named or (used[0] if used else "opencv"), origin)
    path.size = fit.sides(keys) or (0, 0)
    path.resized = keys.choice("aspect_ratio_scale", _SCALES, "squash")
    path.last = keys
    divisible = "sides are made divisible; a profile has no such rounding"
    keys.only("include_boundary", False, divisible)


def _auto_resize(path: Path, keys: Keys) -> None:
    if _may_resize(path, keys):
        _kernel(path, keys, "opencv", f"{keys.origin('type')}; cv2.resize")
        path.resized, path.last = "squash", keys


def _may_resize(path: Path, keys: Keys) -> bool:
    before = "crop or padding" if path.done else "resize" if path.resized else ""
    if before:
        why = "a profile resizes once, and before that only crops"
        keys.refuse("type", f"a {before} comes before it; {why}")
    return not before


def _kernel(path: Path, keys: Keys, library: str, origin: str) -> None:
    backend, kernels, default = _KERNELS[library]

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
    source = f"Accuracy Checker's resizer of {backend}"
    draft.claim("resize", "native", source)
    if path.normalization.origins:
        after_normalization(draft, source, chosen)


def _normalization(path: Path, keys: Keys) -> None:
    keys.take("images_only", values.boolean, False)
    mean = keys.take("mean", numbers, [Fraction(0)] * 3)
    std = keys.take("std", divisors, [Fraction(1)] * 3)
    written = [key for key in ("mean", "std") if key in keys]
    if not written:
        keys.problem("mean", "not written, and no std; one of them expected")
    path.normalization.then(mean, std, *map(keys.origin, written))


def _turn(path: Path, keys: Keys) -> None:
    path.reverse(keys.origin("type"))


def _embedded(path: Path, inside: Inside) -> None:
    """Do before the network what is inside of it: the model card's ONNX file has it not."""
    own = inside.normalization
    if inside.reverse:
        path.reverse(inside.reverse)
    path.normalization.then(own.mean, own.std, *own.origins)
    for section in ("normalize", "color") if inside.reverse else ("normalize",):
        path.draft.claim(section, inside.kind, inside.source)


def _unknown(draft: Draft, inside: Inside, steps_normalize: bool) -> None:
    """Take an IR that may normalize as right for its network, unless the steps normalize."""
    said = "taken as if it had none, since a step here normalizes"
    if not steps_normalize:
        said = "taken to give the network what its model card says"
        for section, name in (("color", "order"), ("normalize", "mean"), ("normalize", "std")):
            draft.write(section, name, "model", f"not known; {said}")
    for section in ("color", "normalize"):
        draft.claim(section, inside.kind, f"{inside.source}; {said}")
