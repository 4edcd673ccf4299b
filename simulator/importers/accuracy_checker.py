"""OpenVINO Accuracy Checker: one model's launcher and its data set's reader and preprocessing.

Sources, of openvinotoolkit/open_model_zoo, ``tools/accuracy_checker``:
``data_readers/image_readers.py`` (``cv2.imread``: BGR, EXIF applied; ``Image.open``: RGB, not
applied; ``tf.image.decode_image``: JDCT_IFAST, tensorflow/core/kernels/image/decode_image_op.cc),
``data_readers/data_reader.py`` (opencv_imread where no reader is written), ``preprocessor/*.py``,
``launcher/dlsdk_launcher_config.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from simulator.importers import accuracy_checker_steps, open_model_zoo, values
from simulator.importers.draft import Draft
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile
from simulator.importers.open_model_zoo import Inside
from simulator.importers.values import keys_by_reason
from simulator.profile.document import Document
from simulator.profile.load import load

_FRAMEWORKS = {"openvino": "openvino", "dlsdk": "openvino", "onnx_runtime": "onnxruntime"}
_OWN = ("framework", "device", "inputs", "adapter", "allow_reshape_input", "reset_memory_state")
"""Keys of a launcher that are looked at whatever it is."""
_SPEED = "how requests are queued; samples run one at a time"
_LAUNCHER = keys_by_reason({
    "the network itself; the model card names an ONNX file":
        "model weights caffe_model _model_type _model_is_blob cpu_extensions _list_lstm_inputs "
        "convert_model tf_model caffe_weights mxnet_weights onnx_model saved_model_dir "
        "_input_precision _input_layout",
    "what outputs mean: the model card's output": "outputs adapter output_names",
    "a label for people": "tags",
    _SPEED: "batch num_requests async_mode predictions",
    "a log": "should_log_cmd",
    "it runs on the CPU": "device",
    "the preprocessing gives every image one size, which is the card's": "allow_reshape_input",
})  # fmt: skip
_INPUT = {"name", "type", "shape", "layout", "precision"}
_OTHERS = ("CONST_INPUT", "IMAGE_INFO", "ORIG_IMAGE_INFO", "PROCESSED_IMAGE_INFO", "SCALE_FACTOR")
_READERS: dict[str, tuple[dict[str, str], str, str]] = {
    "opencv_imread": ({"backend": "opencv", "exif": "apply"}, "bgr",
                      "cv2.imread turns images by their EXIF orientation"),
    "pillow_imread": ({"backend": "pillow", "exif": "ignore"}, "rgb",
                      "Image.open(f).convert('RGB'), EXIF not applied"),
    "tf_imread": ({"backend": "tensorflow", "exif": "ignore", "idct": "ifast",
                   "chroma_upsampling": "fancy"}, "rgb",
                  "tf.image.decode_image: TensorFlow's default is JDCT_IFAST"),
}  # fmt: skip
_DATA = "which images: the data card's"
_DATASET = keys_by_reason({
    _DATA: "name data_source additional_data_source annotation annotation_conversion dataset_meta "
           "subsample_size subsample_seed shuffle segmentation_masks_source sub_sample "
           "use_full_image tags",
    "what is counted: the task's": "metrics",
    _SPEED: "batch",
})  # fmt: skip
_BACK = ("resize_prediction_boxes", "letterbox_postprocessing_resize")
_BOXES_BACK = "boxes are always mapped back to the image here"
_AFTER = "after the network: the model card's output and the profile's postprocess say that here"


class AccuracyChecker(Importer):
    """A list of models, each with launchers and data sets."""

    name = tool = "accuracy_checker"
    about = "OpenVINO Accuracy Checker's YAML"
    base = "pillow_fp32"
    stems = ("accuracy-check",)
    line = r"^evaluations\s*:|^models\s*:(?!(?:\s|#[^\n]*\n)*\w+\s*:)"

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return what Open Model Zoo's ``model.yml`` says of the network that it converts."""
        path = next(network.beside((open_model_zoo.BESIDE,)), None)
        return open_model_zoo.card_fields(path, Draft(load(self.base), self.tool)) if path else None

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name each model with each of its launchers and data sets."""
        return [entry.label for entry in _entries(file.yaml)]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the reader and the steps of one of them."""
        top = Keys(draft, file.yaml.values, file.yaml.where, hidden=4)
        if "evaluations" in top:
            top.problem("evaluations", "several networks run by a script of their own; import each "
                        "of them from a file with models")  # fmt: skip
            return
        top.mappings("models", "only a list of models can be imported")
        top.rest({"global_definitions": _DATA}, named=("models",))
        if not draft.problems:
            _one(top, file.path, _entries(file.yaml)[stack])


class _Entry(NamedTuple):
    """One stack of a file: the places of its model, launcher and data set in their lists."""

    model: int
    launcher: int
    dataset: int
    label: str


def _entries(found: Document) -> list[_Entry]:
    """Return the stacks of a file, in its order; what is no list of mappings has none."""
    made = []
    for at, model in enumerate(_mappings(found.values.get("models"))):
        launchers, datasets = (_mappings(model.get(key)) for key in ("launchers", "datasets"))
        for first, launcher in enumerate(launchers or [{}]):
            for second, dataset in enumerate(datasets or [{}]):
                words = [str(launcher.get("framework", "no framework"))]
                words += [str(dataset.get("name"))] if len(datasets) > 1 else []
                name = values.show(str(model.get("name", "")))
                made.append(_Entry(at, first, second, f"{name} ({values.show(', '.join(words))})"))
    return made


def _mappings(value: Any) -> list[values.Object]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _one(top: Keys, path: Path, chosen: _Entry) -> None:
    draft, model = top.draft, top.below("models", chosen.model)
    draft.name = model.take("name", values.text, "")
    places = {"launchers": chosen.launcher, "datasets": chosen.dataset}
    lists = {key: model.mappings(key, "a stack needs one") for key in places}
    model.rest(named=("name", *places))
    for key, items in lists.items():
        draft.aside += [
            f"{key}.{n}={values.show(item.get('framework', item.get('name')))}: another entry"
            for n, item in enumerate(items)
            if n != places[key]
        ]
    if not all(lists.values()):
        return
    data = model.below("datasets", chosen.dataset)
    written = data.values.get("reader")
    reader, key = (data.below("reader"), "type") if isinstance(written, dict) else (data, "reader")
    if key in reader and str(reader.values[key]) not in _READERS:  # the one line that matters
        offered = ", ".join(_READERS)
        why = f"not a reader of color images that a profile has; these can be imported: {offered}"
        reader.refuse(key, why)
        return
    inside = _launch(model.below("launchers", chosen.launcher), path)
    _data(data, reader, key, inside)


def _data(keys: Keys, reader: Keys, key: str, inside: Inside | None) -> None:
    draft = keys.draft
    options, order, why = reader.choice(key, _READERS, _READERS["opencv_imread"])
    if reader is not keys:
        keys.skip("reader")
        color = "a profile's images are in color"
        reader.only("reading_flag", "color", color, values.text)
        for name, allowed in (("to_rgb", True), ("multi_infer", False)):
            reader.only(name, allowed, "a profile has one color image per sample")
        reader.rest(named=("type",))
    draft.whole |= {"decode", "color", "resize", "geometry"}
    origin = keys.origin("reader", "opencv_imread is the default")
    for field, value in options.items():
        draft.write("decode", field, value, origin)
    draft.claim("decode", "native", why)
    why = "images then keep their size, but a profile resizes every image to the network's size"
    steps = keys.mappings("preprocessing", why)
    each = [keys.below("preprocessing", at) for at in range(len(steps))]
    accuracy_checker_steps.follow(draft, each, order, origin, inside)
    after = keys.mappings("postprocessing")
    for step in after:
        back = set(step) == {"type"} and step["type"] in _BACK
        why = _BOXES_BACK if back else _AFTER
        draft.aside.append(f"postprocessing {values.show(step)}: {why}")
    others = [str(step.get("type")) for step in after if step.get("type") not in _BACK]
    if others:
        said = values.show(", ".join(others))
        draft.claim("postprocess", "assumed", f"Accuracy Checker's steps are set aside: {said}")
    keys.rest(_DATASET)


def _launch(keys: Keys, path: Path) -> Inside | None:
    """Write the runtime of a launcher; return what its network does with the tensor first.

    Args:
        keys: of the launcher.
        path: the file, beside which ``model.yml`` may be.

    Returns:
        None for a network without steps of its own: only an IR of OpenVINO has some.
    """
    draft = keys.draft
    framework = keys.need("framework", values.text, "openvino", "it selects the runtime")
    backend = _FRAMEWORKS.get(framework, "")
    if keys.take("device", values.text, "CPU").upper() != "CPU":
        keys.refuse("device", "only CPU can be imported; write the runtime's section by hand")
    inside = None
    if backend:
        _runtime(keys, backend)
        inside = open_model_zoo.inside(keys, path) if backend == "openvino" else None
    else:
        own = draft.base.spec.runtime.backend
        draft.aside.append(f"{keys.origin('framework').removeprefix('from ')}: {own} stands in")
        draft.claim("runtime", "assumed", f"{own} stands in for Accuracy Checker's launcher "
                    f"{values.show(framework)}, which a profile does not have")  # fmt: skip
        keys.aside({key: f"of the launcher {framework}" for key in keys.values if key not in _OWN})
    _inputs(keys)
    keys.aside(_LAUNCHER)
    keys.take("allow_reshape_input", values.boolean, False)
    state = "the network has a state, and a profile has single images"
    keys.only("reset_memory_state", False, state)
    keys.rest(also=_LAUNCHER, named=("mo_params", "mo_flags"))
    return inside


def _runtime(keys: Keys, backend: str) -> None:
    draft, base = keys.draft, keys.draft.base
    draft.whole.add("runtime")
    draft.write("runtime", "backend", backend, keys.origin("framework"))
    draft.write("runtime", "device", "cpu", keys.origin("device", "it runs on the CPU"))
    draft.write("runtime", "threads", base.spec.runtime.threads, f"as {base.name} has it")
    if backend == "openvino":
        said = (
            "Accuracy Checker leaves the precision to OpenVINO's plugin (BF16 where a CPU has it)"
        )
        own = f"{base.spec.precision.compute} is {base.name}'s"
        draft.claim("precision", "assumed", f"{said}; {own}")
    draft.claim("runtime", "native", f"Accuracy Checker's launcher {backend}")
    if backend == "onnxruntime":
        level = (base.spec.runtime.model_extra or {}).get("graph_optimization_level", "all")
        draft.write("runtime", "graph_optimization_level", level, "ONNX Runtime's default is all")
        _providers(keys)


def _providers(keys: Keys) -> None:
    """Take ONNX Runtime's execution providers; its own CPU kernels stand in for the others."""
    written: list[str] = keys.take("execution_providers", values.texts, [])
    if others := [one for one in written if one != "CPUExecutionProvider"]:
        keys.origin("execution_providers")
        source = f"ONNX Runtime's CPU kernels stand in for {values.show(', '.join(others))}"
        keys.draft.claim("runtime", "assumed", source)


def _inputs(keys: Keys) -> None:
    """List the network's inputs for the card; refuse what is not one image and constants."""
    inputs = keys.mappings("inputs")
    images = [one for one in inputs if one.get("type", "INPUT") == "INPUT"]
    others = [one for one in inputs if one not in images]
    plain = all(
        image.get("precision", "FP32") == "FP32" and not set(image) - _INPUT for image in images
    )
    if len(images) > 1 or not plain or any(one["type"] not in _OTHERS for one in others):
        keys.refuse("inputs", "a profile feeds one float32 image, and constants of the card")
    elif inputs:
        keys.draft.card.append(keys.origin("inputs").removeprefix("from "))


ACCURACY_CHECKER = AccuracyChecker()
