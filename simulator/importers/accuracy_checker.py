"""OpenVINO Accuracy Checker: one model's launcher and its data set's reader and preprocessing.

Sources, of openvinotoolkit/open_model_zoo, ``tools/accuracy_checker``:
``data_readers/image_readers.py`` (``cv2.imread``: BGR, EXIF applied; ``Image.open``: RGB, not
applied; ``tf.image.decode_image``: JDCT_IFAST, tensorflow/core/kernels/image/decode_image_op.cc),
``data_readers/data_reader.py`` (opencv_imread where no reader is written), ``preprocessor/*.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.importers import accuracy_checker_steps, values
from simulator.importers.accuracy_checker_launcher import SPEED, launch
from simulator.importers.draft import Draft, Keys
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.open_model_zoo import Inside
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
_DATA = "which images: the data card's"
_DATASET = {
    **dict.fromkeys(("name", "data_source", "additional_data_source", "annotation",
                     "annotation_conversion", "dataset_meta", "subsample_size", "subsample_seed",
                     "shuffle", "segmentation_masks_source", "sub_sample", "use_full_image",
                     "tags"), _DATA),
    "metrics": "what is counted: the task's", "batch": SPEED,
}  # fmt: skip
_BACK = ("resize_prediction_boxes", "letterbox_postprocessing_resize")
_BOXES_BACK = "boxes are always mapped back to the image here"
_AFTER = "after the network: the model card's output and the profile's postprocess say that here"


class AccuracyChecker(Importer):
    """A list of models, each with launchers and data sets."""

    name = tool = "accuracy_checker"
    about = "OpenVINO Accuracy Checker's YAML"
    base = "pillow_fp32"
    stems = ("accuracy-check",)

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has evaluations, or models that are not one mapping."""
        return file.has_line(r"^evaluations\s*:|^models\s*:(?!(?:\s|#[^\n]*\n)*\w+\s*:)")

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name each model with each of its launchers and data sets."""
        return [one.label for one in _entries(file.yaml)]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the reader and the steps of one of them."""
        top = file.yaml_keys(draft)
        if "evaluations" in top:
            top.problem("evaluations", "several networks run by a script of their own; import each "
                        "of them from a file with models")  # fmt: skip
            return
        nothing: list[dict[str, Any]] = []
        top.need("models", values.mappings, nothing, "only a list of models can be imported")
        top.rest({"global_definitions": _DATA}, named=("models",))
        if not draft.problems:
            _one(draft, file.path, file.yaml, _entries(file.yaml)[stack])


@dataclass(frozen=True, slots=True)
class _Entry:
    """One stack of a file: a model with one of its launchers and one of its data sets.

    Attributes:
        model, launcher, dataset: their places in the lists, from 0.
        name: of the model.
        label: name, framework and, where there are several, the data set.
    """

    model: int
    launcher: int
    dataset: int
    name: str
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
                name = str(model.get("name", ""))
                label = f"{values.show(name)} ({values.show(', '.join(words))})"
                made.append(_Entry(at, first, second, name, label))
    return made


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _one(draft: Draft, path: Path, found: Document, chosen: _Entry) -> None:
    place: Key = ("models", chosen.model)
    model = _keys(draft, found, found.values["models"][chosen.model], place)
    draft.name = model.take("name", values.text, "")
    launchers: list[dict[str, Any]] = model.need(
        "launchers", values.mappings, [], "a stack needs one"
    )
    datasets: list[dict[str, Any]] = model.need(
        "datasets", values.mappings, [], "a stack needs one"
    )
    model.rest(named=("name", "launchers", "datasets"))
    for key, items, at in (("launchers", launchers, chosen.launcher),
                           ("datasets", datasets, chosen.dataset)):  # fmt: skip
        draft.aside += [
            f"{key}.{n}={values.show(one.get('framework', one.get('name')))}: another entry"
            for n, one in enumerate(items)
            if n != at
        ]
    if not launchers or not datasets:
        return
    inner: Key = (*place, "datasets", chosen.dataset)
    data = _keys(draft, found, datasets[chosen.dataset], inner)
    if _has_no_image(draft, found, data, inner):
        return
    launcher: Key = (*place, "launchers", chosen.launcher)
    inside = launch(_keys(draft, found, launchers[chosen.launcher], launcher), path)
    _data(draft, found, data, inner, inside)


def _has_no_image(draft: Draft, found: Document, keys: Keys, place: Key) -> bool:
    """Refuse a reader of something else, in one line."""
    written = keys.values.get("reader")
    name = written.get("type") if isinstance(written, dict) else written
    if name is None or (isinstance(name, str) and name in _READERS):
        return False
    holder = keys
    if isinstance(written, dict):
        holder = _keys(draft, found, written, (*place, "reader"))
    offered = ", ".join(_READERS)
    why = f"not a reader of color images that a profile has; these can be imported: {offered}"
    holder.refuse("reader" if holder is keys else "type", why)
    return True


def _keys(draft: Draft, found: Document, here: dict[str, Any], place: Key) -> Keys:
    near = "".join(f"{part}." for part in place[4:])
    return Keys(draft, here, found.where, place, near=near)


def _data(draft: Draft, found: Document, keys: Keys, place: Key, inside: Inside | None) -> None:
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
    steps: list[dict[str, Any]] = keys.take("preprocessing", values.mappings, [])
    if not steps and "preprocessing" not in keys:
        keys.problem(
            "preprocessing",
            "not written; images then keep their size, but a "
            "profile resizes every image to the network's size",
        )
    at = (*place, "preprocessing")
    each = [_keys(draft, found, step, (*at, i)) for i, step in enumerate(steps)]
    accuracy_checker_steps.follow(draft, each, order, origin, inside)
    after: list[dict[str, Any]] = keys.take("postprocessing", values.mappings, [])
    for step in after:
        back = set(step) == {"type"} and step["type"] in _BACK
        why = _BOXES_BACK if back else _AFTER
        draft.aside.append(f"postprocessing {values.show(step)}: {why}")
    others = [str(step.get("type")) for step in after if step.get("type") not in _BACK]
    if others:
        said = values.show(", ".join(others))
        draft.claim("postprocess", "assumed", f"Accuracy Checker's steps are set aside: {said}")
    keys.rest(_DATASET)


def _reader_options(keys: Keys) -> None:
    if keys.take("reading_flag", values.text, "color") != "color":
        keys.refuse("reading_flag", "a profile's images are in color")
    for key, allowed in (("to_rgb", True), ("multi_infer", False)):
        if keys.take(key, values.boolean, allowed) != allowed:
            keys.refuse(key, "a profile has one color image per sample")
    keys.rest(named=("type",))


ACCURACY_CHECKER = AccuracyChecker()
