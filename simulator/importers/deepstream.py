"""NVIDIA DeepStream: ``config_infer_*.txt``, the configuration of Gst-nvinfer.

Sources: DeepStream developer guide, "Gst-nvinfer" (y = net-scale-factor * (x - mean), mean by
``offsets``); ``gstnvinfer_property_parser.h`` / ``.cpp`` (keys, values, defaults);
``gstnvinfer.cpp``, ``get_converted_buffer`` (sides cut to whole pixels, padding of 0 to the right
and below, or on both sides) and ``gst_nvinfer_init`` (``NvBufSurfTransformInter_Default``);
``nvbufsurftransform.h`` (filters); ``nvdsinfer_context_impl_output_parsing.cpp`` (NMS a class).
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from simulator.importers import nvinfer_keys, values
from simulator.importers.draft import Draft, Keys, together
from simulator.modalities.image.sections import image_spec

_ON = {"0": False, "false": False, "1": True, "true": True}
_NAMES = {"0": "fp32", "1": "int8", "2": "fp16"}
_FILTERS = {"0": "nearest", "1": "bilinear", "6": "nearest"}
_ON_GPU = {**_FILTERS, "2": "bicubic"}
_TASKS = {"0": "detection", "1": "classification", "2": "segmentation", "100": "other"}
_LINE = re.compile(r"\s*([^=\s][^=]*?)\s*=\s*(.*?)\s*")


def read(path: Path, raw: str, draft: Draft, entry: int | None) -> None:
    """Fill *draft* from the file's text."""
    groups = _groups(path, raw, draft)
    if entry not in (None, 1):
        draft.problems.append(f"{path}: entry {entry}: a config_infer file has only one network")
    if "property" not in groups:
        draft.problems.append(f"{path}:1: no group [property], which Gst-nvinfer requires")
        return
    keys = _keys(draft, path, groups, "property")
    _color(keys)
    _resize(keys)
    letterbox = _geometry(keys)
    _normalize(keys)
    _precision(keys)
    task = keys.choice("network-type", _TASKS, "")
    legacy = keys.take("is-classifier", _boolean, False)
    task = task or ("classification" if legacy else "detection")
    draft.card.append(f"task: {task} ({keys.origin('network-type', 'by is-classifier, or 0')})")
    dimensions = keys.take("infer-dims", _dimensions, None)
    if dimensions:
        sides = f"height: {dimensions[0]}, width: {dimensions[1]}"
        draft.card.append(f"input: {sides} ({keys.origin('infer-dims')})")
    keys.choice("network-input-order", {"0": "NCHW", "1": "NHWC"}, "NCHW")
    draft.card.append(f"input.layout ({keys.origin('network-input-order', '0, NCHW')})")
    if task == "detection":
        _clusters(keys, path, groups, letterbox)
    for group in groups:
        if group != "property" and not (task == "detection" and group == "class-attrs-all"):
            _other(_keys(draft, path, groups, group), group, task)
    for key, (allowed, why) in nvinfer_keys.ONLY.items():
        if key in keys and keys.values[key] not in allowed:
            keys.refuse(key, why)
        elif key in keys:
            keys.aside({key: "off, or as it is here"})
    keys.aside(nvinfer_keys.ASIDE)
    keys.rest({*nvinfer_keys.ASIDE, *nvinfer_keys.ONLY})


Groups = dict[str, dict[str, tuple[str, int]]]


def _groups(path: Path, raw: str, draft: Draft) -> Groups:
    """Read a GKeyFile: group to key to (value, line)."""
    groups: Groups = {}
    group = None
    for line, text in enumerate(raw.splitlines(), 1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if header := re.fullmatch(r"\s*\[([^\[\]]+)\]\s*", text):
            group = header[1]
            groups.setdefault(group, {})
            continue
        pair = _LINE.fullmatch(text)
        if pair is None or group is None:
            said = values.show(text.strip())
            what = "[group] or key=value expected" if group else "a [group] expected first"
            draft.problems.append(f"{path}:{line}: {what}, got {said}")
            continue
        key, value = pair[1], pair[2]
        if key in groups[group]:
            first = groups[group][key][1]
            said = values.plain(key)
            draft.problems.append(f"{path}:{line}: {said}: given twice, first on line {first}")
            continue
        groups[group][key] = (value, line)
    return groups


def _keys(draft: Draft, path: Path, groups: Groups, group: str) -> Keys:
    found = groups[group]
    prefix = "" if group == "property" else f"[{group}] "

    def where(key: str) -> str:
        return f"{path}:{found[key][1]}" if key in found else f"{path}"

    return Keys(draft, {key: value for key, (value, _) in found.items()}, where, prefix)


def _boolean(written: str) -> bool:
    if written not in _ON:
        raise ValueError("0 or 1 expected")
    return _ON[written]


def _floats(written: str) -> list[Fraction]:
    found = [values.decimal(one) for one in written.removesuffix(";").split(";")]
    if len(found) != 3:
        raise ValueError("three numbers separated by ; expected, one per channel")
    return found


def _positive(written: str) -> Fraction:
    found = values.decimal(written)
    if found <= 0:
        raise ValueError("a number above 0 expected")
    return values.neat(found)


def _share(written: str) -> float:
    found = values.decimal(written)
    if not 0 <= found <= 1:
        raise ValueError("a number from 0 to 1 expected")
    return float(found)


def _dimensions(written: str) -> tuple[int, int] | None:
    parts = written.removesuffix(";").split(";")
    if len(parts) != 3 or not all(re.fullmatch(r"\d{1,6}", part.strip()) for part in parts):
        raise ValueError("channels;height;width expected")
    channels, *sides = (int(part) for part in parts)
    if channels != 3:
        raise ValueError("3 channels expected: a profile's images are in color")
    return values.pixels(sides[0]), values.pixels(sides[1])


def _color(keys: Keys) -> None:
    order = keys.choice("model-color-format", {"0": "rgb", "1": "bgr"}, "rgb")
    origin = keys.origin("model-color-format", "0, RGB, is the default")
    keys.draft.write("color", "order", order, origin)
    base = keys.draft.base
    format = image_spec(base).color.format
    source = f"config_infer does not say what Gst-nvstreammux delivers; {format} is {base.name}'s"
    keys.draft.claim("color", "assumed", source)


def _resize(keys: Keys) -> None:
    draft = keys.draft
    hardware = keys.choice(
        "scaling-compute-hw", {"0": "default", "1": "GPU", "2": "VIC"}, "default"
    )
    filters = _ON_GPU if hardware == "GPU" else _FILTERS
    chosen = keys.choice("scaling-filter", filters, "nearest")
    default = "6 is the default, and that is nearest"
    draft.whole.add("resize")
    draft.write(
        "resize",
        "backend",
        "opencv",
        "replaces NvBufSurfTransform, which runs only on NVIDIA devices",
    )
    draft.write("resize", "interpolation", chosen, keys.origin("scaling-filter", default))
    domain = image_spec(draft.base).resize.domain
    draft.write("resize", "domain", domain, f"as {draft.base.name} has it")
    source = (
        f"NvBufSurfTransform ({hardware}): kernels not published, OpenCV's of that name are used"
    )
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
        draft.write(
            "geometry", "rounding", "floor", "get_converted_buffer cuts sides to whole pixels"
        )
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

    keys.draft.normalize(mean, [1 / scale] * 3, origin)


def _precision(keys: Keys) -> None:
    draft, base = keys.draft, keys.draft.base
    mode = keys.choice("network-mode", _NAMES, "fp32")
    origin = keys.origin("network-mode", "0, FP32, is the default")
    table = "int8-calib-file"
    if mode != "int8":
        keys.aside({table: "INT8 ranges, and network-mode is not 1"})
    elif table in keys:
        keys.refuse(
            table,
            "a profile runs its own calibration and cannot use TensorRT's table; remove the "
            "line to accept that",
        )
    if mode != base.spec.precision.compute:
        if mode == "int8":
            keys.refuse(
                "network-mode",
                f"INT8 needs a quantizer, but {base.name} has none; import with "
                "an INT8 profile as the base",
            )
            return
        draft.whole.add("precision")
        draft.write("precision", "storage", mode, origin)
        draft.write("precision", "compute", mode, origin)
        if mode == "fp16":
            draft.write(
                "precision", "cast", {"backend": "onnxconverter"}, "an FP16 file, as tensorrt_fp16"
            )
    else:
        draft.aside.append(
            f"{origin.removeprefix('from config_infer: ')}: {base.name}'s precision is {mode} too"
        )
    if mode != "fp32":
        source = f"network-mode lets TensorRT choose {mode} per layer; here all layers use it"
        draft.claim("precision", "emulated", source)


def _clusters(keys: Keys, path: Path, groups: Groups, letterbox: bool) -> None:
    draft = keys.draft
    if letterbox:
        value = {"scale": "resized", "offset": "integer"}
        draft.write(
            "postprocess", "unletterbox", value, "get_converted_buffer: ratio_x, offset_left"
        )
    if "cluster-mode" not in keys:
        keys.problem(
            "cluster-mode",
            "not written, and a profile does not have the default, "
            "groupRectangles; write 2 (NMS) or 4 (none), or network-type=1 for a classifier",
        )
    kind = keys.choice("cluster-mode", {"2": "greedy", "4": "none"}, "")
    found = _keys(draft, path, {"class-attrs-all": {}, **groups}, "class-attrs-all")
    before = found.take("pre-cluster-threshold", _share, 0.2)
    said = found.origin("pre-cluster-threshold", "0.2 is the default")
    nms: dict[str, object] = {"kind": kind or "none"}
    origins = [keys.origin("cluster-mode"), said]
    if kind == "greedy":
        nms["iou_threshold"] = found.take("nms-iou-threshold", _share, 0.3)
        nms |= {"class_aware": True, "offset": 0, "top_k_before": "all", "top_k_after": "all"}
        before = max(before, found.take("post-cluster-threshold", _share, 0.0))
        for key, default in (("nms-iou-threshold", "0.3"), ("post-cluster-threshold", "0")):
            told = found.origin(key, f"{default} is the default")
            origins.append(told)
    nms["score_threshold"] = before
    draft.write("postprocess", "nms", nms, together(*origins))
    if found.take("topk", values.text, "-1") != "-1":
        found.refuse(
            "topk",
            "it limits the boxes of each class; a profile limits those of the whole "
            "image. Remove the line, or write -1, if no image has that many",
        )
    found.aside(nvinfer_keys.CLUSTERS)
    for key, (allowed, why) in nvinfer_keys.BOXES.items():
        if key in found and found.values[key] not in allowed:
            found.refuse(key, why)
        found.aside({key: "off"})
    found.rest({*nvinfer_keys.CLUSTERS, *nvinfer_keys.BOXES})


def _other(keys: Keys, group: str, task: str) -> None:
    if group.startswith("class-attrs-") and task != "detection":
        keys.aside(dict.fromkeys(keys.values, "about boxes, but this is not a detector"))
        return
    why = (
        "a profile has one threshold for all classes"
        if group.startswith("class-attrs-")
        else ("Gst-nvinfer has no such group")
    )
    for key in keys.values:
        keys.refuse(key, f"{why}; remove the group if it changes nothing")
