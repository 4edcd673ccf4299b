"""torchvision's transforms: a script that composes them, or the ``repr`` of such an object.

Sources, of pytorch/vision: ``torchvision/transforms/transforms.py`` and ``functional.py``
(``Resize``: the long side is int(size * long / short); ``CenterCrop``: int(round(half));
``ToTensor``: / 255; ``Normalize``: sub, div), ``_functional_pil.py`` (``Image.resize``),
``_functional_tensor.py`` (``resize``: float32, then rounded), ``v2/functional/_geometry.py``
(bytes), ``_presets.py`` (``ImageClassification``); release notes of 0.17 (``antialias=True``).
timm's own steps, which its ``create_transform`` mixes in: ``timm/data/transforms.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from simulator.importers import values
from simulator.importers.compositions import compositions
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import Follow, ImageSteps, follow
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel, Scaling
from simulator.modalities.image.sections import image_spec

PARAMETERS = {
    "Resize": "size interpolation max_size antialias",
    "Scale": "size interpolation",
    "CenterCrop": "size",
    "Normalize": "mean std inplace",
    "ToDtype": "dtype scale",
    "ConvertImageDtype": "dtype",
    "ToPILImage": "mode",
    "ImageClassification": "crop_size resize_size mean std interpolation antialias",
    "GeneralizedRCNNTransform": "min_size max_size image_mean image_std size_divisible fixed_size",
    **dict.fromkeys(("ToTensor", "MaybeToTensor", "PILToTensor", "MaybePILToTensor", "ToImage",
                     "ToImageTensor", "RGB", "Identity", "ToPureTensor"), ""),
}  # fmt: skip
"""The parameters of every step, in their order."""
_ORDER: Order = ("unit_divide", "ToTensor, then Normalize: x / 255, sub(mean), div(std)")
_PILLOW = ("nearest", "nearest_exact", "bilinear", "bicubic", "box", "hamming", "lanczos")
_NUMBERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_FLOATS = ("torch.float32", "torch.float", "float32", "None")
_ASIDE = dict.fromkeys(("Identity", "ToPureTensor", "RGB"), "a profile's images are RGB")


@dataclass(slots=True)
class _Steps(ImageSteps):
    """The effect of the steps, and what they act on: a PIL image, or a tensor."""

    on: Literal["pil", "bytes", "floats"] = "pil"
    is_v2: bool = False


class Torchvision(Importer):
    """A composition of transforms."""

    name = tool = "torchvision"
    about = "a script with torchvision's transforms, or the repr of such an object"
    base = "pillow_fp32"
    line = (
        r"\A\s*(Compose|Sequential|ImageClassification)\(\s*\n|^[ \t]*(from torchvision import .*"
        r"(transforms|v2)|import torchvision\.transforms|from torchvision\.transforms)|"
        r"torchvision\.transforms\.(v2\.)?Compose\(|\bGeneralizedRCNNTransform\("
    )

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the compositions, without those of training."""
        return [one.label for one in compositions(file, PARAMETERS)]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the steps of one of them."""
        found = compositions(file, PARAMETERS)
        if not found:
            why = "no Compose([...]) whose steps are written in it"
            draft.problems.append(f"{file.path}:1: {why}; give the repr of the object")
            return
        each = found[stack].keys(draft, file)
        steps = _Steps(draft, "torchvision", "rgb", ["PIL images are RGB"])
        steps.is_v2 = any(name in ("ToImage", "ToDtype", "ToImageTensor") for name, _ in each)
        own = f"{image_spec(draft.base).decode.backend} is {draft.base.name}'s"
        draft.claim("decode", "assumed", f"the transform gets an image that is open; {own}")
        to_rgb = {name: "taken for a conversion to RGB" for name, _ in each
                  if name not in PARAMETERS and "rgb" in name.lower()}  # fmt: skip
        follow(steps, each, _KINDS, _ASIDE | to_rgb)
        if not draft.problems:
            steps.finish(_ORDER, each[0][1])
            found[stack].doubt(draft)


def _interpolation(value: Any) -> str:
    """The name of ``InterpolationMode.BICUBIC``, ``Image.BICUBIC``, ``bicubic`` or 3."""
    name = _NUMBERS.get(value) if isinstance(value, int) else None
    name = name or str(value).rpartition(".")[2].lower()
    if name not in _PILLOW:
        raise ValueError(f"one of {', '.join(_PILLOW)} expected")
    return name


def _resize(steps: ImageSteps, keys: Keys) -> None:
    _resize_to(steps, keys, "size")


def _resize_to(steps: ImageSteps, keys: Keys, key: str, default: object = None) -> None:
    assert isinstance(steps, _Steps)
    if key not in keys and default is not None:
        keys.values = {**keys.values, key: default}
    both = keys.need(key, values.sides, (0, 0), "it is the size of the resize")
    limited = keys.values.get("max_size") not in (None, "None")
    longest = keys.take("max_size", values.pixels if limited else lambda _: 0, 0)
    keys.tell("max_size")
    written = keys.values.get(key)
    scaling: Scaling = "squash" if isinstance(written, list) and written[1:] else "short_side"
    if limited and scaling == "short_side":
        box = both[0], longest
        steps.resize(keys, key, "keep_ratio", box, _kernel(steps, keys), "torchvision", "max_size")
        return
    steps.resize(keys, key, scaling, both, _kernel(steps, keys), "down")


def _kernel(steps: _Steps, keys: Keys) -> Kernel:
    name = keys.take("interpolation", _interpolation, "bilinear")
    origin = keys.origin("interpolation", "bilinear is the default")
    antialias = keys.take("antialias", _antialias, None)
    if steps.on == "pil":
        keys.tell("antialias")
        chosen = "nearest" if name == "nearest_exact" else name
        source = "torchvision.transforms.Resize on a PIL image calls Image.resize"
        return Kernel("pillow", chosen, "a PIL image is resized by Pillow", origin, source)
    if name not in ("nearest", "nearest_exact", "bilinear", "bicubic"):
        keys.refuse("interpolation", "not offered by torch; only a PIL image has it")
    smooth = name in ("bilinear", "bicubic")
    known = antialias is not None or not smooth
    fields: dict[str, object] = {"antialias": (antialias is not False) and smooth}
    if smooth:
        fields["arithmetic"] = "uint8" if steps.is_v2 and steps.on == "bytes" else "float32"
    said = keys.origin("antialias", "true is the default since torchvision 0.17")
    source = f"torchvision's Resize of a tensor; {said}"
    how = "a tensor is resized by torch"
    return Kernel("pytorch", name, how, origin, source, fields, "native" if known else "assumed")


def _antialias(value: Any) -> bool | None:
    if value in (None, "None", "warn"):
        return None
    return values.boolean(value)


def _crop(steps: ImageSteps, keys: Keys) -> None:
    size = keys.need("size", values.sides, (0, 0), "it is the network's size")
    steps.crop(keys, "size", size, "even")


def _tensor(steps: ImageSteps, keys: Keys) -> None:
    """``ToTensor``: floats in [0, 1]."""
    _unit(steps, f"{keys.near}")


def _unit(steps: ImageSteps, near: str) -> None:
    assert isinstance(steps, _Steps)
    steps.on = "floats"
    said = f"from torchvision: {near.rstrip('.')} divides by 255"
    steps.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, said)


def _bytes(steps: ImageSteps, keys: Keys) -> None:
    """``ToImage``, ``PILToTensor``: a tensor of bytes."""
    assert isinstance(steps, _Steps)
    steps.on = "bytes"


def _image(steps: ImageSteps, keys: Keys) -> None:
    keys.take("mode", lambda value: value, None)
    assert isinstance(steps, _Steps)
    if steps.on != "pil":
        keys.problem("mode", "back to a PIL image; a profile has no such step")


def _dtype(steps: ImageSteps, keys: Keys) -> None:
    """``ConvertImageDtype``, which scales, and ``ToDtype``, which may."""
    written = str(keys.take("dtype", lambda value: value, "torch.float32"))
    default = "dtype" in keys.values and "scale" not in keys.values and keys.near == "ToDtype."
    if keys.take("scale", values.boolean, not default):
        if written in _FLOATS:
            _unit(steps, keys.near)
        elif "uint8" not in written:
            keys.refuse("dtype", "float32 expected: a profile has no other type of pixels")
    keys.tell("dtype")
    keys.tell("scale")


def _normalize(steps: ImageSteps, keys: Keys) -> None:
    mean = keys.need("mean", _numbers, [Fraction(0)] * 3, "it is a part of the arithmetic")
    std = keys.need("std", _numbers, [Fraction(1)] * 3, "it is a part of the arithmetic")
    if min(std) <= 0:
        keys.refuse("std", "numbers above 0 expected: pixels are divided by them")
        return
    keys.take("inplace", lambda value: value, None)
    keys.tell("inplace")
    steps.normalize(mean, std, keys.origin("mean"), keys.origin("std"))


def _numbers(value: Any) -> list[Fraction]:
    """Three numbers, or one for all."""
    if isinstance(value, list) and len(value) == 1:
        value = value * 3
    return values.three(value)


def _preset(steps: ImageSteps, keys: Keys) -> None:
    """``ImageClassification``: resize, crop, to floats, normalize."""
    _resize_to(steps, keys, "resize_size", 256)
    size = keys.need("crop_size", values.sides, (0, 0), "it is the network's size")
    steps.crop(keys, "crop_size", size, "even")
    _unit(steps, keys.near)
    mean, std = keys.statistics()
    said = "ImageNet's is the default"
    steps.normalize(mean, std, keys.origin("mean", said), keys.origin("std", said))


def _detector(steps: ImageSteps, keys: Keys) -> None:
    """``GeneralizedRCNNTransform``: normalize, resize with a limit, pad with 0 to multiples.

    Source: pytorch/vision, ``models/detection/transform.py``: the last ``min_size``;
    ``interpolate`` with ``recompute_scale_factor``, which rounds down.
    """
    shortest = keys.need("min_size", _last, 0, "it is the size of the resize")
    longest = keys.need("max_size", values.pixels, 0, "it is the size of the resize")
    divisor = keys.take("size_divisible", values.pixels, 32)
    if keys.take("fixed_size", str, "None") != "None":
        keys.refuse("fixed_size", "a size of its own in place of min_size and max_size")
    keys.tell("fixed_size")
    _unit(steps, "GeneralizedRCNNTransform takes tensors, so ToTensor")
    mean = keys.need("image_mean", _numbers, [Fraction(0)] * 3, "it is a part of the arithmetic")
    std = keys.need("image_std", values.three_above_zero, [Fraction(1)] * 3, "likewise")
    steps.normalize(mean, std, keys.origin("image_mean"), keys.origin("image_std"))
    said = "torch.nn.functional.interpolate, bilinear"
    fields = {"antialias": False, "arithmetic": "float32"}
    kernel = Kernel("pytorch", "bilinear", said, said, said, fields)
    box = shortest, longest
    steps.resize(keys, "min_size", "keep_ratio", box, kernel, "down", "max_size")
    if not keys.draft.problems:
        why = "zeros, to multiples of size_divisible; 32 is the default"
        steps.pad_to_multiple(keys, "size_divisible", divisor, [Fraction(0)] * 3, why)


def _last(value: Any) -> int:
    return values.pixels(value[-1] if isinstance(value, list) and value else value)


_KINDS: dict[str, Follow] = {
    "Resize": _resize, "Scale": _resize, "CenterCrop": _crop, "Normalize": _normalize,
    "ToTensor": _tensor,
    "MaybeToTensor": _tensor, "PILToTensor": _bytes, "MaybePILToTensor": _bytes, "ToImage": _bytes,
    "ToImageTensor": _bytes, "ToPILImage": _image, "ConvertImageDtype": _dtype, "ToDtype": _dtype,
    "ImageClassification": _preset, "GeneralizedRCNNTransform": _detector,
}  # fmt: skip

TORCHVISION = Torchvision()
