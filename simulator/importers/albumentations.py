"""albumentations: ``A.save`` and ``A.to_dict`` as JSON or YAML, a script, or an object's ``repr``.

Sources, of albumentations-team/albumentations: ``core/serialization.py`` (``__class_fullname__``),
``augmentations/geometric/resize.py`` (``SmallestMaxSize``, ``LongestMaxSize``: sides rounded to the
nearest), ``crops/functional.py`` (``get_center_crop_coords``: rounded down),
``geometric/transforms.py`` (``PadIfNeeded``: the smaller half above and to the left),
``augmentations/functional.py`` (``normalize``: (x - mean * max) * (1 / (std * max))).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import values
from simulator.importers.compositions import Composition, compositions
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import Follow, ImageSteps, follow
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel, Scaling
from simulator.modalities.image.sections import image_spec

_SIDES = "height width interpolation mask_interpolation area_for_downscale p"
PARAMETERS = {
    "Resize": _SIDES,
    "SmallestMaxSize": "max_size interpolation mask_interpolation",
    "LongestMaxSize": "max_size interpolation mask_interpolation",
    "CenterCrop": "height width",
    "PadIfNeeded": "min_height min_width",
    "Normalize": "mean std max_pixel_value",
    "ToFloat": "max_value",
    "ToTensorV2": "", "ToTensor": "",
}  # fmt: skip
"""The parameters of every step, in their order."""
_KERNELS = ("nearest", "bilinear", "bicubic", "area", "lanczos4", "linear_exact", "nearest_exact")
_CV2 = {"linear": "bilinear", "cubic": "bicubic"}
_ORDER: Order = ("multiply", "functional.normalize: img -= mean, img *= 1 / std, in float32")
_ASIDE = dict.fromkeys(("ToTensorV2", "ToTensor", "NoOp"), "changes no pixel")
_UNUSED = ("always_apply", "mask_interpolation", "mask_value", "fill_mask", "transpose_mask",
           "mask_fill_value")  # fmt: skip


class Albumentations(Importer):
    """A composition of transforms."""

    name = tool = "albumentations"
    about = "A.save's JSON or YAML, a script with A.Compose, or its repr"
    base = "opencv_fp32"
    line = (
        r"\A\s*(A\.)?Compose\(\[|^[ \t]*(import albumentations|from albumentations)|"
        r"^[ \t]+__class_fullname__\s*:"
    )

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has the class names of a serialized transform, or a script's import."""
        inner = file.json.get("transform") if file.is_json else None
        return file.has_line(self.line) or (
            isinstance(inner, dict) and "__class_fullname__" in inner
        )

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the compositions, without those of training."""
        return [one.label for one in _compositions(file)]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the steps of one of them."""
        found = _compositions(file)
        if not found or not found[stack].steps:
            why = "no Compose([...]) whose steps are written in it"
            draft.problems.append(f"{file.path}:1: {why}; give A.save's file of the object")
            return
        if _is_document(file):
            _around(file, draft)
        each = found[stack].keys(draft, file)
        for _, keys in each:
            if keys.take("p", values.number, Fraction(1)) != 1:
                keys.refuse("p", "applied to some images only; a profile does the same to all")
            keys.tell("p", "position")
            keys.aside(dict.fromkeys(_UNUSED, "changes no pixel of the image"))
        steps = ImageSteps(draft, "albumentations", "rgb", ["arrays are taken to be RGB"])
        own = f"{image_spec(draft.base).decode.backend} is {draft.base.name}'s"
        for section, what in (("decode", f"reads the image; {own}"), ("color", "makes it RGB")):
            draft.claim(section, "assumed", f"the transform gets an array; the caller {what}")
        if not draft.problems:
            follow(steps, each, _KINDS, _ASIDE)
        if not draft.problems:
            steps.finish(_ORDER, each[0][1])
            found[stack].doubt(draft)


def _is_document(file: ConfigFile) -> bool:
    return file.is_json or file.has_line(r"^[ \t]+__class_fullname__\s*:")


def _compositions(file: ConfigFile) -> list[Composition]:
    if _is_document(file):
        return [Composition("the only one", _steps(_document(file).get("transform")))]
    return compositions(file, PARAMETERS)


def _document(file: ConfigFile) -> values.Object:
    return file.json if file.is_json else file.yaml.values


def _around(file: ConfigFile, draft: Draft) -> None:
    """Set aside what stands around the steps."""
    outer = _document(file)
    compose: Any = outer["transform"]
    for holder, inner in ((outer, "transform"), (compose, "transforms")):
        for key, value in holder.items():
            if key == "p" and value != 1:
                draft.problems.append(f"{file.path}: p={values.show(value)}: applied to some "
                                      "images only; a profile does the same to all")  # fmt: skip
            elif key not in (inner, "p", "__class_fullname__"):
                draft.aside.append(f"{key}={values.show(value)}: around the steps")


def _steps(value: Any) -> list[tuple[str, values.Object, int]]:
    """Return the steps of a serialized transform, those of inner compositions in their place."""
    if not isinstance(value, dict):
        return [(values.show(value), {}, 1)]
    name = str(value.get("__class_fullname__", "")).rpartition(".")[2]
    inner = value.get("transforms")
    if name in ("Compose", "Sequential") and isinstance(inner, list):
        return [step for one in inner for step in _steps(one)]
    return [(name, {key: one for key, one in value.items() if key != "__class_fullname__"}, 1)]


def _kernel(keys: Keys) -> Kernel:
    def check(value: Any) -> str:
        number = isinstance(value, int) and not isinstance(value, bool)
        word = str(value).rpartition(".")[2].removeprefix("INTER_").lower()
        name = _KERNELS[value] if number and 0 <= value < len(_KERNELS) else _CV2.get(word, word)
        if name not in _KERNELS:
            raise ValueError("one of OpenCV's INTER_ expected")
        return name

    chosen = keys.take("interpolation", check, "bilinear")
    if keys.take("area_for_downscale", lambda value: value, None) not in (None, "None", False):
        keys.refuse(
            "area_for_downscale", "another kernel for images that shrink; a profile has one"
        )
    origin = keys.origin("interpolation", "cv2.INTER_LINEAR is the default")
    return Kernel("opencv", chosen, "cv2.resize", origin, "albumentations' resize: cv2.resize")


def _resize(steps: ImageSteps, keys: Keys) -> None:
    size = _two(keys, "height", "width")
    steps.resize(keys, "height", "squash", size, _kernel(keys))


def _two(keys: Keys, *names: str) -> tuple[int, int]:
    height, width = (keys.need(key, values.pixels, 0, "it is a size") for key in names)
    keys.tell(names[1])
    return height, width


def _by_one_side(scaling: Scaling) -> Follow:
    def follow_it(steps: ImageSteps, keys: Keys) -> None:
        side = keys.need("max_size", values.pixels, 0, "it is a size")
        steps.resize(keys, "max_size", scaling, (side, side), _kernel(keys), "even")

    return follow_it


def _crop(steps: ImageSteps, keys: Keys) -> None:
    if keys.take("pad_if_needed", values.boolean, False):
        keys.refuse("pad_if_needed", "a profile's crop does not pad")
    unused = ("pad_mode", "pad_cval", "pad_cval_mask", "pad_position", "border_mode", "fill")
    keys.aside(dict.fromkeys((*unused, "pad_if_needed"), "of padding, which is off"))
    steps.crop(keys, "height", _two(keys, "height", "width"), "down")


def _pad(steps: ImageSteps, keys: Keys) -> None:
    size = _two(keys, "min_height", "min_width")
    modes = dict.fromkeys((0, "cv2.BORDER_CONSTANT", "BORDER_CONSTANT"), 0)
    keys.choice("border_mode", modes, 0, need="its default depends on the version")
    for key in ("pad_height_divisor", "pad_width_divisor"):
        if keys.take(key, lambda value: value, None) not in (None, "None"):
            keys.refuse(key, "the size of the network's input varies by image")
        keys.tell(key)
    word = keys.take("position", lambda value: str(value).rpartition(".")[2].lower(), "center")
    if word not in ("center", "top_left"):
        keys.refuse("position", "a profile pads on both sides, or to the right and below")
    key = "fill" if "fill" in keys else "value"
    level = keys.take(key, values.three, [Fraction(0)] * 3)
    keys.tell("border_mode")
    said = keys.origin(key, "0 is the default")
    steps.pad(keys, "min_height", size, level, word, said)


def _normalize(steps: ImageSteps, keys: Keys) -> None:
    keys.choice("normalization", {"standard": "standard"}, "standard")
    mean, std = keys.statistics()
    top = keys.take("max_pixel_value", values.above_zero, Fraction(255))
    default = {"mean": f"{values.MEAN} is the default", "std": f"{values.STD} likewise",
               "max_pixel_value": "255 is the default"}  # fmt: skip
    said = [keys.origin(key, why) for key, why in default.items()]
    keys.tell("normalization")
    steps.normalize([one * top for one in mean], [one * top for one in std], *said)


def _to_float(steps: ImageSteps, keys: Keys) -> None:
    top = keys.take("max_value", values.above_zero, Fraction(255))
    said = keys.origin("max_value", "255 of bytes is the default")
    steps.normalize([Fraction(0)] * 3, [top] * 3, said)


_KINDS: dict[str, Follow] = {
    "Resize": _resize, "SmallestMaxSize": _by_one_side("short_side"),
    "LongestMaxSize": _by_one_side("fit"), "CenterCrop": _crop, "PadIfNeeded": _pad,
    "Normalize": _normalize, "ToFloat": _to_float,
}  # fmt: skip

ALBUMENTATIONS = Albumentations()
