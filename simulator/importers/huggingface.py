"""Hugging Face Transformers: ``preprocessor_config.json`` of an image processor.

Sources, of huggingface/transformers 5: ``image_processing_backends.py`` (``resize``,
``center_crop``, ``_fuse_mean_std_and_rescale_factor``), ``image_transforms.py``
(``get_resize_output_image_size``: int(size * long / short); ``center_crop``: rounded down),
``image_utils.py`` (``pil_torch_interpolation_mapping``), ``image_processing_utils.py``
(``convert_to_size_dict``), ``models/*/image_processing_*.py`` of the processors below.

A default of the library that has changed between its versions is not filled in: the file must say.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import huggingface_types as types
from simulator.importers import values
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import ImageSteps
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile
from simulator.importers.resizing import Kernel
from simulator.modalities.image.sections import image_spec

_PILLOW = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_TORCH = {0: "nearest_exact", 2: "bilinear", 3: "bicubic"}
_INNER = ("image_processor", "config")
"""Where a processor stands in ``processor_config.json``, and in a file for Transformers.js."""
CONFIG = "config.json"
"""Beside the processor: the network's own configuration, with its task and its classes."""
_CHANGES = "the default depends on the class and on Transformers' version, so the file must say"


class HuggingFace(Importer):
    """An image processor of Transformers."""

    name = "huggingface"
    about = "Hugging Face Transformers' preprocessor_config.json"
    tool = "preprocessor_config"
    base = "pillow_fp32"
    stems = ("preprocessor_config", "processor_config")
    keys = ("image_processor", "image_processor_type", "feature_extractor_type", "do_resize",
            "do_normalize")  # fmt: skip
    beside = ("preprocessor_config.json", "processor_config.json")

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has keys of a processor, or holds one as ``config``."""
        config = file.json.get("config") if file.is_json else None
        is_inner = isinstance(config, dict) and "feature_extractor_type" in config
        return is_inner or super().recognises(file)

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return what the processor says, and task and labels of ``config.json``."""
        made = super().of_network(network)
        path = next(network.beside((CONFIG,)), None)
        config = ConfigFile(path).json if path else {}
        named, networks = config.get("id2label"), config.get("architectures")
        if not isinstance(named, dict) or not isinstance(networks, list) or not networks:
            return made
        made = made or CardFields(f"{CONFIG} beside it")
        made.name({int(key): name for key, name in named.items() if key.isdecimal()})
        task = next((one for end, one in types.HEADS.items() if str(networks[0]).endswith(end)), "")
        if task:
            made.say(f"{CONFIG}: architectures={values.show(networks)}", task=task)
        if task == "segmentation":
            types.segmenter(made)
        if task == "detection" and {"logits", "pred_boxes"} <= network.outputs.keys():
            types.detector(made, str(config.get("model_type")))
        return made

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the processor's resize, crop and normalization."""
        keys = file.json_keys(draft)
        inner = next((one for one in _INNER if one in file.json), None)
        if inner is not None:
            for key, beside in file.json.items():
                if key != inner:
                    said = f"{values.plain(key)[:80]}={values.show(beside)}"
                    draft.aside.append(f"{said}: of another part of the processor, not of images")
            keys = keys.inner(inner)
        _read(keys)


def _read(keys: Keys) -> None:
    draft = keys.draft
    name, suffix = _type(keys)
    if name is None:
        return
    own = f"{image_spec(draft.base).decode.backend} is from {draft.base.name}"
    usual = "transformers.image_utils.load_image: Pillow, EXIF applied"
    draft.claim("decode", "assumed", f"preprocessor_config does not name a decoder; {own}. {usual}")
    steps = ImageSteps(draft, "Transformers", "rgb", ["Transformers opens images as RGB"])
    kernel = _kernel(keys, suffix, needed=name not in types.KEEPING)
    if name in types.KEEPING and not _has_one_size(keys):
        _keep_ratio(steps, keys, types.KEEPING[name], kernel)
    else:
        _geometry(steps, keys, name, kernel)
    order = _statistics(steps, keys, name, suffix)
    if steps.keeps:
        why = "pad, after normalize: zeros, and none where each image is alone"
        steps.pad_to_multiple(keys, "do_pad", 1, [Fraction(0)] * 3, why)
    if name == "MobileViT":
        flips = keys.take("do_flip_channel_order", values.boolean, True)
        steps.order = "bgr" if flips else "rgb"
        steps.turned.append(keys.origin("do_flip_channel_order", "true is MobileViT's default"))
    if not draft.problems:
        steps.finish(order, keys)
    if name in types.TO_BATCH and (_has_one_size(keys) or name in types.KEEPING):
        why = "a batch has images of one size here, and every image has the size of the largest"
        keys.aside(dict.fromkeys(("do_pad", "pad_and_return_pixel_mask"), why))
    separate = "a separate step before or after the crop"
    for key in types.STEPS:
        if keys.values.get(key) and not keys.is_seen(key):
            keys.refuse(key, f"{separate}; a profile has resize, crop or pad, and normalize")
        keys.skip(key)
    keys.rest(types.ASIDE)


def _type(keys: Keys) -> tuple[str | None, str]:
    key = "image_processor_type" if "image_processor_type" in keys else "feature_extractor_type"
    example = "it selects the steps: write for example ViTImageProcessor"
    if key not in keys:
        key = "image_processor_type"
    written = keys.need(key, values.text, "", example)
    for suffix in types.SUFFIXES:
        name = written.removesuffix(suffix)
        if written.endswith(suffix) and name in types.HIDDEN:
            keys.refuse(key, f"{types.HIDDEN[name]}; a profile cannot express that")
            return None, ""
        if written.endswith(suffix) and name:
            return name, suffix
    if written:
        keys.refuse(key, "not an image processor: their names end in ImageProcessor")
    return None, ""


def _has_one_size(keys: Keys) -> bool:
    """Whether ``size`` is both sides."""
    size = keys.values.get("size")
    return isinstance(size, dict) and set(size) == {"height", "width"}


def _kernel(keys: Keys, suffix: str, needed: bool = True) -> Kernel:
    torch = suffix == "ImageProcessorFast"
    why = f"{_CHANGES}: 0 nearest, 2 bilinear, 3 bicubic"
    offered = _TORCH if torch else _PILLOW
    chosen = keys.choice("resample", offered, "bilinear", need=why if needed else "")
    named = keys.origin("image_processor_type", "a processor of Transformers 4")
    origin = keys.origin("resample", "bilinear is the class's default")
    if torch:
        fields = {"antialias": True, "arithmetic": "uint8"} if chosen != "nearest_exact" else {}
        source = "TorchvisionBackend.resize: tvF.resize of a uint8 tensor, antialias=True"
        return Kernel("pytorch", chosen, named, origin, source, fields)
    if suffix != "ImageProcessor":
        source = "image_transforms.resize: PIL.Image.resize"
        return Kernel("pillow", chosen, named, origin, source)
    source = (
        "PIL.Image.resize, as Transformers 4 runs a processor of this name; Transformers 5 "
        "takes torchvision where that is installed (then backend: pytorch, antialias: true)"
    )
    return Kernel("pillow", chosen, named, origin, source, kind="assumed")


def _size(keys: Keys, key: str, square: bool | None) -> dict[str, int]:
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


def _geometry(steps: ImageSteps, keys: Keys, name: str, kernel: Kernel) -> None:
    kind = types.TYPES.get(name, types.PLAIN)
    if not keys.need("do_resize", values.boolean, True, _CHANGES):
        why = "images keep their size; a profile resizes every image to the network's size"
        keys.refuse("do_resize", why)
        keys.skip("size", "crop_size")
        return
    size = _size(keys, "size", kind.square)
    plain = kind is types.PLAIN and "crop_size" not in keys
    if kind.crops is None and "do_center_crop" not in keys and not plain:
        keys.problem("do_center_crop", f"not written; {_CHANGES}")
    crops = keys.take("do_center_crop", values.boolean, bool(kind.crops))
    if name == "ConvNext":
        _convnext(steps, keys, size, crops, kernel)
        return
    if not crops:
        keys.aside({"crop_size": "do_center_crop is false"})
    crop = _size(keys, "crop_size", True) if crops else size
    if not size or not crop:
        return
    if "shortest_edge" in crop:
        why = "the size of the network's input varies by image; this needs do_center_crop and a "
        keys.refuse("crop_size" if crops else "size", f"{why}crop_size of {{height, width}}")
        return
    side = size.get("shortest_edge", 0)
    both = (side, side) if side else (size["height"], size["width"])
    steps.resize(keys, "size", "short_side" if side else "squash", both, kernel)
    if crops:
        steps.crop(keys, "crop_size", (crop["height"], crop["width"]), "down")


def _keep_ratio(steps: ImageSteps, keys: Keys, rounding: Any, kernel: Kernel) -> None:
    """Resize as ``get_size_with_aspect_ratio`` does; ``size`` may be one number in older files."""

    def check(value: Any) -> tuple[int, int]:
        if isinstance(value, int):
            longest = keys.take("max_size", values.pixels, 1333)
            value = {"shortest_edge": value, "longest_edge": longest}
        if not isinstance(value, dict) or set(value) != {"shortest_edge", "longest_edge"}:
            raise ValueError("{shortest_edge, longest_edge} or {height, width} expected")
        return values.pixels(value["shortest_edge"]), values.pixels(value["longest_edge"])

    keys.only("do_resize", True, "images keep their size; write the kind native into the profile")
    size = keys.need("size", check, (0, 0), "it sets the size of the resized images")
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


def _statistics(steps: ImageSteps, keys: Keys, name: str, suffix: str) -> Order:
    """(x * factor - offset - mean) / std as (x - mean') / std', on 0-255."""
    rescales = keys.take("do_rescale", values.boolean, True)
    factor = keys.take("rescale_factor", values.factor, Fraction(1, 255))
    scale = factor if rescales else Fraction(1)
    normalizes = _normalizes(keys, name)
    mean = keys.take("image_mean", values.three, [Fraction(0)] * 3)
    std = keys.take("image_std", values.three_above_zero, [Fraction(1)] * 3)
    for key in ("image_mean", "image_std"):
        if normalizes and key not in keys:
            keys.problem(key, f"not written; {_CHANGES}")
    if not normalizes:
        mean, std = [Fraction(0)] * 3, [Fraction(1)] * 3
    if name == "EfficientNet":
        if keys.need("rescale_offset", values.boolean, False, _CHANGES) and rescales:
            mean = [m + 1 for m in mean]
        if keys.need("include_top", values.boolean, False, _CHANGES):
            own = keys.take("image_std", values.three_above_zero, [Fraction(1)] * 3)
            std = [a * b for a, b in zip(std, own, strict=True)]
    defaults = {"image_mean": "none", "image_std": "none", "do_normalize": "false",
                "do_rescale": "true", "rescale_factor": "1 / 255"}  # fmt: skip
    said = [keys.origin(key, default) for key, default in defaults.items()]
    steps.normalize([m / scale for m in mean], [s / scale for s in std], *said)
    return _arithmetic(suffix == "ImageProcessorFast", rescales, normalizes)


def _arithmetic(fast: bool, rescales: bool, normalizes: bool) -> Order:
    """Return the order of rescale and normalize, and its source."""
    if not rescales or (fast and normalizes):
        return "divide", "(x - mean) / std; fast processors fuse the factor into mean and std"
    if fast:
        return "multiply", "TorchvisionBackend.rescale: x * factor"
    return "unit_divide", "image_transforms: rescale in float64, to float32, then normalize"


def _normalizes(keys: Keys, name: str) -> bool:
    if name != "MobileViT":
        return keys.need("do_normalize", values.boolean, True, _CHANGES)
    if keys.take("do_normalize", values.boolean, False):
        keys.refuse("do_normalize", "MobileViTImageProcessor has no such step")
    return False


HUGGINGFACE = HuggingFace()
