"""KerasHub: ``preprocessor.json``, ``image_converter.json`` or a converter's own config.

A network's own layers are followed by :mod:`simulator.importers.keras_layers`.

Sources: keras-team/keras-hub, ``src/layers/preprocessing/image_converter.py`` (resize, then
x * scale + offset; crop_to_aspect_ratio is true by default; converters that do more have keys of
their own, which are refused); keras-team/keras,
``src/backend/tensorflow/image.py`` (``resize``: the crop's sizes and start are rounded down, then
tf.image.resize).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import keras_layers, values
from simulator.importers.draft import Draft, Order, together
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys

_ORDER: Order = ("multiply_add", "ImageConverter.call: x * scale, then + offset")
_ASIDE = {
    **keras_layers.STORED,
    "bounding_box_format": "how boxes are written; the data card's",
}


class Keras(Importer):
    """An image converter of KerasHub, or the layers at the head of a network."""

    name = tool = "keras"
    about = "KerasHub's preprocessor.json or image_converter.json, or a network's .keras or JSON"
    base = "keras_dataset_fp32"
    beside = ("preprocessor.json", "image_converter.json")
    keys = ("class_name", "registered_name", "crop_to_aspect_ratio")

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has keys of Keras, or is its archive."""
        return keras_layers.is_archive(file) or super().recognises(file)

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the converter's resize and arithmetic, or the network's first layers."""
        network = keras_layers.config_of(file)
        if network is not None:
            keras_layers.read(file.path, network, draft)
            return
        keys = _converter(file, draft)
        if keys is None:
            return
        draft.whole |= {"resize", "geometry"}
        why = f"the file names no decoder; {draft.base.name}'s is assumed"
        draft.claim("decode", "assumed", why)
        draft.color("Keras loads images as RGB")
        _resize(keys)
        _numbers(keys)
        keys.rest(_ASIDE)


def _converter(file: ConfigFile, draft: Draft) -> Keys | None:
    """Return the keys of the image converter; what stands around it is set aside."""
    here, prefix = file.json, ""
    for step in ("config", "image_converter", "config"):
        inner = here.get(step)
        if isinstance(inner, dict):
            draft.aside += [
                f"{prefix}{values.plain(key)[:80]}={values.show(here[key])}: around the converter"
                for key in here
                if key != step
            ]
            here, prefix = inner, f"{prefix}{step}."
    if "image_size" not in here:
        draft.problems.append(f"{file.path}: no image converter with an image_size")
        return None
    return Keys(draft, here, lambda _: str(file.path), prefix=prefix)


def _resize(keys: Keys) -> None:
    draft = keys.draft
    size = keys.origin("image_size")
    draft.network(keys.need("image_size", _sides, (0, 0), "it is the network's size"), size)
    kernel = keys.choice("interpolation", keras_layers.KERNELS, "bilinear")
    antialias = keys.take("antialias", values.boolean, False)
    if antialias and kernel == "nearest":
        keys.refuse("antialias", "TensorFlow's nearest has none")
    draft.write("resize", "backend", "tensorflow", "Keras on TensorFlow: tf.image.resize")
    named = keys.origin("interpolation", "bilinear is the default")
    draft.write("resize", "interpolation", kernel, named)
    draft.write("resize", "antialias", antialias, keys.origin("antialias", "false is the default"))
    draft.write("resize", "coordinates", "half_pixel", "tf.image.resize of TensorFlow 2")
    draft.write("resize", "domain", "rgb", "images are RGB")
    draft.claim("resize", "native", "keras Resizing on the TensorFlow backend: tf.image.resize")
    keys.only("pad_to_aspect_ratio", False, "it pads before the resize; a profile pads after it")
    draft.write("geometry", "kind", "squash", size)
    if keys.take("crop_to_aspect_ratio", values.boolean, True):
        crop = {"aspect": "network", "rounding": "floor"}
        origin = keys.origin("crop_to_aspect_ratio", "true is the default")
        draft.write("geometry", "crop_before_resize", crop, origin)
    draft.claim("geometry", "emulated", "keras/src/backend/tensorflow/image.py resize")


def _sides(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[height, width] expected; without one, images keep their size")
    return values.pixels(value[0]), values.pixels(value[1])


def _numbers(keys: Keys) -> None:
    """Write mean and std: x * scale + offset is (x - mean) / std."""
    scale = keys.take("scale", _factors, [Fraction(1)] * 3)
    offset = keys.take("offset", values.three, [Fraction(0)] * 3)
    mean = [-b / a for a, b in zip(scale, offset, strict=True)]
    origins = [keys.origin("scale", "1 is the default"), keys.origin("offset", "0 is the default")]
    said = together(*origins)
    keys.draft.normalize(mean, [1 / one for one in scale], _ORDER, lambda _: said)


def _factors(value: Any) -> list[Fraction]:
    return [values.neat(one) for one in values.three_above_zero(value)]


KERAS = Keras()
