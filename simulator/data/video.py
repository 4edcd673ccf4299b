"""Frames of videos as samples, without truth, each known by the time at which it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from simulator import cache, registry
from simulator.contract import Backend, Stage, png
from simulator.contract.video import KEPT, VIDEOS, VideoReader
from simulator.data.address import Root
from simulator.data.folder import Dataset, Files, Film, Item
from simulator.data.format import DataCard, DataSpec
from simulator.data.labels import Labels
from simulator.data.source import Given, Source
from simulator.data.tally import counted
from simulator.errors import DataError, SampleError, reading
from simulator.files import hash_file
from simulator.places import ByteSource, Moment, too_large


@dataclass(frozen=True, slots=True)
class ClipFrame(ByteSource):
    """One frame of a clip: a PNG of it, as the engine's own reader decodes it.

    Attributes:
        moment: which one.
        damage: why there is none.
    """

    moment: Moment
    damage: str | None = None

    @property
    def name(self) -> str:
        """That of the clip, and the frame's time."""
        return f"{Path(self.moment.clip).name}@{self.moment.time:.3f}s"

    @property
    def suffix(self) -> str:
        """That of a PNG."""
        return ".png"

    def read(self, most: int) -> bytes:
        """Return a PNG that is not compressed."""
        if self.damage is not None:
            raise OSError(self.damage)
        try:
            data = png.written(_reader().shown(self.moment), compression=0)
        except SampleError as error:
            raise OSError(str(error)) from error
        if len(data) > most:
            raise too_large(self, len(data), most)
        return data

    def state(self) -> tuple[int, ...]:
        """Return those of the clip."""
        with reading(Path(self.moment.clip)):
            found = Path(self.moment.clip).stat()
        return found.st_mtime_ns, found.st_size

    def __str__(self) -> str:
        return f"{self.moment.clip} at {self.moment.seen:.3f} s"


class Shown(NamedTuple):
    """When a frame is shown, in seconds from the start of its clip; sorted by clips."""

    clip: str
    time: float


def shown_at(dataset: Dataset) -> dict[str, Shown]:
    """Return when each frame of clips, or of sequences whose rate is known, is shown.

    Returns:
        By the names of the samples; empty where they are no such frames.
    """
    found = {
        item.name: Shown(Path(item.path.moment.clip).name, item.path.moment.time)
        for item in dataset.items
        if isinstance(item.path, ClipFrame)
    }
    if found:
        return found
    for film, items in dataset.frames():
        if film.rate is None:
            return {}
        clip = items[0].name
        found |= {item.name: Shown(clip, at / film.rate) for at, item in enumerate(items)}
    return found


def _backend() -> Backend:
    backend = next(registry.serving(Stage.VIDEO))
    registry.check_installed(backend, "frames of videos need")
    return backend


@once
def _reader() -> VideoReader:
    make: Any = _backend().of(Stage.VIDEO)[0].make
    reader: VideoReader = make(make.reference)
    return reader


class VideoSpec(DataSpec):
    """The card of some frames of a video."""

    video: str
    first: int = Field(default=0, ge=0)
    last: int | None = Field(default=None, ge=0)
    step: int = Field(default=1, ge=1)
    start: float = Field(default=0, ge=0)
    end: float | None = Field(default=None, ge=0)
    every: float | None = Field(default=None, gt=0)
    rate: float | None = Field(default=None, gt=0, le=1000)

    def chosen(self, times: Sequence[float]) -> list[int]:
        """Return which frames are taken, by their number, from when all are shown."""
        last = len(times) - 1 if self.last is None else min(self.last, len(times) - 1)
        end = np.inf if self.end is None else self.end
        found, due = [], self.start
        for number in range(self.first, last + 1, self.step):
            if due - 1e-6 <= times[number] <= end + 1e-6:
                found.append(number)
                while self.every and due <= times[number] + 1e-6:
                    due += self.every
        return found


class Video(Source):
    """Frames of videos, which nobody has annotated."""

    annotated: ClassVar[bool] = False
    Spec: ClassVar[type[DataSpec]] = VideoSpec

    def takes(self, given: Given) -> bool:
        """Whether this is the path of a video, or a folder with videos and no images."""
        if not isinstance(given.root, Path):
            return False
        inside = given.endings
        clips = inside & {*VIDEOS} and not inside & {*given.files.suffixes}
        return bool(clips) or given.ends_with(*VIDEOS)

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find when frames are shown: all, or those that a card asks for.

        A clip that is damaged gives its frames so far, and one more sample, which fails.

        Returns:
            The frames in the order in which they are shown, ``clip.mp4#000123@4.920s`` by their
            number and time.

        Raises:
            DataError: none can be decoded, there is no such frame, or the model takes no images.
            MissingLibrary: no library that decodes videos is installed.
        """
        path, asked = Path(root), spec or VideoSpec.model_construct(video="")  # type: ignore[call-arg]
        if ".png" not in files.suffixes:
            raise DataError(f"{path}: is a video, and the model takes {files.noun}s")
        clips = [path]
        if path.is_dir():
            with reading(path):
                clips = sorted(one for one in path.iterdir() if one.suffix.lower() in VIDEOS)
        found = [_Listed.of(clip) for clip in clips]
        for one in found:
            if one.damage and not one.times and len(found) == 1:
                raise DataError(one.damage)
        each = [tuple(one.items(asked)) for one in found]
        items = tuple(item for frames in each for item in frames)
        cuts = [cut for one in found if (cut := one.cut(asked))]
        if len(items) == len(cuts):
            raise DataError(_none(path, asked, found))
        frames = counted(len(items) - len(cuts), "frame")
        declared = " or ".join(dict.fromkeys(one.declared for one in found if one.declared))
        notes = [
            f"{frames} of {path.name}{f', declared {declared}' if declared else ''}; stacks "
            f"without a section video get them as PNG files that {_backend().name} decoded"
        ]
        notes += [f"damaged, and counted as failed: {cut}" for cut in cuts]
        notes += [uneven for one in found if (uneven := one.uneven(asked))]
        rates = [asked.rate or one.rate for one in found]
        films = [Film(len(frames), rate and rate / asked.step)
                 for frames, rate in zip(each, rates, strict=True) if frames]  # fmt: skip
        whole = asked.every is None and not cuts
        return Dataset(path, items, tuple(notes), tuple(films) if whole else ())

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Take the frames that the card names."""
        path = card.file("video")
        if path.suffix.lower() not in VIDEOS:
            raise DataError(f"{card.path}: video: {path} is none of {', '.join(VIDEOS)}")
        return self.open(path, files, card.spec)


@dataclass(frozen=True)
class _Listed:
    """A clip: when its frames are shown and how often, what ends it too early, and its color."""

    path: Path
    times: list[float]
    rate: float | None
    damage: str | None
    declared: str | None

    @classmethod
    def of(cls, path: Path) -> _Listed:
        """Decode a clip once to know its times; they are kept in the cache."""
        backend = _backend()
        with reading(path):
            digest = hash_file(path)
        versions = [f"{library.version}" for library in backend.libraries]

        def write(folder: Path) -> None:
            times: list[float] = []
            damage = None
            try:
                times.extend(_reader().times(path))
            except DataError as error:
                damage = str(error).removeprefix(f"{path}: ")
            found = {"times": times, "rate": _reader().rate(path), "damage": damage,
                     "declared": _reader().declares(path)}  # fmt: skip
            (folder / "times.json").write_text(json.dumps(found))

        place = cache.entry(f"clips/{'-'.join([digest[:32], *versions])}", write)
        found = json.loads((place / "times.json").read_text())
        if found["damage"]:  # the entry may be of another file with these bytes
            found["damage"] = f"{path}: {found['damage']}"
        return cls(path, **found)

    def items(self, asked: VideoSpec) -> Iterator[Item]:
        """Yield the frames that are asked for, and what ends the clip too early."""
        clip = str(self.path.absolute())
        for n in asked.chosen(self.times):
            time = self.times[n]
            before = tuple(reversed(self.times[max(0, n - KEPT + 1) : n]))
            name = f"{self.path.name}#{n:06d}@{time:.3f}s"
            yield Item(name, ClipFrame(Moment(clip, time, before)), None)
        if cut := self.cut(asked):
            broken = ClipFrame(Moment(clip, self.times[-1] if self.times else 0), cut)
            yield Item(f"{self.path.name}#damaged", broken, None)

    def cut(self, asked: VideoSpec) -> str | None:
        """Return what ends the clip before all is read that is asked for."""
        last, end = asked.last, asked.end
        enough = last is not None and last < len(self.times)
        enough |= end is not None and bool(self.times) and end <= self.times[-1]
        return None if enough else self.damage

    def uneven(self, asked: VideoSpec) -> str | None:
        """Say that frames are not equally far apart, which what follows them takes them to be."""
        gaps = np.diff([self.times[n] for n in asked.chosen(self.times)])
        usual = float(np.median(gaps)) if len(gaps) else 0.0
        if asked.every or not np.any(np.abs(gaps - usual) > usual / 2):
            return None
        return (
            f"frames of {self.path.name} are {gaps.min():.3f} to {gaps.max():.3f} s apart; tracks "
            "and persistence count frames"
        )


def _none(path: Path, asked: VideoSpec, found: Sequence[_Listed]) -> str:
    """Say why there is no frame."""
    total = sum(len(one.times) for one in found)
    if not total:
        why = "; ".join(one.damage for one in found if one.damage)
        return why or f"{path}: is a video without frames"
    if asked.last is not None and asked.last < asked.first:
        return f"{path}: no frame is between first: {asked.first} and last: {asked.last}"
    ends = f"{counted(total, 'frame')}, the last at {found[-1].times[-1]:.3f} s"
    return f"{path}: has {ends}: the first to take is {asked.first}, from {asked.start:g} s on"


VIDEO = Video()
