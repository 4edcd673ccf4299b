"""Detect the format of a document and convert it to a profile that loads and can run."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import ProfileError, unknown
from simulator.files import LARGE, open_file
from simulator.importers.accuracy_checker import labels as label_accuracy_checker
from simulator.importers.accuracy_checker import read as read_accuracy_checker
from simulator.importers.deepstream import read as read_deepstream
from simulator.importers.draft import Draft
from simulator.importers.huggingface import read as read_huggingface
from simulator.importers.keras import read as read_keras
from simulator.importers.openvino_ir import read as read_ir
from simulator.importers.openvino_model import read as read_openvino
from simulator.importers.rknn import read as read_rknn
from simulator.importers.tflite import MOST
from simulator.importers.tflite import is_one as is_tflite
from simulator.importers.tflite import labels as label_tflite
from simulator.importers.tflite import parse as parse_tflite
from simulator.importers.tflite import read as read_tflite
from simulator.importers.timm import read as read_timm
from simulator.importers.ultralytics import read as read_ultralytics
from simulator.importers.values import plain
from simulator.profile import axes, document
from simulator.profile.implementations import choose
from simulator.profile.load import Profile, find, load, name_of

MAX_BYTES = 4_000_000
_NAME = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Format:
    """One format of configuration files.

    Attributes:
        summary: a description of the format.
        base: the built-in profile that supplies all values that such a file does not have.
        tool: the name of the format in comments.
        read: fills a draft; its argument *entry* selects one of several stacks of the file, from 1.
        entries: names the stacks of a file, in the order of *entry*.
    """

    summary: str
    base: str
    tool: str
    read: Callable[[Path, Any, Draft, int | None], None]
    entries: Callable[[Any], list[str]] = lambda _: ["the only one"]


FORMATS: dict[str, Format] = {
    "deepstream": Format(
        "NVIDIA DeepStream's config_infer_*.txt or .yml (Gst-nvinfer)",
        "deepstream_nv12_fp32", "config_infer", read_deepstream,
    ),
    "accuracy_checker": Format(
        "OpenVINO Accuracy Checker's YAML",
        "pillow_fp32", "accuracy_checker", read_accuracy_checker, label_accuracy_checker,
    ),
    "huggingface": Format(
        "Hugging Face Transformers' preprocessor_config.json",
        "pillow_fp32", "preprocessor_config", read_huggingface,
    ),
    "timm": Format(
        "timm's config.json or pretrained_cfg",
        "pillow_fp32", "timm", read_timm,
    ),
    "ultralytics": Format(
        "the metadata.yaml of an Ultralytics export",
        "pillow_fp32", "ultralytics", read_ultralytics,
    ),
    "rknn": Format(
        "RKNN-Toolkit2's model_config.yml (rknn_convert)",
        "rknn_model_zoo_int8", "rknn", read_rknn,
    ),
    "openvino": Format(
        "OpenVINO's .xml with the steps of PrePostProcessor",
        "openvino_ppp_fp32", "openvino", read_openvino,
    ),
    "keras": Format(
        "KerasHub's preprocessor.json or image_converter.json",
        "keras_dataset_fp32", "keras", read_keras,
    ),
    "tflite": Format(
        "TFLite Metadata of a .tflite, or of those in MediaPipe's .task",
        "mediapipe_fp32", "tflite", read_tflite, label_tflite,
    ),
}  # fmt: skip


def convert(
    path: Path,
    format: str | None = None,
    name: str | None = None,
    base: str | None = None,
    entry: int | None = None,
) -> str:
    """Convert another tool's configuration to a profile.

    Args:
        path: the file.
        format: a key of FORMATS; None detects it from the file.
        name: the name of the profile; None makes it from the file's name.
        base: the profile to extend, a path or a built-in name; None uses the format's own.
        entry: selects one of several stacks of the file, from 1; see :func:`entries`.

    Returns:
        A YAML document that loads and can run, with the origin of each value as a comment.

    Raises:
        ProfileError: one line for everything that a profile cannot express.
    """
    raw = _raw(path)
    format = _format(path, raw, format)
    kind = FORMATS[format]
    parent = load(base or kind.base)
    draft = Draft(parent, kind.tool)
    kind.read(path, _parsed(format, path, raw), draft, entry)
    if draft.problems:
        raise ProfileError(draft.problems)
    title = name or _NAME.sub("_", draft.name or stem(path)).strip("_") or "imported"
    written = draft.render(title, path.name, _extends(base or kind.base))
    _prove(path, written)
    return written


def stem(path: Path) -> str:
    """Return a file's name without its suffix, or its folder's where every such file has one."""
    return path.resolve().parent.name if path.stem in _COMMON else path.stem


def entries(path: Path, format: str | None = None) -> list[str]:
    """Name the stacks of a file, in the order of *entry* of :func:`convert`, from 1.

    Raises:
        ProfileError: the file cannot be read, or its format is unknown.
    """
    raw = _raw(path)
    format = _format(path, raw, format)
    return FORMATS[format].entries(_parsed(format, path, raw))


def _format(path: Path, raw: bytes, format: str | None) -> str:
    if format is not None and format not in FORMATS:
        raise ProfileError([unknown("format", format, FORMATS)])
    return format or ("tflite" if is_tflite(raw) else _guess(path, _text(path, raw)))


_COMMON = (
    "metadata",
    "model_config",
    "processor_config",
    "config",
    "preprocessor_config",
    "accuracy-check",
    "config_infer_primary",
)


def _extends(base: str) -> str:
    """Return the value of ``extends``: a name, or an absolute path that works from any folder."""
    place = find(base)
    return name_of(place) or str(place.resolve())


def _raw(path: Path) -> bytes:
    """Return a file's bytes; only a network in a file of its own may be large."""
    try:
        with open_file(path, LARGE) as file:
            raw = file.read(MAX_BYTES + 1)
            if is_tflite(raw):
                raw += file.read(MOST)
                most = MOST
            else:
                most = MAX_BYTES
    except OSError as error:
        raise ProfileError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    except ValueError as error:
        raise ProfileError([f"{path}: cannot be read: {error}"]) from error
    if len(raw) > most:
        raise ProfileError([f"{path}: at most {most:,} bytes can be imported"])
    return raw


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ProfileError([f"{path}:{line}: not UTF-8 text (byte {error.start})"]) from error


_MARKS = (
    (r"\A\s*<", "openvino"),
    (r"^\s*\[(property|primary-gie)\]|^property\s*:|^net-scale-factor\s*=", "deepstream"),
    (r"^\s+quantized_dtype\s*:|^\s+model_file_path\s*:", "rknn"),
    (r"^(models|evaluations)\s*:", "accuracy_checker"),
    (r"^imgsz\s*:", "ultralytics"),
)
"""What only files of a format have, for those that are no JSON."""
_KEYS = (
    ({"class_name", "registered_name", "crop_to_aspect_ratio"}, "keras"),
    ({"image_processor", "image_processor_type", "feature_extractor_type", "do_resize",
      "do_normalize"}, "huggingface"),
    ({"pretrained_cfg", "crop_pct", "input_size"}, "timm"),
)  # fmt: skip
"""Keys that tell a JSON document's format."""


_NOT_THESE = (
    (r"^\s*infer_config\s*\{", "a configuration of Gst-nvinferserver (Triton); only Gst-nvinfer's, "
     "with [property], can be imported"),
    (r"^Input Tensor Configuration\s*:|^Converted Graph\s*:", "types and layouts of tensors "
     "for Qualcomm's qairt-converter, the model card's input, and no resize, mean or std: "
     "extend qnn_int8 or qnn_fp16 and write what the application does"),
    (r"\"(activation|param)_encodings\"\s*:", "encodings of single tensors (AIMET, QNN's "
     "--quantization_overrides), which no profile has; extend qnn_int8, or give the quantized ONNX "
     "file as the model"),
)  # fmt: skip
"""Files that are known and cannot be imported, with what to give instead."""


def _guess(path: Path, raw: str) -> str:
    found: Iterable[str] = ()
    if path.suffix == ".json" or raw.lstrip().startswith("{"):
        keys = set(_json(path, raw))
        found = (name for marks, name in _KEYS if keys & marks)
    else:
        found = (name for mark, name in _MARKS if re.search(mark, raw, re.MULTILINE))
    if (name := next(iter(found), None)) is not None:
        return name
    for mark, why in _NOT_THESE:
        if re.search(mark, raw, re.MULTILINE):
            raise ProfileError([f"{path}: {why}"])
    known = "; ".join(f"{name} ({kind.summary})" for name, kind in FORMATS.items())
    raise ProfileError([f"{path}: unknown format; these can be imported: {known}"])


def _parsed(format: str, path: Path, raw: bytes) -> Any:
    if format == "tflite":
        return parse_tflite(path, raw)
    text = _text(path, raw)
    if format == "openvino":
        return read_ir(path, text)
    if format in ("huggingface", "keras", "timm"):
        return _json(path, text)
    is_key_file = format == "deepstream" and not re.search(r"^property\s*:", text, re.MULTILINE)
    return text if is_key_file else document.read(path)


def _json(path: Path, raw: str) -> dict[str, Any]:
    problems: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                problems.append(f"{path}: {plain(key)[:80]}: given twice in one object")
            found[key] = value
        return found

    def constant(word: str) -> None:
        problems.append(f"{path}: {word} is not a JSON number")

    try:
        found = json.loads(raw, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise ProfileError([f"{path}:{error.lineno}: not JSON: {error.msg}"]) from error
    except ValueError as error:  # more digits than Python's limit
        raise ProfileError([f"{path}: a number with too many digits"]) from error
    except RecursionError as error:
        raise ProfileError([f"{path}: nested too deeply"]) from error
    if not isinstance(found, dict):
        problems.append(f"{path}:1: a JSON object expected")
    if problems:
        raise ProfileError(list(dict.fromkeys(problems)))
    return dict(found)


def _prove(path: Path, written: str) -> None:
    """Load the document and find its implementations, as ``simulate profiles check`` does.

    Raises:
        ProfileError: the profile cannot run.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "imported.yaml"
        file.write_text(written, encoding="utf-8")
        try:
            profile: Profile = load(str(file))
            problems = axes.claims_problem(profile, choose(profile))
        except ProfileError as error:
            problems = list(error.problems)
    if problems:
        prefix = f"{path}: as a profile"
        raise ProfileError([line.replace(str(file), prefix) for line in problems])
