"""Gst-nvinfer's groups ``[class-attrs-...]``: what happens to boxes after the network.

Source: ``nvdsinfer_context_impl_output_parsing.cpp``: boxes below ``pre-cluster-threshold`` are
dropped, ``cluster-mode`` joins the boxes of each class, ``topk`` keeps the best of each class.
``gstnvinfer_property_parser.h``: the defaults, by which OpenCV's groupRectangles
(``group-threshold``) and DBSCAN (``minBoxes``) join nothing unless a file asks for it.
"""

from __future__ import annotations

import re
from pathlib import Path

from simulator.importers import nvinfer_keys, values
from simulator.importers.draft import Draft, Keys, together
from simulator.importers.nvinfer_file import Groups, keys

_MODES = {"0": "groupRectangles", "1": "DBSCAN", "2": "NMS", "3": "DBSCAN, then NMS", "4": "none"}
_PARSING = "nvdsinfer_context_impl_output_parsing.cpp"
_ALL = "class-attrs-all"


def boxes(own: Keys, path: Path, found: Groups) -> None:
    """Write ``postprocess.nms`` of a detector from its ``[property]`` and class groups."""
    draft = own.draft
    attributes = keys(draft, path, _shared(own, found), _ALL)
    mode = _mode(own)
    missing = _joined(attributes, mode)
    _suppression(own, attributes, mode, missing)
    missing += _hidden(own, attributes) + _single_classes(draft, path, found, attributes)
    said = f"{_PARSING}; a box whose score equals the threshold is kept there and not here"
    if missing:
        draft.claim("postprocess", "assumed", f"not followed: {', '.join(missing)}; {said}")
    else:
        draft.claim("postprocess", "emulated", said)
    attributes.aside(nvinfer_keys.DRAWN)
    _unknown(attributes)


def elsewhere(draft: Draft, path: Path, found: Groups, task: str) -> None:
    """Set aside the groups that are not used: those of a detector in others, and unknown ones."""
    for group in found:
        if group == "property" or (task == "detection" and group.startswith("class-attrs-")):
            continue
        if group.startswith("class-attrs-"):
            why = "about boxes, but this is not a detector"
        else:
            why = "Gst-nvinfer has no such group"
        inner = keys(draft, path, found, group)
        for key in inner.values:
            draft.aside.append(f"[{group}] {key}={values.show(inner.values[key])}: {why}")


def _shared(own: Keys, found: Groups) -> Groups:
    """Return the groups with what is written for each single class, and equal, in that of all."""
    count = own.values.get("num-detected-classes", "")
    known = int(count) if re.fullmatch(r"[0-9]{1,3}", count) else 0
    each = [found.get(f"class-attrs-{n}", {}) for n in range(known)]
    common = dict(found.get(_ALL, {}))
    for key, written in (each[0] if each else {}).items():
        if all(one.get(key, ("",))[0] == written[0] for one in each):
            common[key] = written
    return {**found, _ALL: common}


def _mode(own: Keys) -> str:
    legacy = own.values.get("enable-dbscan") in ("1", "true")
    own.aside({"enable-dbscan": "the old name of cluster-mode=1"})
    if "cluster-mode" not in own:
        return "1" if legacy else "0"
    return own.choice("cluster-mode", {mode: mode for mode in _MODES}, "2")


def _joined(attributes: Keys, mode: str) -> list[str]:
    """Take what joins boxes in other ways than NMS; return what is not followed."""
    asked = {
        "0": attributes.take("group-threshold", _count, 0) > 0,
        "1": attributes.take("minBoxes", _count, 0) > 0,
    }
    asked["3"] = asked["1"]
    key = "group-threshold" if mode == "0" else "minBoxes"
    followed = not asked.get(mode, False)
    why = f"cluster-mode={mode} joins no boxes with it" if followed else "not followed: see below"
    for name in ("group-threshold", "minBoxes", "eps", "dbscan-min-score"):
        if name in attributes:
            attributes.origin(name)
            said = f"{name}={values.show(attributes.values[name])}"
            attributes.take(name, lambda value: value, None)
            attributes.draft.aside.append(f"[{_ALL}] {said}: {why}")
    if followed:
        return []
    instead = "NMS alone runs" if mode == "3" else "the model card's NMS runs"
    return [f"cluster-mode={mode} ({_MODES[mode]}) with {key}, {instead}"]


def _suppression(own: Keys, attributes: Keys, mode: str, missing: list[str]) -> None:
    least, told = _before(attributes)
    origins = [own.origin("cluster-mode", "0, groupRectangles, is the default"), told]
    nms: dict[str, object] = {}
    if mode in ("2", "3"):
        nms |= {"kind": "greedy", "class_aware": True, "offset": 0, "top_k_before": "all"}
        nms["iou_threshold"] = attributes.take("nms-iou-threshold", _share, 0.3)
        origins.append(attributes.origin("nms-iou-threshold", "0.3 is the default"))
    elif not missing:
        nms["kind"] = "none"
    if mode in ("1", "2", "3"):
        after = attributes.take("post-cluster-threshold", _share, 0.0)
        least = max(least, after)
        origins.append(attributes.origin("post-cluster-threshold", "0 is the default"))
    nms |= {"score_threshold": least, "top_k_after": "all"}
    if mode != "0":
        everything: int | str = "all"
        nms["class_top_k_after"] = attributes.take("topk", _limit, everything)
        origins.append(attributes.origin("topk", "-1, all, is the default"))
    unused = f"cluster-mode={mode} does not use it"
    attributes.aside(dict.fromkeys(("nms-iou-threshold", "post-cluster-threshold", "topk"), unused))
    own.draft.write("postprocess", "nms", nms, together(*origins))


def _before(attributes: Keys) -> tuple[float, str]:
    """Return the threshold before clustering; of its old and its new name the later is read."""
    names = [key for key in attributes.values if key in ("threshold", "pre-cluster-threshold")]
    name = names[-1] if names else "pre-cluster-threshold"
    attributes.aside(dict.fromkeys(names[:-1], f"{name}, which comes later, replaces it"))
    least = attributes.take(name, _share, 0.2)
    return least, attributes.origin(name, "0.2 is the default")


def _hidden(own: Keys, attributes: Keys) -> list[str]:
    """Set aside what only hides answers at the end; return what is not followed."""
    hidden = []
    for holder, names in ((own, ("filter-out-class-ids",)), (attributes, nvinfer_keys.HIDES)):
        for key in names:
            if key not in holder:
                continue
            off = holder.values[key] in ("0", "0.0")
            why = "off" if off else "hides answers at the end; all are compared here"
            holder.aside({key: why})
            hidden += [] if off else [key]
    return hidden


def _single_classes(draft: Draft, path: Path, found: Groups, attributes: Keys) -> list[str]:
    """Set aside what is written for single classes; return what is not followed."""
    hidden = []
    for group in found:
        if not group.startswith("class-attrs-") or group == _ALL:
            continue
        inner = keys(draft, path, found, group)
        for key, value in inner.values.items():
            same = attributes.values.get(key) == value or key in nvinfer_keys.DRAWN
            same = same or (key in nvinfer_keys.HIDES and value == "0")
            why = "as for all classes" if same else f"one class; [{_ALL}] is used for all"
            draft.aside.append(f"[{group}] {key}={values.show(value)}: {why}")
            hidden += [] if same else [f"[{group}] {key}={value}"]
    return hidden


def _unknown(attributes: Keys) -> None:
    attributes.rest({*nvinfer_keys.DRAWN, *nvinfer_keys.HIDES}, passed_over="Gst-nvinfer")


def _share(written: str) -> float:
    found = values.decimal(written)
    if not 0 <= found <= 1:
        raise ValueError("a number from 0 to 1 expected")
    return float(found)


def _count(written: str) -> int:
    found = values.decimal(written)
    if found.denominator != 1:
        raise ValueError("a whole number expected")
    return int(found)


def _limit(written: str) -> int | str:
    found = _count(written)
    if found == 0:
        raise ValueError("no box of any class comes out; write -1 for all")
    return "all" if found < 0 else found
