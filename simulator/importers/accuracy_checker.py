"""OpenVINO Accuracy Checker: one model's launcher and its data set's reader and preprocessing.

Sources, of openvinotoolkit/open_model_zoo, ``tools/accuracy_checker``:
``data_readers/image_readers.py`` (``cv2.imread``: BGR, EXIF applied; ``Image.open``: RGB, not
applied; ``tf.image.decode_image``: JDCT_IFAST, tensorflow/core/kernels/image/decode_image_op.cc),
``data_readers/data_reader.py`` (opencv_imread where no reader is written),
``launcher/dlsdk_launcher_config.py``, ``preprocessor/*.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.importers import accuracy_checker_steps, values
from simulator.importers.draft import Draft, Keys
from simulator.profile.document import Document, Key

_READERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "opencv_imread": ({"backend": "opencv", "exif": "apply"}, "bgr",
                      "cv2.imread turns images by their EXIF orientation"),
    "pillow_imread": ({"backend": "pillow", "exif": "ignore"}, "rgb",
                      "Image.open(f).convert('RGB'), EXIF not applied"),
    "tf_imread": ({"backend": "tensorflow", "exif": "ignore", "idct": "ifast",
                   "chroma_upsampling": "fancy"}, "rgb",
                  "tf.image.decode_image: TensorFlow's default is JDCT_IFAST"),
}  # fmt: skip
_FRAMEWORKS = {"openvino": "openvino", "dlsdk": "openvino", "onnx_runtime": "onnxruntime"}
_MODEL = "the network itself; the model card names an ONNX file"
_SPEED = "how requests are queued; samples run one at a time"
_LAUNCHER = {
    "model": _MODEL, "weights": _MODEL, "caffe_model": _MODEL, "_model_type": _MODEL,
    "_model_is_blob": _MODEL, "outputs": "what outputs mean: the model card's output",
    "adapter": "what outputs mean: the model card's output",
    "tags": "a label for people", "batch": _SPEED, "num_requests": _SPEED, "async_mode": _SPEED,
    "should_log_cmd": "a log",
}  # fmt: skip
_DATA = "which images: the data card's"
_DATASET = {
    **dict.fromkeys(("name", "data_source", "additional_data_source", "annotation",
                     "annotation_conversion", "dataset_meta", "subsample_size", "subsample_seed",
                     "shuffle", "segmentation_masks_source"), _DATA),
    "metrics": "what is counted: the task's", "batch": _SPEED,
}  # fmt: skip
_INPUT = {"name", "type", "shape", "layout", "precision"}
_BACK = ("resize_prediction_boxes", "letterbox_postprocessing_resize")
_BOXES_BACK = "boxes are always mapped back to the image here"


def read(path: Path, found: Document, draft: Draft, entry: int | None) -> None:
    """Fill *draft* from the YAML document."""
    top = _keys(draft, found, found.values, ())
    models: list[dict[str, Any]] = top.need(
        "models", _several, [], "only a list of models can be imported"
    )
    top.rest()
    if not models:
        return
    if entry is not None and not 1 <= entry <= len(models):
        draft.problems.append(f"{path}: entry {entry}: the file has {len(models)} models")
        return
    if entry is None and len(models) > 1:
        told = ", ".join(f"{n} {values.show(m.get('name'))}" for n, m in enumerate(models, 1))
        draft.problems.append(
            f"{found.where(('models', 1))}: models: the file has {len(models)}, each a separate "
            f"stack; choose one with entry: {told}"
        )
        return
    at = (entry or 1) - 1
    model = _keys(draft, found, models[at], ("models", at))
    name = model.take("name", values.text, "")
    if name:
        draft.name = name
    place: Key = ("models", at)
    launcher = _one(model, "launchers")
    dataset = _one(model, "datasets")
    model.rest(named=("name",))
    if launcher is not None:
        _launch(_keys(draft, found, launcher, (*place, "launchers", 0)))
    if dataset is not None:
        _data(draft, found, dataset, (*place, "datasets", 0))


def _keys(draft: Draft, found: Document, here: dict[str, Any], place: Key) -> Keys:
    prefix, near = ("".join(f"{part}." for part in parts) for parts in (place, place[4:]))
    return Keys(draft, here, lambda key: found.where((*place, key)), prefix, near)


def _several(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(v, dict) for v in value):
        raise ValueError("a list of mappings expected")
    return value


def _one(model: Keys, key: str) -> dict[str, Any] | None:
    items: list[dict[str, Any]] = model.need(key, _several, [], "a stack needs one")
    if len(items) > 1:
        words = [str(i.get("framework", i.get("name", ""))) for i in items]
        model.refuse(
            key,
            f"{len(items)} of them ({values.show(', '.join(words))}), each a separate "
            "stack; keep one",
        )
    return items[0] if len(items) == 1 else None


def _launch(keys: Keys) -> None:
    draft = keys.draft
    why = "it selects the runtime"
    if "framework" not in keys:
        keys.problem("framework", f"not written; {why}")
    backend = keys.choice("framework", _FRAMEWORKS, "openvino")
    device = keys.take("device", values.text, "CPU")
    if device.upper() != "CPU":
        keys.refuse("device", "only CPU can be imported; write the runtime's section by hand")
    draft.whole.add("runtime")
    origin = keys.origin("framework")
    draft.write("runtime", "backend", backend, origin)
    draft.write("runtime", "device", "cpu", keys.origin("device", "it runs on the CPU"))
    runtime = draft.base.spec.runtime
    draft.write("runtime", "threads", runtime.threads, f"as {draft.base.name} has it")
    if backend == "onnxruntime":
        level = (runtime.model_extra or {}).get("graph_optimization_level", "all")
        draft.write("runtime", "graph_optimization_level", level, "ONNX Runtime's default is all")
    else:
        compute = draft.base.spec.precision.compute
        draft.claim(
            "precision",
            "assumed",
            "Accuracy Checker leaves the precision to OpenVINO's plugin (BF16 where a CPU has it); "
            f"{compute} is {draft.base.name}'s",
        )
    draft.claim("runtime", "native", f"Accuracy Checker's launcher {backend}")
    inputs: list[dict[str, Any]] = keys.take("inputs", _several, [])
    for item in inputs:
        plain = item.get("type") == "INPUT" and item.get("precision", "FP32") == "FP32"
        if not plain or len(inputs) > 1 or set(item) - _INPUT:
            keys.refuse("inputs", "a profile feeds only one float32 image")
        else:
            draft.card.append(keys.origin("inputs").removeprefix("from "))
    keys.aside(_LAUNCHER)
    for key, allowed in (("allow_reshape_input", False), ("reset_memory_state", False)):
        if keys.take(key, values.boolean, allowed) != allowed:
            keys.refuse(key, "the size of the network's input varies by image; a card has one size")
    keys.rest(_LAUNCHER)


def _data(draft: Draft, found: Document, dataset: dict[str, Any], place: Key) -> None:
    keys = _keys(draft, found, dataset, place)
    options, order, why = _READERS["opencv_imread"]
    written = keys.values.get("reader")
    if isinstance(written, dict):
        keys.take("reader", lambda value: value, None)
        inner = _keys(draft, found, written, (*place, "reader"))
        options, order, why = inner.choice("type", _READERS, (options, order, why))
        _reader_options(inner)
    else:
        options, order, why = keys.choice("reader", _READERS, (options, order, why))
    draft.whole |= {"decode", "color", "resize", "geometry"}
    origin = keys.origin("reader", "opencv_imread is the default")
    for field, value in options.items():
        draft.write("decode", field, value, origin)
    draft.claim("decode", "native", why)
    steps: list[dict[str, Any]] = keys.take("preprocessing", _several, [])
    if not steps and "preprocessing" not in keys:
        keys.problem(
            "preprocessing",
            "not written; images then keep their size, but a "
            "profile resizes every image to the network's size",
        )
    at = (*place, "preprocessing")
    each = [_keys(draft, found, step, (*at, i)) for i, step in enumerate(steps)]
    accuracy_checker_steps.follow(draft, each, order, origin)
    after: list[dict[str, Any]] = keys.take("postprocessing", _several, [])
    for step in after:
        if set(step) == {"type"} and step["type"] in _BACK:
            draft.aside.append(f"postprocessing {step['type']}: {_BOXES_BACK}")
        else:
            keys.refuse(
                "postprocessing",
                "this changes boxes or masks after the network; write "
                "it in the profile's postprocess or the card's output, and remove it here",
            )
    keys.aside(_DATASET)
    keys.rest(_DATASET)


def _reader_options(keys: Keys) -> None:
    if keys.take("reading_flag", values.text, "color") != "color":
        keys.refuse("reading_flag", "a profile's images are in color")
    for key, allowed in (("to_rgb", True), ("multi_infer", False)):
        if keys.take(key, values.boolean, allowed) != allowed:
            keys.refuse(key, "a profile has one color image per sample")
    keys.rest(named=("type",))
