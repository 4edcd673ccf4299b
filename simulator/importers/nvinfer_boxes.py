"""Gst-nvinfer's groups ``[class-attrs-...]``: what happens to boxes after the network.

Sources: ``nvdsinfer_context_impl_output_parsing.cpp``: boxes below ``pre-cluster-threshold`` are
dropped, ``cluster-mode`` joins the boxes of each class, ``topk`` keeps the best of each class.
``gstnvinfer_property_parser.cpp``: ``[class-attrs-all]`` is every class's, and what
``[class-attrs-N]`` writes is put in its place. ``gstnvinfer_meta_utils.cpp``: boxes of the image
that are too small or too large are dropped. ``gstnvinfer_property_parser.h``: the defaults, by
which OpenCV's groupRectangles (``group-threshold``) and DBSCAN (``minBoxes``) join nothing unless
a file asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from simulator.importers import nvinfer_keys, values
from simulator.importers.draft import Draft, together
from simulator.importers.keys import Keys
from simulator.importers.nvinfer_file import Groups, keys

_MODES = {"0": "groupRectangles", "1": "DBSCAN", "2": "NMS", "3": "DBSCAN, then NMS", "4": "none"}
_PARSING = "nvdsinfer_context_impl_output_parsing.cpp"
_PREFIX = "class-attrs-"
_ALL = f"{_PREFIX}all"
_JOINING = ("group-threshold", "minBoxes", "eps", "dbscan-min-score")
_FIELDS = {
    "threshold": "score_threshold", "pre-cluster-threshold": "score_threshold",
    "post-cluster-threshold": "score_threshold", "nms-iou-threshold": "iou_threshold",
    "topk": "class_top_k_after", **nvinfer_keys.SIZES,
}  # fmt: skip
"""The field of ``postprocess.nms`` that each key becomes a part of."""
_MODES_OF = {"post-cluster-threshold": "123", "nms-iou-threshold": "23", "topk": "1234"}
"""The values of ``cluster-mode`` that use a key; all use the others."""
_DEFAULTS = {
    "pre-cluster-threshold": "0.2 is the default", "nms-iou-threshold": "0.3 is the default",
    "post-cluster-threshold": "0 is the default", "topk": "-1, all, is the default",
}  # fmt: skip


Limits = dict[str, Any]
"""Thresholds, counts and sizes by their name."""


def boxes(own: Keys, path: Path, found: Groups) -> None:
    """Write ``postprocess.nms`` of a detector from its ``[property]`` and class groups."""
    draft = own.draft
    shared = keys(draft, path, _shared(own, found), _ALL)
    single = _single(own, path, found)
    mode = _mode(own)
    missing = _joined({"": shared, **single}, mode)
    origins = [own.origin("cluster-mode", "0, groupRectangles, is the default")]
    nms = _kind(mode, missing)
    raw = _raw(shared, {})
    nms |= _limits(raw, mode)
    origins += _origins(shared, mode)
    classes: dict[str, Limits] = {}
    for number, group in single.items():
        limits = _limits(_raw(group, raw), mode)
        differs = {name: limit for name, limit in limits.items() if limit != nms[name]}
        origins += _origins(group, mode, differs)
        classes |= {number: differs} if differs else {}
    nms["classes"] = classes
    draft.write("postprocess", "nms", nms, together(*origins))
    missing += _hidden(own, [shared, *single.values()])
    said = f"{_PARSING}; a box whose score equals the threshold is kept there and not here"
    left = f"not followed: {', '.join(missing)}; " if missing else ""
    draft.claim("postprocess", "assumed" if missing else "emulated", f"{left}{said}")
    for group in (shared, *single.values()):
        group.rest(nvinfer_keys.DRAWN, (*_FIELDS, *_JOINING), passed_over="Gst-nvinfer")


def elsewhere(draft: Draft, path: Path, found: Groups, task: str) -> None:
    """Set aside the groups that are not used: those of a detector in others, and unknown ones."""
    for group in found:
        of_boxes = group.startswith(_PREFIX)
        if group == "property" or (task == "detection" and of_boxes):
            continue
        other = "about boxes, but this is not a detector"
        inner = keys(draft, path, found, group)
        for key in inner.values:
            inner.leave(key, other if of_boxes else "Gst-nvinfer has no such group")


def _shared(own: Keys, found: Groups) -> Groups:
    """Return the groups with what is written for each single class, and equal, in that of all."""
    each = [found.get(f"{_PREFIX}{number}", {}) for number in range(_known(own) or 0)]
    common = dict(found.get(_ALL, {}))
    for key, written in (each[0] if each else {}).items():
        if all(one.get(key, ("",))[0] == written[0] for one in each):
            common[key] = written
    return {**found, _ALL: common}


def _known(own: Keys) -> int | None:
    count = own.values.get("num-detected-classes", "")
    return int(count) if re.fullmatch(r"[0-9]{1,5}", count) else None


def _single(own: Keys, path: Path, found: Groups) -> dict[str, Keys]:
    """Return the groups of single classes by their number; refuse those of no class."""
    groups = {}
    most = _known(own)
    for name in found:
        number = name.removeprefix(_PREFIX)
        if name in (number, _ALL):
            continue
        if not re.fullmatch(r"[0-9]{1,5}", number):
            own.draft.problems.append(f"{path}: [{values.plain(name)}]: a class number expected")
        elif most is not None and int(number) >= most:
            why = f"there is a group [{name}]; Gst-nvinfer stops at it"
            own.problem("num-detected-classes", f"{most} classes, but {why}")
        else:
            groups[str(int(number))] = keys(own.draft, path, found, name)
    return groups


def _mode(own: Keys) -> str:
    legacy = own.values.get("enable-dbscan") in ("1", "true")
    own.aside({"enable-dbscan": "the old name of cluster-mode=1"})
    if "cluster-mode" not in own:
        return "1" if legacy else "0"
    return own.choice("cluster-mode", {mode: mode for mode in _MODES}, "2")


def _joined(groups: dict[str, Keys], mode: str) -> list[str]:
    """Take what joins boxes in other ways than NMS; return what is not followed."""
    key = {"0": "group-threshold", "1": "minBoxes", "3": "minBoxes"}.get(mode)
    followed = True
    for group in groups.values():
        counts = {name: group.take(name, _count, 0) for name in ("group-threshold", "minBoxes")}
        followed = followed and (key is None or counts[key] <= 0)
    why = f"cluster-mode={mode} joins no boxes with it" if followed else "not followed: see below"
    for group in groups.values():
        for name in _JOINING:
            group.leave(name, why)
    if followed:
        return []
    instead = "NMS alone runs" if mode == "3" else "the model card's NMS runs"
    return [f"cluster-mode={mode} ({_MODES[mode]}) with {key}, {instead}"]


def _kind(mode: str, missing: list[str]) -> Limits:
    if mode in ("2", "3"):
        return {"kind": "greedy", "class_aware": True, "offset": 0, "top_k_before": "all",
                "top_k_after": "all"}  # fmt: skip
    return {"top_k_after": "all"} if missing else {"kind": "none", "top_k_after": "all"}


def _raw(group: Keys, default: Limits) -> Limits:
    """Return the values of a group as Gst-nvinfer holds them; *default* is every class's."""
    least = _threshold(group)
    raw = {
        "before": group.take(least, _score, default.get("before", 0.2)),
        "after": group.take("post-cluster-threshold", _score, default.get("after", 0.0)),
        "iou": group.take("nms-iou-threshold", _share, default.get("iou", 0.3)),
        "topk": group.take("topk", _limit, default.get("topk", "all")),
    }
    for key, name in nvinfer_keys.SIZES.items():
        off = "none" if name.startswith("max") else 0.0
        raw[name] = group.take(key, _size, default.get(name, off)) or off
    return raw


def _threshold(group: Keys) -> str:
    """Return the name of the threshold before clustering; of its two names the later is read."""
    names = [key for key in group.values if key in ("threshold", "pre-cluster-threshold")]
    name = names[-1] if names else "pre-cluster-threshold"
    group.aside(dict.fromkeys(names[:-1], f"{name}, which comes later, replaces it"))
    return name


def _limits(raw: Limits, mode: str) -> Limits:
    """Return the fields of ``postprocess.nms`` that a class may have of its own."""
    used = [key for key, modes in _MODES_OF.items() if mode in modes]
    after = raw["after"] if "post-cluster-threshold" in used else 0.0
    fields = {"score_threshold": max(raw["before"], after)}
    if "nms-iou-threshold" in used:
        fields["iou_threshold"] = raw["iou"]
    if "topk" in used:
        fields["class_top_k_after"] = raw["topk"]
    return fields | {name: raw[name] for name in nvinfer_keys.SIZES.values()}


def _origins(group: Keys, mode: str, differs: Limits | None = None) -> list[str]:
    """Return where a group's values come from; list its keys that change nothing.

    Args:
        group: of all classes, or of one.
        mode: ``cluster-mode``.
        differs: what one class has in place of all classes' values; None for those of all.
    """
    told = []
    for key in (_threshold(group), *_MODES_OF, *nvinfer_keys.SIZES):
        if mode not in _MODES_OF.get(key, mode):
            group.leave(key, f"cluster-mode={mode} does not use it")
        elif differs is None:
            named = key in _DEFAULTS or key in group
            told += [group.origin(key, _DEFAULTS.get(key, ""))] if named else []
        elif _FIELDS[key] in differs:
            told += [group.origin(key)] if key in group else []
        else:
            group.leave(key, "as for all classes")
    return told


def _hidden(own: Keys, groups: Iterable[Keys]) -> list[str]:
    """Set aside what only hides answers at the end; return what is not followed."""
    hidden = []
    holders = [(own, ("filter-out-class-ids",)), *((group, nvinfer_keys.HIDES) for group in groups)]
    for holder, names in holders:
        for key in (name for name in names if name in holder):
            off = holder.values[key] in ("0", "0.0")
            why = "off" if off else "hides answers at the end; all are compared here"
            holder.aside({key: why})
            hidden += [] if off else [f"{holder.near}{key}"]
    return hidden


def _score(written: str) -> float:
    """Take a threshold; no score is above 1, so that a larger one drops all boxes as 1 does."""
    return min(float(_from_zero(values.decimal(written), "a number from 0")), 1.0)


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


def _size(written: str) -> float:
    return float(_from_zero(Fraction(_count(written)), "a whole number from 0"))


def _from_zero(found: Fraction, what: str) -> Fraction:
    if found < 0:
        raise ValueError(f"{what} expected")
    return found


def _limit(written: str) -> int | str:
    found = _count(written)
    if found == 0:
        raise ValueError("no box comes out; write -1 for all")
    return "all" if found < 0 else found
