"""OpenVINO Accuracy Checker: one model's launcher and its data set's reader and preprocessing.

Sources, of openvinotoolkit/open_model_zoo, ``tools/accuracy_checker``:
``data_readers/image_readers.py`` (``cv2.imread``: BGR, EXIF applied; ``Image.open``: RGB, not
applied; ``tf.image.decode_image``: JDCT_IFAST, tensorflow/core/kernels/image/decode_image_op.cc),
``data_readers/data_reader.py`` (opencv_imread where no reader is written), ``preprocessor/*.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from simulator.importers import accuracy_checker_steps, open_model_zoo, values
from simulator.importers.accuracy_checker_launcher import SPEED, launch
from simulator.importers.draft import Draft
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile
from simulator.importers.open_model_zoo import Inside
from simulator.importers.values import keys_by_reason
from simulator.profile.document import Document
from simulator.profile.load import load

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
    SPEED: "batch",
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
    inside = launch(model.below("launchers", chosen.launcher), path)
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


ACCURACY_CHECKER = AccuracyChecker()
