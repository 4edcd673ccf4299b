"""timm: the ``pretrained_cfg`` of a model, alone or in the ``config.json`` of the Hugging Face Hub.

Sources, of huggingface/pytorch-image-models: ``timm/data/transforms_factory.py``
(``transforms_imagenet_eval``), ``timm/models/_pretrained.py`` (``PretrainedCfg``),
``timm/models/_hub.py`` (``_parse_model_cfg``), ``timm/data/config.py`` (defaults).

The evaluation transform works on PIL images: ``Resize`` of the short side to
floor(size / crop_pct), ``CenterCrop``, division by 255, ``Normalize``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, together
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile
from simulator.importers.values import keys_by_reason

_PILLOW = {name: name for name in ("bicubic", "bilinear", "nearest", "lanczos", "box", "hamming")}
_MODEL = "which network it is; the card names an ONNX file"
_OUTER = keys_by_reason({
    _MODEL: "architecture num_features global_pool",
    "the classes are the model card's: labels, output":
        "num_classes label_names label_descriptions labels",
})  # fmt: skip
_INNER = _OUTER | keys_by_reason({
    "where the weights come from; the card names an ONNX file":
        "url file hf_hub_id hf_hub_filename source tag custom_load",
    _MODEL: "first_conv classifier pool_size test_pool_size",
    "whether the network takes other sizes; the card has one": "fixed_input_size min_input_size",
    "a second evaluation of the same weights; it needs its own card and short_side":
        "test_input_size test_crop_pct",
    "a background class: output.background of the card": "label_offset",
    "says nothing about pixels": "license description origin_url paper_name paper_ids notes",
})  # fmt: skip


class Timm(Importer):
    """A ``pretrained_cfg``."""

    name = tool = "timm"
    about = "timm's config.json or pretrained_cfg"
    base = "pillow_fp32"
    stems = ("config",)
    keys = ("pretrained_cfg", "crop_pct", "input_size")
    beside = ("config.json",)

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return what the evaluation does, and the classes where the file names them."""
        made = super().of_network(network)
        if made is None or made.problems:
            return made
        config = ConfigFile(next(network.beside(self.beside))).json
        inner = config.get("pretrained_cfg")
        whole = {**config, **(inner if isinstance(inner, dict) else {})}
        names, about = whole.get("label_names"), whole.get("label_descriptions")
        about = about if isinstance(about, dict) else {}
        if isinstance(names, list):
            made.name(
                {number: about.get(name, name) for number, name in enumerate(map(str, names))}
            )
        made.say("timm's networks classify", task="classification")
        return made

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has keys of timm, and is not the processor that Transformers wraps around."""
        wrapped = file.has_key("image_processor_type", "feature_extractor_type", "image_processor")
        return super().recognises(file) and not wrapped

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the transform of an evaluation."""
        top = file.json_keys(draft)
        _read(top, top.inner("pretrained_cfg") if "pretrained_cfg" in file.json else top)


def _read(top: Keys, cfg: Keys) -> None:
    draft = top.draft
    draft.name = str(top.values.get("architecture") or cfg.values.get("architecture") or "")
    size = _size(top, cfg)
    draft.whole |= {"resize", "geometry"}
    draft.color("timm feeds RGB, as PIL has it")
    draft.write("resize", "backend", "pillow", "timm resizes PIL images")
    kernel = cfg.choice("interpolation", _PILLOW, "bicubic")
    named = cfg.origin("interpolation", "bicubic is timm's default")
    draft.write("resize", "interpolation", kernel, named)
    draft.write("resize", "domain", "rgb", "PIL images are RGB")
    if size:
        _geometry(cfg, size)
    mean, std = cfg.statistics()
    draft.normalize(
        [m * 255 for m in mean],
        [s * 255 for s in std],
        ("unit_divide", "create_transform: ToTensor, then Normalize"),
        lambda key: cfg.origin(key, "ImageNet's are timm's default") + ", times 255",
    )
    resize = "torchvision.transforms.Resize on a PIL image (timm create_transform)"
    draft.claim("resize", "native", resize)
    draft.claim("geometry", "emulated", "timm transforms_imagenet_eval; torchvision CenterCrop")
    top.aside(_OUTER)
    cfg.rest(_INNER)
    if top is not cfg:
        top.rest(also=_INNER)


def _size(top: Keys, cfg: Keys) -> tuple[int, int] | None:
    """Return the network's (height, width); ``model_args`` of the file must agree with it."""

    def sides(value: Any) -> tuple[int, int]:
        if not isinstance(value, list) or len(value) != 3 or value[0] != 3:
            raise ValueError("[3, height, width] expected: a profile's images have 3 channels")
        return values.pixels(value[1]), values.pixels(value[2])

    why = "it sets the size of the cropped images"
    size: tuple[int, int] | None = cfg.need("input_size", sides, (0, 0), why)
    arguments: values.Object = top.take("model_args", values.mapping, {})
    image = (None, 3, size and size[0], list(size or ()))
    for key, agree in (("in_chans", (None, 3)), ("img_size", image)):
        if arguments.get(key) not in agree:
            top.refuse("model_args", f"its {key} changes input_size; write one size in the file")
    if arguments:
        top.draft.aside.append(f"model_args={values.show(arguments)}: {_MODEL}")
    if not size or size == (0, 0):
        return None
    cfg.draft.network(size, cfg.origin("input_size"))
    return size


def _geometry(cfg: Keys, size: tuple[int, int]) -> None:
    draft, side = cfg.draft, size[0]
    fraction = cfg.take("crop_pct", values.above_zero, Fraction(7, 8))
    origin = cfg.origin("crop_pct", "0.875 is timm's default")
    if cfg.take("crop_mode", values.text, "center") == "border":
        why = "timm rounds the resized sides half to even and fills each channel with its mean"
        cfg.refuse(
            "crop_mode", f"{why}; a profile's letterbox has neither. Write the geometry by hand"
        )
        return
    mode = cfg.choice("crop_mode", {mode: mode for mode in ("center", "squash")}, "center")
    how = cfg.origin("crop_mode", "center is timm's default")
    if mode == "squash":
        if fraction != 1:
            why = (
                "with crop_mode squash the squashed image is cropped again, and a profile's squash"
            )
            cfg.refuse("crop_pct", f"{why} has no crop; only crop_pct 1.0 can be imported")
        draft.write("geometry", "kind", "squash", together(how, origin))
        return
    short_side = math.floor(side / float(fraction))
    if side != size[1]:
        why = "has two scales; a profile's short_side_crop has only one"
        cfg.refuse("input_size", f"crop_mode center with height and width that differ {why}")
    elif short_side < side:
        why = f"and timm pads it with zeros to {side}; a profile's crop does not pad"
        cfg.refuse("crop_pct", f"the short side becomes {short_side}, {why}")
    elif short_side > values.PIXELS:
        cfg.refuse("crop_pct", f"the short side becomes {short_side} pixels")
    else:
        draft.write("geometry", "kind", "short_side_crop", how)
        draft.write("geometry", "rounding", "torchvision", "torchvision's Resize and CenterCrop")
        draft.write("geometry", "short_side", short_side, f"{origin}; floor({side} / crop_pct)")


TIMM = Timm()
