"""Samples that a program in Python has in hand, as a folder of files in the user's cache."""

from __future__ import annotations

import csv
import functools
import json
import operator
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator import cache, registry
from simulator.contract import ImageWriter, Stage
from simulator.contract.image_formats import format_of
from simulator.data.address import Root, safe
from simulator.data.folder import Dataset, Files
from simulator.data.labels import Labels
from simulator.data.source import Given
from simulator.data.tables import Folder
from simulator.errors import DataError
from simulator.files import TEXT, read_file
from simulator.profile.implementations import implementation

MARK, TABLE = "in_memory.json", "labels.csv"
"""The files of such a folder that are no samples."""
_CLASSES = (
    "a label is a class, by its index or its name; for boxes, masks and texts write a data card "
    "(docs/data.md)"
)


@dataclass(frozen=True, slots=True)
class _Sample:
    """One sample as it was given: *where* is what messages call it."""

    where: str
    name: str | None
    content: Any
    label: Any = None


def written(samples: Any) -> Path:
    """Write samples to the cache, in a folder that is named after their content.

    Args:
        samples: a list, a data set (``len`` and indices), or a dictionary by names. Each is an
            image, ``(image, label)``, ``(name, image, label)``, or a dictionary of ``image`` and
            ``label``. An image is (H, W, 3) or (H, W) uint8, a PIL image (RGB or L), the bytes of a
            file, or a path. A label is the index of a class, or its name.

    Raises:
        DataError: one of them is something else, or some have a label and others none.
        RunError: the cache cannot be written.
    """
    return cache.by_content("data", lambda folder: _write(_each(samples), folder))


def _each(samples: Any) -> Iterator[_Sample]:
    """The samples one after another; a data set of PyTorch is read once."""
    if isinstance(samples, Mapping):
        for name, one in samples.items():
            given = one if isinstance(one, tuple) else (one,)
            if len(given) > 2:
                raise DataError(f"data[{name!r}]: an image, or (image, label) expected")
            yield _Sample(f"data[{name!r}]", str(name), *given)
        return
    one_alone = isinstance(samples, bytes) or hasattr(samples, "convert")
    if one_alone or getattr(samples, "ndim", 4) == 3:
        samples = [samples]
    if not (isinstance(samples, Iterable) or hasattr(samples, "__getitem__")):
        raise DataError(f"data: a list of images expected, got {_type(samples)}")
    last = len(samples) - 1 if hasattr(samples, "__len__") else 999_999
    for number, one in enumerate(_in_order(samples)):
        where = f"data[{number}]"
        given = one if isinstance(one, tuple) else (one,)
        if isinstance(one, Mapping) and "image" in one:  # of Hugging Face's data sets
            given = one["image"], one.get("label")
        if len(given) == 3:
            yield _Sample(where, str(given[0]), *given[1:])
        elif len(given) in (1, 2):
            named = isinstance(given[0], str | os.PathLike)
            digits = len(str(max(last, 999)))
            name = Path(given[0]).name if named else f"{number:0{digits}}"
            yield _Sample(where, name, *given)
        else:
            raise DataError(
                f"{where}: an image, (image, label) or (name, image, label) expected, got "
                f"{len(given)} values"
            )


def _in_order(samples: Any) -> Iterator[Any]:
    """The items of an iterable; of a data set of PyTorch those of its indices."""
    if hasattr(samples, "__len__") and hasattr(samples, "__getitem__"):
        return (samples[number] for number in range(len(samples)))
    return iter(samples)


def _write(samples: Iterable[_Sample], folder: Path) -> None:
    labels: list[tuple[str, str]] = []
    names: dict[str, str] = {}
    pixels = 0
    for sample in samples:
        data, suffix = _file(sample)
        pixels += isinstance(data, np.ndarray)
        name = safe(sample.name or "", sample.where)
        if not name.lower().endswith(suffix):
            name += suffix
        if name in names:
            raise DataError(
                f"{sample.where}: {name} is the name of {names[name]} too; give "
                "(name, image, label) with a name of its own"
            )
        names[name] = sample.where
        _put(data, folder / name, sample.where)
        if sample.label is not None:
            labels.append((name, _label(sample)))
    count = len(names)
    if not count:
        raise DataError("data: an empty list; give one image at least")
    if 0 < len(labels) < count:
        raise DataError(f"data: {len(labels)} of {count} images have a label; give all or none")
    if labels:
        with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("file", "label"), *labels])
    text = json.dumps({"decoded": pixels, "of": count})
    (folder / MARK).write_text(text, encoding="utf-8")


def decoded(folder: Path) -> bool:
    """Whether all images of such a folder were given as pixels."""
    found = _mark(folder)
    return found["decoded"] == found["of"]


def _mark(folder: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(read_file(folder / MARK, TEXT))
    return found


def _file(sample: _Sample) -> tuple[Any, str]:
    """What becomes a file, pixels, bytes or a path, and the end of the file's name."""
    content, where = sample.content, sample.where
    if isinstance(content, bytes):
        found = format_of(content)
        if found is None and content[:4] != b"RIFF":
            raise DataError(f"{where}: bytes that are no image of a known format and no WAV file")
        return content, found.suffixes[0] if found else ".wav"
    if isinstance(content, str | os.PathLike):
        path = Path(content)
        if not os.path.isfile(path):
            raise DataError(f"{where}: there is no file {path}")
        return path, path.suffix.lower()
    if hasattr(content, "convert") and hasattr(content, "mode"):
        if content.mode not in ("RGB", "L"):
            raise DataError(
                f"{where}: a PIL image of mode {content.mode}; give image.convert('RGB')"
            )
    elif not hasattr(content, "__array__"):
        raise DataError(
            f"{where}: {_type(content)} is no image; give (H, W, 3) uint8, a PIL image, the bytes "
            "of a file, or a path"
        )
    pixels = np.asarray(content)
    what = f"{where}: {pixels.dtype} {pixels.shape}"
    if pixels.dtype != np.uint8:
        raise DataError(
            f"{what}: an image is uint8, 0 to 255, as it was decoded; give the pixels from before "
            "scaling and normalization, which are what the stacks differ in"
        )
    if not pixels.size or not (pixels.ndim == 2 or pixels.shape[2:] == (3,)):
        raise DataError(f"{what}: (height, width, 3) in the order red, green, blue expected")
    return pixels, ".png"


def _put(data: Any, place: Path, where: str) -> None:
    """Write one file."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, Path):
            shutil.copyfile(data, place)
        else:
            place.write_bytes(data if isinstance(data, bytes) else _writer().png(data))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{where}: {place.name!r} cannot be written: {why}") from error


@functools.cache
def _writer() -> ImageWriter:
    choice = implementation(Stage.WRITE, registry.reference(Stage.WRITE), {})
    choice.require()
    made: ImageWriter = choice.make()
    return made


def _label(sample: _Sample) -> str:
    """A class as a table of labels has it."""
    label = sample.label
    if isinstance(label, str):
        return label
    try:
        index = operator.index(label)
    except TypeError:
        raise DataError(f"{sample.where}: the label is {_type(label)}; {_CLASSES}") from None
    if index < 0 or isinstance(label, bool):
        raise DataError(f"{sample.where}: the label is {label!r}; {_CLASSES}")
    return str(index)


def _type(value: object) -> str:
    """The type of an object, for messages."""
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")


class InMemory(Folder):
    """A folder that :func:`written` has made."""

    def takes(self, given: Given) -> bool:
        """Whether the folder has the mark."""
        return isinstance(given.root, Path) and (given.root / MARK).is_file()

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find the samples, and what is to be said of them."""
        return _noted(super().open(root, files, spec), files)

    def load_classes(self, root: Root, files: Files, labels: Labels | None) -> Dataset:
        """Find the samples and their classes, by the table of the folder where there is one."""
        assert isinstance(root, Path)
        if not (root / TABLE).is_file():
            return self.open(root, files)
        return _noted(super().load_classes(root, files, labels), files)


def _noted(dataset: Dataset, files: Files) -> Dataset:
    """A data set with the notes of its folder.

    Raises:
        DataError: some of its files are no samples.
    """
    assert isinstance(dataset.root, Path)
    found = _mark(dataset.root)
    if odd := found["of"] - len(dataset.items):
        raise DataError(
            f"data: {odd} of {found['of']} are no {files.noun}; {files.listed} expected"
        )
    if not found["decoded"]:
        return replace(dataset, notes=())
    which = "all" if found["decoded"] == found["of"] else f"{found['decoded']} of {found['of']}"
    words = (
        f"decoded by you: {which} images were given as pixels and are lossless PNG files here, so "
        "decoders are not compared"
    )
    return replace(dataset, notes=(words,))


IN_MEMORY = InMemory()
