"""Frames of a video as samples, without truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from simulator import cache, registry
from simulator.contract import Backend, Stage
from simulator.contract.video import VIDEOS, VideoReader
from simulator.data.address import Root
from simulator.data.folder import Dataset, Files, Item
from simulator.data.format import DataCard, DataSpec
from simulator.data.labels import Labels
from simulator.data.source import Given, Source
from simulator.data.tally import counted
from simulator.errors import DataError, reading
from simulator.files import hash_file


def _write(path: Path, wanted: range, source: Backend, writing: Backend, folder: Path) -> None:
    reader: VideoReader = source.of(Stage.VIDEO)[0].make({})
    writer: Any = writing.of(Stage.WRITE)[0].make({})
    total = taken = 0
    for frame in reader.frames(path, wanted):
        total += 1
        if frame.rgb is not None:
            taken += 1
            (folder / f"{frame.index:06d}.png").write_bytes(writer.png(frame.rgb))
    if not taken:
        has = f"has {counted(total, 'frame')}, and the first to take is {wanted.start}"
        raise DataError(f"{path}: {has if total else 'is a video without frames'}")


def _backend(stage: str) -> Backend:
    backend = next(registry.serving(stage))
    registry.check_installed(backend, "frames of videos need")
    return backend


class VideoSpec(DataSpec):
    """The card of some frames of a video."""

    video: str
    first: int = Field(default=0, ge=0)
    last: int | None = Field(default=None, ge=0)
    step: int = Field(default=1, ge=1)
    rate: float | None = Field(default=None, gt=0, le=1000)


class Video(Source):
    """Frames of a video, which nobody has annotated."""

    annotated: ClassVar[bool] = False
    Spec: ClassVar[type[DataSpec]] = VideoSpec

    def takes(self, given: Given) -> bool:
        """Whether this is the path of a video, by its name."""
        return isinstance(given.root, Path) and given.ends_with(*VIDEOS)

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Decode frames into PNG files in the cache: all, or those that a card asks for.

        Returns:
            The frames in the order in which they are shown, ``clip.mp4#000123`` by their index.

        Raises:
            DataError: it cannot be decoded, has no such frames, or the model takes no images.
            MissingLibrary: no library that decodes videos is installed.
        """
        path = Path(root)
        first, last, step = (spec.first, spec.last, spec.step) if spec else (0, None, 1)
        if ".png" not in files.suffixes:
            raise DataError(f"{path}: is a video, and the model takes {files.noun}s")
        wanted = range(first, sys.maxsize if last is None else last + 1, step)
        if not wanted:
            raise DataError(f"{path}: no frame is between first: {first} and last: {last}")
        source, writing = _backend(Stage.VIDEO), _backend(Stage.WRITE)
        with reading(path):
            digest = hash_file(path)
        versions = [f"{library.version}" for b in (source, writing) for library in b.libraries]
        taken = f"{first}-{'end' if last is None else last}-{step}"
        name = f"video/{'-'.join([digest[:32], taken, *versions])}"
        place = cache.entry(name, lambda folder: _write(path, wanted, source, writing, folder))
        pictures = sorted(place.glob("*.png"))
        items = tuple(Item(f"{path.name}#{picture.stem}", picture, None) for picture in pictures)
        how = f"{counted(len(items), 'frame')} of {path.name}, decoded by {source.name}"
        note = f"{how} to RGB; decoders of stacks get them as PNG files"
        reader: VideoReader = source.of(Stage.VIDEO)[0].make({})
        rate = (spec and spec.rate) or reader.rate(path)
        return Dataset(path, items, (note,), film=True, rate=rate and rate / step)

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Decode the frames that the card names."""
        path = card.file("video")
        if path.suffix.lower() not in VIDEOS:
            raise DataError(f"{card.path}: video: {path} is none of {', '.join(VIDEOS)}")
        return self.open(path, files, card.spec)


VIDEO = Video()
