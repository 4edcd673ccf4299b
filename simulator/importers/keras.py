"""KerasHub: ``preprocessor.json``, ``image_converter.json`` or a converter's own config.

A network's own layers are followed by :mod:`simulator.importers.keras_layers`.

Sources: keras-team/keras-hub, ``src/layers/preprocessing/image_converter.py`` (resize, then
x * scale + offset; crop_to_aspect_ratio is true by default; converters that do more have keys of
their own, which are refused); keras-team/keras,
``src/backend/tensorflow/image.py`` (``resize``: the crop's sizes and start are rounded down, then
tf.image.resize).
"""

from __future__ import annotations

from typing import Any

from simulator.importers import keras_layers, values
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import ImageSteps
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys

_ORDER: Order = ("multiply_add", "ImageConverter.call: x * scale, then + offset")
_ASIDE = {**keras_layers.STORED, "bounding_box_format": "how boxes are written; the data card's"}


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
        why = f"the file names no decoder; {draft.base.name}'s is assumed"
        draft.claim("decode", "assumed", why)
        steps = ImageSteps(draft, "Keras", "rgb", ["Keras loads images as RGB"])
        size = keys.need("image_size", _sides, (0, 0), "it is the network's size")
        keras_layers.resize(steps, keys, "image_size", size)
        keras_layers.affine(steps, keys)
        if not draft.problems:
            steps.finish(_ORDER, keys)
            keras_layers.crop_before(draft, keys, size, default=True)
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


def _sides(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[height, width] expected; without one, images keep their size")
    return values.pixels(value[0]), values.pixels(value[1])


KERAS = Keras()
