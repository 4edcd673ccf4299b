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

from simulator.importers import huggingface_sizes as sizes
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
    kernel = _kernel(keys, name, suffix)
    if name in types.KEEPING and not _has_one_size(keys):
        sizes.keep_ratio(steps, keys, types.KEEPING[name], kernel)
    elif name == "Sam":
        side = sizes.longest(keys)
        steps.resize(keys, "size", "fit", (side, side), kernel, "half_up")
    else:
        sizes.geometry(steps, keys, name, kernel)
    order = _statistics(steps, keys, name, suffix == "ImageProcessorFast" or name in types.TORCH)
    zeros = [Fraction(0)] * 3
    if name == "Sam" and keys.take("do_pad", values.boolean, True):
        padded = sizes.one_size(keys, "pad_size", True)
        sides = padded.get("height", 0), padded.get("width", 0)
        steps.pad(keys, "pad_size", sides, zeros, "top_left", "pad, after normalize: zeros")
    elif steps.keeps:
        why = "pad, after normalize: zeros, and none where each image is alone"
        steps.pad_to_multiple(keys, "do_pad", 1, zeros, why)
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
    if cut := next((one for one in types.CUTS if one in keys), ""):
        keys.refuse(cut, "images are cut into patches or tiles; a profile has no such step")
        return None, ""
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


def _kernel(keys: Keys, name: str, suffix: str) -> Kernel:
    torch = suffix == "ImageProcessorFast" or name in types.TORCH
    needed = name not in types.KEEPING
    why = f"{types.CHANGES}: 0 nearest, 2 bilinear, 3 bicubic"
    offered = _TORCH if torch else _PILLOW
    chosen = keys.choice("resample", offered, "bilinear", need=why if needed else "")
    named = keys.origin("image_processor_type", "a processor of Transformers 4")
    origin = keys.origin("resample", "bilinear is the class's default")
    if torch:
        smooth = types.TORCH.get(name, True)
        fields = {"antialias": smooth, "arithmetic": "uint8"} if chosen != "nearest_exact" else {}
        source = f"TorchvisionBackend.resize: tvF.resize of a uint8 tensor, antialias={smooth}"
        return Kernel("pytorch", chosen, named, origin, source, fields)
    if suffix != "ImageProcessor":
        source = "image_transforms.resize: PIL.Image.resize"
        return Kernel("pillow", chosen, named, origin, source)
    source = (
        "PIL.Image.resize, as Transformers 4 runs a processor of this name; Transformers 5 "
        "takes torchvision where that is installed (then backend: pytorch, antialias: true)"
    )
    return Kernel("pillow", chosen, named, origin, source, kind="assumed")


def _statistics(steps: ImageSteps, keys: Keys, name: str, fast: bool) -> Order:
    """(x * factor - offset - mean) / std as (x - mean') / std', on 0-255."""
    rescales = keys.take("do_rescale", values.boolean, True)
    factor = keys.take("rescale_factor", values.factor, Fraction(1, 255))
    scale = factor if rescales else Fraction(1)
    normalizes = _normalizes(keys, name)
    mean = keys.take("image_mean", values.three, [Fraction(0)] * 3)
    std = keys.take("image_std", values.three_above_zero, [Fraction(1)] * 3)
    for key in ("image_mean", "image_std"):
        if normalizes and key not in keys:
            keys.problem(key, f"not written; {types.CHANGES}")
    if not normalizes:
        mean, std = [Fraction(0)] * 3, [Fraction(1)] * 3
    if name == "EfficientNet":
        if keys.need("rescale_offset", values.boolean, False, types.CHANGES) and rescales:
            mean = [m + 1 for m in mean]
        if keys.need("include_top", values.boolean, False, types.CHANGES):
            own = keys.take("image_std", values.three_above_zero, [Fraction(1)] * 3)
            std = [a * b for a, b in zip(std, own, strict=True)]
    defaults = {"image_mean": "none", "image_std": "none", "do_normalize": "false",
                "do_rescale": "true", "rescale_factor": "1 / 255"}  # fmt: skip
    said = [keys.origin(key, default) for key, default in defaults.items()]
    steps.normalize([m / scale for m in mean], [s / scale for s in std], *said)
    return _arithmetic(fast, rescales, normalizes)


def _arithmetic(fast: bool, rescales: bool, normalizes: bool) -> Order:
    """Return the order of rescale and normalize, and its source."""
    if not rescales or (fast and normalizes):
        return "divide", "(x - mean) / std; fast processors fuse the factor into mean and std"
    if fast:
        return "multiply", "TorchvisionBackend.rescale: x * factor"
    return "unit_divide", "image_transforms: rescale in float64, to float32, then normalize"


def _normalizes(keys: Keys, name: str) -> bool:
    if name != "MobileViT":
        return keys.need("do_normalize", values.boolean, True, types.CHANGES)
    if keys.take("do_normalize", values.boolean, False):
        keys.refuse("do_normalize", "MobileViTImageProcessor has no such step")
    return False


HUGGINGFACE = HuggingFace()
