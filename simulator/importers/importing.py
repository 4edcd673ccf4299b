"""Convert a file of another tool to a profile that loads and can run."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from simulator.errors import ProfileError
from simulator.importers.draft import Draft
from simulator.importers.importer import IMPORTERS, ConfigFile, Importer
from simulator.profile import axes
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import find, name_of

_NAME = re.compile(r"[^A-Za-z0-9]+")
_NOT_THESE = (
    (r"^[ \t]*infer_config\s*\{", "a configuration of Gst-nvinferserver (Triton); only "
     "Gst-nvinfer's, with [property], can be imported"),
    (r"^Input Tensor Configuration\s*:|^Converted Graph\s*:", "types and layouts of tensors "
     "for Qualcomm's qairt-converter, the model card's input, and no resize, mean or std: "
     "extend qnn_int8 or qnn_fp16 and write what the application does"),
    (r"^kitti_config\s*\{|^gen_trt_engine\s*:", "a spec of NVIDIA TAO without preprocessing; "
     "import that of its evaluation or inference"),
    (r"\"(activation|param)_encodings\"\s*:", "encodings of single tensors (AIMET, QNN's "
     "--quantization_overrides), which no profile has; extend qnn_int8, or give the quantized ONNX "
     "file as the model"),
)  # fmt: skip
"""Files that are known and cannot be imported, with what to give instead."""


def convert(
    path: Path,
    format: str | Importer | None = None,
    name: str | None = None,
    base: str | None = None,
    entry: int | None = None,
) -> str:
    """Convert another tool's configuration to a profile.

    Args:
        path: the file.
        format: an importer, or its name; None finds the one that recognises the file.
        name: the name of the profile; None makes it from the file's name.
        base: the profile to extend, a path or a built-in name; None uses the importer's own.
        entry: selects one of several stacks of the file, from 1; see :func:`entries`.

    Returns:
        A YAML document that loads and can run, with the origin of each value as a comment.

    Raises:
        ProfileError: one line for everything that a profile cannot express.
        UserError: there is no such importer.
    """
    file = ConfigFile(path)
    importer = IMPORTERS[format] if isinstance(format, str) else format or importer_of(file)
    base = base or importer.base
    draft = Draft(load(base), importer.tool)
    stack = _stack(path, importer.stacks(file), entry)
    importer.read(file, draft, stack)
    if draft.problems:
        raise ProfileError(draft.problems)
    title = name or _NAME.sub("_", draft.name or stem(path)).strip("_") or "imported"
    written = draft.render(title, path.name, _extends(base))
    _prove(path, written)
    return written


def entries(path: Path, format: str | None = None) -> list[str]:
    """Name the stacks of a file, in the order of *entry* of :func:`convert`, from 1.

    Raises:
        ProfileError: the file cannot be read, or its format is unknown.
        UserError: there is no such importer.
    """
    file = ConfigFile(path)
    return (IMPORTERS[format] if format else importer_of(file)).stacks(file)


def stem(path: Path) -> str:
    """Return a file's name without its suffix, or its folder's where every such file has one."""
    common = {stem for importer in IMPORTERS for stem in importer.stems}
    return path.resolve().parent.name if path.stem in common else path.stem


def importer_of(file: ConfigFile) -> Importer:
    """Return the importer that recognises a file.

    Raises:
        ProfileError: none does, or more than one.
    """
    found: list[Importer] = []
    problems: list[str] = []
    for importer in IMPORTERS:
        try:
            found += [importer] if importer.recognises(file) else []
        except ProfileError as error:
            problems += error.problems
    if len(found) > 1:
        names = " or ".join(importer.name for importer in found)
        problems = [f"{file.path}: this may be {names}; say which with --format"]
    elif not found and not problems:
        problems = [f"{file.path}: {_unknown(file.text)}"]
    if len(found) != 1:
        raise ProfileError(list(dict.fromkeys(problems)))
    return found[0]


def _unknown(text: str) -> str:
    for mark, why in _NOT_THESE:
        if re.search(mark, text, re.MULTILINE):
            return why
    known = "; ".join(f"{importer.name} ({importer.about})" for importer in IMPORTERS)
    return f"unknown format; these can be imported: {known}"


def _stack(path: Path, stacks: list[str], entry: int | None) -> int:
    """Return the place of the stack that was asked for, from 0."""
    count = f"{len(stacks)} {'stack' if len(stacks) == 1 else 'stacks'}"
    if entry is None and len(stacks) > 1:
        told = "; ".join(f"--entry {n}: {label}" for n, label in enumerate(stacks, 1))
        raise ProfileError([f"{path}: the file has {count}; give one, or --all: {told}"])
    if entry is not None and stacks and not 1 <= entry <= len(stacks):
        raise ProfileError([f"{path}: entry {entry}: the file has {count}"])
    return (entry or 1) - 1


def _extends(base: str) -> str:
    """Return the value of ``extends``: a name, or an absolute path that works from any folder."""
    place = find(base)
    return name_of(place) or str(place.resolve())


def _prove(path: Path, written: str) -> None:
    """Load the document and find its implementations, as ``simulate profiles check`` does.

    Raises:
        ProfileError: the profile cannot run.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "imported.yaml"
        file.write_text(written, encoding="utf-8")
        try:
            profile = load(str(file))
            problems = axes.claims_problem(profile, choose(profile))
        except ProfileError as error:
            problems = list(error.problems)
    if problems:
        prefix = f"{path}: as a profile"
        raise ProfileError([line.replace(str(file), prefix) for line in problems])
