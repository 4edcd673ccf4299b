"""Keras' preprocessing layers at the head of a network: ``.keras``, ``config.json``, ``to_json()``.

Sources, of keras-team/keras, ``src/layers/preprocessing``: ``image_preprocessing/resizing.py``
(``keras.ops.image.resize``; ``crop_to_aspect_ratio`` is false by default), ``center_crop.py``
(from int((side - crop) / 2)), ``rescaling.py`` (x * scale + offset), ``normalization.py``
((x - mean) / sqrt(variance)); ``src/saving/saving_lib.py`` (``config.json`` in the zip file).
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

from simulator.errors import ProfileError
from simulator.importers import values
from simulator.importers.draft import Draft, Order, together
from simulator.importers.image_steps import Follow, ImageSteps, follow
from simulator.importers.importer import MAX_BYTES, ConfigFile
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel, Size

KERNELS = {"bilinear": "bilinear", "nearest": "nearest", "bicubic": "bicubic",
           "lanczos3": "lanczos3"}  # fmt: skip
STORED = values.keys_by_reason({
    "how Keras stores a layer": "name trainable built dtype",
    "the axes of the tensor are the model card's: input.layout": "data_format",
})  # fmt: skip
_MODELS = ("Sequential", "Functional", "Model")
_INPUT = re.compile(r'"([^"]+)", \d+, \d+')
_AFFINE: Order = ("multiply_add", "Rescaling: x * scale, then + offset")
_BOTH: Order = ("unit_divide", "Rescaling, then Normalization: (x - mean) / std")
_ALONE: Order = ("divide", "Normalization: (x - mean) / std")


def is_archive(file: ConfigFile) -> bool:
    """Whether a file is a ``.keras``."""
    return file.path.suffix == ".keras" and file.head[:4] == b"PK\x03\x04"


def config_of(file: ConfigFile) -> values.Object | None:
    """Return the configuration of a network; None where the file has no layers.

    Raises:
        ProfileError: it cannot be read.
    """
    if is_archive(file):
        found = _unpacked(file)
    elif file.is_json:
        found = file.json
    else:
        return None
    config = found.get("config")
    return found if isinstance(config, dict) and isinstance(config.get("layers"), list) else None


def _unpacked(file: ConfigFile) -> values.Object:
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.whole(2**30)))
        with archive.open("config.json") as inner:
            raw = inner.read(MAX_BYTES)
        found = json.loads(raw)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RecursionError, OSError,
            NotImplementedError, RuntimeError, EOFError) as error:  # fmt: skip
        why = values.plain(str(error))[:80]
        raise ProfileError([f"{file.path}: a damaged .keras: {why}"]) from error
    return found if isinstance(found, dict) else {}


def read(path: Path, model: values.Object, draft: Draft) -> None:
    """Follow the layers from the input to the first that is no preprocessing."""
    layers, after = _head(model)
    each = [(name, Keys(draft, config, lambda _: str(path), prefix=f"{name}."))
            for name, config in layers]  # fmt: skip
    steps = ImageSteps(draft, "Keras", "rgb", ["Keras loads images as RGB"])
    draft.claim("decode", "assumed", f"the network names no decoder; {draft.base.name}'s is used")
    for _, keys in each:
        if "16" in values.show(keys.values.get("dtype")):
            keys.leave("dtype", "the layer computes in it; here all is float32")
        keys.skip(*STORED)
    if not any(name in _KINDS for name, _ in each):
        draft.problems.append(f"{path}: the network begins with {values.show(after)}, and no layer "
                              "before it resizes, rescales or normalizes")  # fmt: skip
        return
    follow(steps, each, _KINDS, _ASIDE)
    if draft.problems:
        return
    kinds = {name for name, _ in each}
    both = {"Rescaling", "Normalization"} <= kinds
    order = _BOTH if both else _ALONE if "Normalization" in kinds else _AFFINE
    if "Resizing" in kinds:
        size = steps.size
        steps.finish(order, each[0][1])
        crop_before(draft, next(keys for name, keys in each if name == "Resizing"), size, False)
    else:
        steps.finish_pixels(order)
        why = "no layer resizes; what the application does is not in the file"
        for section in ("resize", "geometry"):
            draft.claim(section, "assumed", f"{why}; {draft.base.name}'s is used")
        _card(draft, model)
    names = ", ".join(name for name, _ in each)
    draft.aside.append(
        f"layers that were followed: {names}; give the card's ONNX file without them"
    )
    draft.aside.append(f"{values.show(after)}: where the network itself is taken to begin")


def _head(model: values.Object) -> tuple[list[tuple[str, values.Object]], str]:
    """Return the class and configuration of the first layers, and what comes after them."""
    config: Any = model.get("config")
    layers = [one for one in config["layers"] if isinstance(one, dict)]
    made: list[tuple[str, values.Object]] = []
    for layer in layers if model.get("class_name") == "Sequential" else _chain(layers):
        kind, inner = str(layer.get("class_name")), layer.get("config")
        if kind in _MODELS and isinstance(inner, dict) and isinstance(inner.get("layers"), list):
            nested, after = _head(layer)
            made += nested
            if after != "nothing":
                return made, after
        elif (kind in _KINDS or kind in _ASIDE) and isinstance(inner, dict):
            made += [(kind, inner)] if kind != "InputLayer" else []
        else:
            return made, kind
    return made, "nothing"


def _chain(layers: list[values.Object]) -> list[values.Object]:
    """Return the layers of a functional network from its one input up to its first branch."""
    takes = [set(_INPUT.findall(json.dumps(layer.get("inbound_nodes")))) for layer in layers]
    here = next((layer for layer in layers if layer.get("class_name") == "InputLayer"), None)
    made: list[values.Object] = []
    while here is not None and here not in made:
        made.append(here)
        name = here.get("name") or here.get("config", {}).get("name")
        users = [layer for layer, taken in zip(layers, takes, strict=True) if name in taken]
        here = users[0] if len(users) == 1 else None
    return made


def _resizing(steps: ImageSteps, keys: Keys) -> None:
    why = "without it images keep their size"
    size = (keys.need("height", values.pixels, 0, why), keys.need("width", values.pixels, 0, why))
    keys.tell("width", "crop_to_aspect_ratio")
    resize(steps, keys, "height", size)


def resize(steps: ImageSteps, keys: Keys, key: str, size: Size) -> None:
    """Follow ``Resizing``, or the converter of KerasHub that has one."""
    kernel = keys.choice("interpolation", KERNELS, "bilinear")
    antialias = keys.take("antialias", values.boolean, False)
    if antialias and kernel == "nearest":
        keys.refuse("antialias", "TensorFlow's nearest has none")
    keys.only("pad_to_aspect_ratio", False, "it pads before the resize; a profile pads after it")
    keys.take("crop_to_aspect_ratio", values.boolean, False)
    keys.tell("antialias", "pad_to_aspect_ratio")
    keys.aside(dict.fromkeys(("fill_mode", "fill_value"), "of padding, which is off"))
    origin = keys.origin("interpolation", "bilinear is the default")
    source = "Keras' Resizing on the TensorFlow backend: tf.image.resize"
    fields = {"antialias": antialias, "coordinates": "half_pixel"}
    used = Kernel("tensorflow", kernel, "tf.image.resize", origin, source, fields)
    steps.resize(keys, key, "squash", size, used)


def crop_before(draft: Draft, keys: Keys, size: Size, default: bool) -> None:
    """Write the crop to the network's ratio of sides that ``Resizing`` may begin with."""
    if not keys.take("crop_to_aspect_ratio", values.boolean, default):
        return
    if draft.size and draft.size[0][0] * size[1] != draft.size[0][1] * size[0]:
        keys.refuse("crop_to_aspect_ratio", "another ratio of sides than the network's")
        return
    crop = {"aspect": "network", "rounding": "floor"}
    origin = keys.origin("crop_to_aspect_ratio", "true is the default")
    draft.write("geometry", "crop_before_resize", crop, origin)
    draft.claim("geometry", "emulated", "keras/src/backend/tensorflow/image.py resize")


def _crop(steps: ImageSteps, keys: Keys) -> None:
    size = (keys.need("height", values.pixels, 0, "it is a size"),
            keys.need("width", values.pixels, 0, "it is a size"))  # fmt: skip
    keys.tell("width")
    steps.crop(keys, "height", size, "down")


def _rescaling(steps: ImageSteps, keys: Keys) -> None:
    keys.need("scale", values.three_above_zero, [Fraction(1)] * 3, "it is a factor")
    affine(steps, keys)


def affine(steps: ImageSteps, keys: Keys) -> None:
    """Follow x * scale + offset: (x - mean) / std with -offset / scale and 1 / scale."""
    factors = keys.take("scale", values.three_above_zero, [Fraction(1)] * 3)
    scale = [values.neat(one) for one in factors]
    offset = keys.take("offset", values.three, [Fraction(0)] * 3)
    mean = [-b / a for a, b in zip(scale, offset, strict=True)]
    said = [keys.origin("scale", "1 is the default"), keys.origin("offset", "0 is the default")]
    steps.normalize(mean, [1 / one for one in scale], together(*said))


def _normalization(steps: ImageSteps, keys: Keys) -> None:
    keys.only("invert", False, "it multiplies by the deviation; a profile divides")
    keys.take("axis", lambda value: value, None)
    keys.tell("axis", "invert")
    for key in ("mean", "variance"):
        if key not in keys:
            keys.problem(key, "not written: adapt() has put it into the weights; write "
                         "normalize.mean and std of a profile by hand")  # fmt: skip
            return
    mean = keys.take("mean", _flat, [Fraction(0)] * 3)
    variance = keys.take("variance", _flat, [Fraction(1)] * 3)
    if min(variance) <= 0:
        keys.refuse("variance", "numbers above 0 expected")
        return
    std = [values.number(sqrt(one)) for one in variance]
    steps.normalize(mean, std, keys.origin("mean"), f"{keys.origin('variance')}, of which the root")


def _flat(value: Any) -> list[Fraction]:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return values.three(value)


def _card(draft: Draft, model: values.Object) -> None:
    """Note the size of the network's input."""
    config: Any = model["config"]
    inputs = [one.get("config", {}).get("batch_shape") or one.get("config", {}).get(
        "batch_input_shape") for one in config["layers"] if isinstance(one, dict)]  # fmt: skip
    shape = next((one for one in inputs if isinstance(one, list) and len(one) == 4), None)
    if shape and all(isinstance(side, int) and 0 < side <= values.PIXELS for side in shape[1:3]):
        draft.network(shape[1:3], "the network's input", "NHWC" if shape[3] == 3 else "")


_KINDS: dict[str, Follow] = {
    "Resizing": _resizing, "CenterCrop": _crop, "Rescaling": _rescaling,
    "Normalization": _normalization,
}  # fmt: skip
_ASIDE = {
    "InputLayer": "the network's input",
    **dict.fromkeys(
        ("Dropout", "RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast", "RandomCrop",
         "RandomTranslation", "RandomBrightness", "RandomHeight", "RandomWidth", "RandAugment"),
        "does nothing outside of training"),
}  # fmt: skip
