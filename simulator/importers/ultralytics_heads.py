"""The heads of networks that Ultralytics and YOLOv5 export: how their outputs become boxes.

Sources, of ultralytics/ultralytics: ``engine/exporter.py`` (``self.metadata``: each value as text;
of a ``.tflite`` a zip file behind the network), ``nn/modules/head.py`` (``Detect``, ``v10Detect``,
``Classify``, ``RTDETRDecoder``: what they return with ``export``), ``models/rtdetr/predict.py``,
``utils/nms.py`` (0.7, 30,000 boxes before and 300 after), ``cfg/default.yaml``; of
ultralytics/yolov5: ``export.py`` (``stride`` and ``names``), ``val.py`` (0.001 and 0.6).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from simulator.importers.network import CardFields, NetworkFile
from simulator.importers.values import Object

_MASKS = 32
"""Numbers of a box of a segmenter that make its mask, behind the scores."""
_LEVELS = ((8, 16, 32), (8, 16, 32, 64))
_TFLITE = ".tflite"


def metadata(written: Mapping[str, str]) -> Object | None:
    """Return the metadata of an export as values; None: another tool made the file."""
    if not {"stride", "names"} <= written.keys():
        return None
    return {key: _value(text) for key, text in written.items()}


def _value(text: str) -> object:
    try:
        found: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return found


def is_rtdetr(metadata: Mapping[str, object]) -> bool:
    """Whether an export is an RT-DETR; releases before ``head`` have it in the description."""
    about = str(metadata.get("description", "")).lower().replace("-", "")
    return metadata.get("head") == "RTDETRDecoder" or "rtdetr" in about


def add(
    fields: CardFields, network: NetworkFile, metadata: Mapping[str, object], task: str
) -> None:
    """Add task, labels and output of an export to what is said of its front end."""
    named = metadata.get("names")
    names = dict(enumerate(named)) if isinstance(named, list | tuple) else named
    if isinstance(names, dict) and names and all(str(key).isdecimal() for key in names):
        fields.name({int(key): name for key, name in names.items()})  # as text in metadata.json
    shape = next(iter(network.outputs.values()), ())
    if len(shape) == 2 and task != "classification":  # YOLOv5's classifier: no task in its file
        fields.said.clear()
        return
    kind = str(metadata.get("task", "detect"))
    extra = _beside_classes(kind, metadata.get("kpt_shape"))
    if task != "classification" and extra is None:
        fields.problems.append(f"task={kind}: no task here has such answers")
        return
    task = "classification" if task == "classification" else "detection"
    fields.say(f"from ultralytics: task={kind}", task=task)
    if task == "classification":
        fields.say("Classify: softmax in an export", output__kind="probabilities")
        return
    is_new, rtdetr = "task" in metadata, is_rtdetr(metadata)
    head = _head(network, len(fields.labels), extra or 0, is_new, rtdetr)
    if head is not None:
        _boxes(fields, head, is_new, rtdetr)


def _beside_classes(task: str, points: object) -> int | None:
    """How many numbers follow the scores of a box; None: its answers are no boxes."""
    if task == "pose" and isinstance(points, list | tuple):
        return math.prod(side for side in points if isinstance(side, int))
    return {"detect": 0, "segment": _MASKS}.get(task)


def _head(
    network: NetworkFile, classes: int, extra: int, is_new: bool, rtdetr: bool
) -> Object | None:
    """Return the head by the shape of the first output; None where it fits none.

    Rows of six are detections, but of YOLOv5 with one class: a box, an objectness and a score.
    """
    name, shape = next(iter(network.outputs.items()), ("", ()))
    if len(shape) != 3:
        return None
    unit = "image" if rtdetr or network.path.suffix == _TFLITE else "pixel"
    if is_new and not rtdetr and shape[2] == 6 + extra and shape[1] != 4 + classes + extra:
        columns = ["boxes", "score", "class", *["ignored"] * extra]
        return {
            "kind": "detections", "outputs": [{"names": [name], "columns": columns}],
            "format": "xyxy", "unit": unit, "first_class": 0,
        }  # fmt: skip
    found = [
        (layout, before)
        for layout, width in (("columns", shape[1]), ("rows", shape[2]))
        for before in (4, 5)
        if width == before + classes + extra
    ]
    if len(found) != 1:
        return None
    (layout, before), score = found[0], {"activation": "none", "background": "none"}
    output: Object = {"names": [name], "columns": ["boxes", "scores"]}
    output |= {"ignored": extra} if extra else {}
    one: Object = {**score, "classes": "best" if rtdetr else "all"}
    if before == 5:
        output["columns"] = ["boxes", "objectness", "scores"]
        one["objectness"] = {"activation": "none"}
    return {
        "kind": "boxes", "outputs": [output], "layout": layout, "score": one,
        "format": "cxcywh", "unit": unit,
    }  # fmt: skip


def _boxes(fields: CardFields, head: Object, is_new: bool, rtdetr: bool) -> None:
    """Add a detector's output, evaluated as the library's own ``val`` does."""
    suppresses = head["kind"] == "boxes" and not rtdetr
    nms = {
        "kind": "greedy" if suppresses else "none", "iou_threshold": 0.7 if is_new else 0.6,
        "class_aware": True, "offset": 0, "score_threshold": 0.001,
        "top_k_before": 30000 if suppresses else "all", "top_k_after": 300,
    }  # fmt: skip
    fields.say("by the shape of the output", output__head=head)
    fields.say("scale_boxes, clip_boxes", output__clip="image")
    fields.say("as Ultralytics' val" if is_new else "as YOLOv5's val.py", output__nms=nms)
    fields.say("conf of predict", output__operating_threshold=0.25)
    if not is_new:
        back = {"scale": "ratio", "offset": "exact"}
        fields.say("YOLOv5's scale_boxes", output__unletterbox=back)


def by_shape(network: NetworkFile) -> Object | None:
    """Return the metadata of a YOLO that has lost it, by the number of its boxes; None: it is none.

    A network of YOLOv5 or v7 has three boxes a cell of three grids, one of YOLOv8 to v12 has one.
    """
    shape = next(iter(network.outputs.values()), ())
    if network.image is None or len(shape) != 3 or None in (*network.image, *shape):
        return None
    _, height, width = network.image
    _, first, second = (side or 0 for side in shape)
    for strides in _LEVELS:
        cells = sum(((height or 0) // stride) * ((width or 0) // stride) for stride in strides)
        if first == 3 * cells and second > 5:
            return {"names": [f"class {number}" for number in range(second - 5)]}
        if second == cells and first > 4:
            return {"task": "detect", "names": [f"class {number}" for number in range(first - 4)]}
    return None
