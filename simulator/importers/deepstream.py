"""NVIDIA DeepStream: the configuration of Gst-nvinfer, ``config_infer_*.txt`` or ``.yml``.

Sources: DeepStream developer guide, "Gst-nvinfer" (y = net-scale-factor * (x - mean), mean by
``offsets``); ``gstnvinfer_property_parser.h`` / ``.cpp`` (keys, values, defaults; unknown keys are
passed over with a warning); ``gstnvinfer.cpp``, ``get_converted_buffer`` (sides cut to whole
pixels, padding of 0 to the right and below, or on both sides) and ``gst_nvinfer_init``
(``NvBufSurfTransformInter_Default``); ``nvbufsurftransform.h`` (filters);
``nvdsinfer_conversion.cu`` (the order of scale and mean).
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from simulator.importers import nvinfer_file, nvinfer_keys, values
from simulator.importers.draft import Draft, Order
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.nvinfer_boxes import boxes, elsewhere
from simulator.modalities.image.sections import image_spec
from simulator.profile.load import load

_ON = {"0": False, "false": False, "1": True, "true": True}
_NAMES = {"0": "fp32", "1": "int8", "2": "fp16"}
_FILTERS = {"0": "nearest", "1": "bilinear", "6": "nearest"}
_ON_GPU = {**_FILTERS, "2": "bicubic", "3": "area", "4": "lanczos4"}
_ORDER: Order = ("multiply", "nvdsinfer_conversion.cu: scaleFactor * (x - mean)")
_TASKS = {
    "0": "detection", "1": "classification", "2": "segmentation", "3": "detection",
    "100": "other",
}  # fmt: skip


class DeepStream(Importer):
    """A configuration of Gst-nvinfer, as a key file or as YAML."""

    name = "deepstream"
    about = "NVIDIA DeepStream's config_infer_*.txt or .yml (Gst-nvinfer)"
    tool = "config_infer"
    base = "deepstream_nv12_fp32"
    stems = ("config_infer_primary",)
    line = rf"^[ \t]*\[(property|primary-gie)\]|{nvinfer_file.YAML}|^net-scale-factor\s*="

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the conversion, the network and its boxes."""
        groups = nvinfer_file.groups(file, draft)
        if not {"target-unique-ids", "processing-width"}.isdisjoint(groups.get("property", {})):
            why = (
                "a configuration of Gst-nvdspreprocess, which makes the tensor by a library of its "
            )
            why += "own; give the tensors that it makes as a recording, or its code as a stack"
            draft.problems = [f"{file.path}:1: {why}"]
        elif "property" in groups:
            _read(file.path, groups, draft)
        else:
            draft.problems.append(_another(file.path, groups))


def _read(path: Path, groups: nvinfer_file.Groups, draft: Draft) -> None:
    keys = nvinfer_file.keys(draft, path, groups, "property")
    for key, (allowed, why) in nvinfer_keys.ONLY.items():
        if key in keys and keys.values[key] not in allowed:
            keys.refuse(key, why)
        elif key in keys:
            keys.aside({key: "off, or as it is here"})
    if keys.values.get("model-color-format") == "2":
        keys.refuse("model-color-format", "a gray image; a profile's images are in color")
    if draft.problems:
        return
    _color(keys)
    _resize(keys)
    letterbox = _geometry(keys)
    _normalize(keys)
    _precision(keys)
    task = _card(keys)
    if letterbox and task in ("detection", "segmentation"):
        value = {"scale": "resized", "offset": "integer"}
        why = "get_converted_buffer: ratio_x, offset_left"
        draft.write("postprocess", "unletterbox", value, why)
    if task == "detection":
        boxes(keys, path, groups)
    elsewhere(draft, path, groups, task)
    keys.rest(nvinfer_keys.ASIDE, nvinfer_keys.ONLY, passed_over="Gst-nvinfer")


def _another(path: Path, groups: nvinfer_file.Groups) -> str:
    if named := groups.get("primary-gie", {}).get("config-file"):
        why = "a configuration of deepstream-app; import the file that it names"
        return f"{path}: {why}: {named[0]}"
    return f"{path}:1: no group [property], which Gst-nvinfer requires"


def _card(keys: Keys) -> str:
    """List what belongs in the model card; return the task."""
    card = keys.draft.card
    task = keys.choice("network-type", _TASKS, "")
    legacy = keys.take("is-classifier", _boolean, False)
    task = task or ("classification" if legacy else "detection")
    masks = keys.values.get("network-type") == "3"
    said = f"task: {task} ({keys.origin('network-type', 'by is-classifier, or 0')})"
    card.append(f"{said}; only its boxes: masks of objects are not compared" if masks else said)
    for key in ("infer-dims", "uff-input-dims", "input-dims"):
        dimensions = keys.take(key, _dimensions, None)
        if dimensions:
            keys.draft.network(dimensions, keys.origin(key))
    keys.choice("network-input-order", {"0": "NCHW", "1": "NHWC"}, "NCHW")
    card.append(f"input.layout ({keys.origin('network-input-order', '0, NCHW')})")
    return task


def _boolean(written: str) -> bool:
    if written not in _ON:
        raise ValueError("0 or 1 expected")
    return _ON[written]


def _floats(written: str) -> list[Fraction]:
    found = [values.decimal(one) for one in _listed(written)]
    if len(found) != 3:
        raise ValueError("three numbers separated by ; expected, one per channel")
    return found


def _positive(written: str) -> Fraction:
    found = values.decimal(written)
    if found <= 0:
        raise ValueError("a number above 0 expected")
    return values.neat(found)


def _dimensions(written: str) -> tuple[int, int] | None:
    parts = _listed(written)
    if len(parts) not in (3, 4) or not all(re.fullmatch(r"\s*\d{1,6}\s*", part) for part in parts):
        raise ValueError("channels;height;width expected")
    channels, height, width = map(int, parts[:3])
    if channels != 3:
        raise ValueError("3 channels expected: a profile's images are in color")
    return values.pixels(height), values.pixels(width)


def _listed(written: str) -> list[str]:
    return written.removesuffix(";").split(";")


def _color(keys: Keys) -> None:
    base = keys.draft.base
    order = keys.choice("model-color-format", {"0": "rgb", "1": "bgr"}, "rgb")
    origin = keys.origin("model-color-format", "0, RGB, is the default")
    keys.draft.write("color", "order", order, origin)
    own = f"{image_spec(base).color.format} is {base.name}'s"
    source = f"config_infer does not say what Gst-nvstreammux delivers; {own}"
    keys.draft.claim("color", "assumed", source)


def _resize(keys: Keys) -> None:
    draft = keys.draft
    units = {"0": "default", "1": "GPU", "2": "VIC"}
    unit = keys.choice("scaling-compute-hw", units, "default")
    chosen = keys.choice("scaling-filter", _FILTERS if unit == "VIC" else _ON_GPU, "nearest")
    named = keys.origin("scaling-filter", "6 is the default, and that is nearest")
    replaces = "replaces NvBufSurfTransform, which runs only on NVIDIA devices"
    domain = image_spec(draft.base).resize.domain
    draft.whole.add("resize")
    draft.write("resize", "backend", "opencv", replaces)
    draft.write("resize", "interpolation", chosen, named)
    draft.write("resize", "domain", domain, f"as {draft.base.name} has it")
    source = f"NvBufSurfTransform ({unit}): kernels not published, OpenCV's of that name are used"
    draft.claim("resize", "assumed", source)


def _geometry(keys: Keys) -> bool:
    draft = keys.draft
    keeps = keys.take("maintain-aspect-ratio", _boolean, False)
    center = keys.take("symmetric-padding", _boolean, False)
    origin = keys.origin("maintain-aspect-ratio", "0 is the default")
    draft.whole.add("geometry")
    draft.write("geometry", "kind", "letterbox" if keeps else "squash", origin)
    if keeps:
        side = keys.origin("symmetric-padding", "0, right and below, is the default")
        cut = "get_converted_buffer cuts sides to whole pixels"
        draft.write("geometry", "rounding", "floor", cut)
        draft.write("geometry", "position", "center" if center else "top_left", side)
        draft.write("geometry", "value", 0, "get_converted_buffer pads with 0")
    elif "symmetric-padding" in keys:
        draft.aside.append("symmetric-padding: no padding without maintain-aspect-ratio=1")
    source = "gstnvinfer.cpp get_converted_buffer; it also drops an odd last row and column"
    draft.claim("geometry", "emulated", source)
    return keeps


def _normalize(keys: Keys) -> None:
    scale = keys.take("net-scale-factor", _positive, Fraction(1))
    mean = keys.take("offsets", _floats, [Fraction(0)] * 3)

    def origin(name: str) -> str:
        if name == "mean":
            return keys.origin("offsets", "0;0;0 is the default")
        return f"{keys.origin('net-scale-factor', '1 is the default')}; std is 1 / that"

    keys.draft.normalize(mean, [1 / scale] * 3, _ORDER, origin)


def _precision(keys: Keys) -> None:
    draft, base = keys.draft, keys.draft.base
    mode = keys.choice("network-mode", _NAMES, "fp32")
    origin = keys.origin("network-mode", "0, FP32, is the default")
    own = base.spec.precision.compute
    unused = f"INT8 ranges, and network-mode={keys.values.get('network-mode', '0')}"
    table = "TensorRT's calibration; a profile runs its own" if mode == "int8" else unused
    keys.aside({"int8-calib-file": table})
    if mode == own:
        said = origin.removeprefix("from config_infer: ")
        draft.aside.append(f"{said}: {base.name}'s precision is {mode} too")
    elif mode == "fp16":
        source = "TensorRT chooses FP16 or FP32 per layer; here all tensors are FP16, sums FP32"
        draft.half(origin, source)
    else:
        is_int8 = mode == "int8"
        draft.whole.add("precision")
        draft.write("precision", "storage", mode, origin)
        draft.write("precision", "compute", mode, origin if is_int8 else "sums are FP32")
        if is_int8:
            _quantizer(draft)


def _quantizer(draft: Draft) -> None:
    """Write the quantizer of ``ort_int8``: Gst-nvinfer has a table of TensorRT's instead."""
    own = load("ort_int8").spec.precision.quantizer
    assert own is not None
    quantizer = own.model_dump(exclude_none=True, mode="json")
    draft.write("precision", "quantizer", quantizer, "as ort_int8; int8-calib-file is TensorRT's")
    source = (
        "TensorRT chooses INT8 or more per layer, by its own calibration (int8-calib-file); ONNX "
        "Runtime's quantizer stands in, and its ranges are others"
    )
    draft.claim("precision", "assumed", source)


DEEPSTREAM = DeepStream()
