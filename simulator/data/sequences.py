"""Boxes in the frames of one sequence, as trackers have them: KITTI, MOTChallenge, COCO-VID.

Source:
    A. Geiger et al., KITTI tracking development kit, ``readme.txt`` ("Data Format Description").
    P. Dendorfer et al., MOTChallenge, https://motchallenge.net/instructions (file format), and
    A. Milan et al., MOT16, arXiv 1603.00831, table 6 (classes).
    MMTracking, ``tools/convert_datasets``: CocoVID, COCO's JSON with ``videos``, and ``video_id``
    and ``frame_id`` of each image.
"""

from __future__ import annotations

import configparser
import posixpath
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from simulator.data.address import Root
from simulator.data.annotated import Object, is_number, make_boxes, map_classes, track_number
from simulator.data.coco import Entry, boxes_of, checked_coco, entries_of, read_document
from simulator.data.folder import Dataset, Files, Film, Item
from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples
from simulator.data.labels import Labels, as_index, numbered_lines, read_text
from simulator.data.tally import Tally, some
from simulator.data.truth import Boxes
from simulator.errors import DataError

UNJUDGED = "DontCare"
"""KITTI's word for a region where nothing is counted; MOTChallenge's flag 0 says the same."""
_MOT = (
    "Pedestrian", "Person on vehicle", "Car", "Bicycle", "Motorbike", "Non motorized vehicle",
    "Static person", "Distractor", "Occluder", "Occluder on the ground", "Occluder full",
    "Reflection", "Crowd",
)  # fmt: skip
"""MOTChallenge's classes 1 to 13."""
_MOT15 = 10
"""Fields of a line of MOT15, whose objects are all pedestrians; the last three are a position."""
MOST_RATE = 1000
"""Frames a second."""
Frames = Mapping[int, tuple[str, Boxes]]
"""The name and the truth of each frame, by its number in the sequence."""


class SequenceSpec(DataSpec):
    """The card of one sequence.

    Attributes:
        images: the folder of its frames.
        annotations: the file.
        rate: frames a second.
    """

    images: str
    annotations: str
    rate: Annotated[float, Field(gt=0, le=MOST_RATE)] | None = None


class LinesSpec(SequenceSpec):
    """The card of a file with a line an object.

    Attributes:
        classes: the model's class for one of the file; None: where it is, nothing is counted.
    """

    classes: dict[str, str | None] = Field(default_factory=dict)


class VidSpec(SequenceSpec):
    """The card of sequences of COCO-VID; ``video`` is the name of one, where not all are meant."""

    video: str | None = None


class FrameLabels(LabelKind):
    """Labels of the frames of one sequence, in a file."""

    Spec: ClassVar[type[DataSpec]] = SequenceSpec
    files = "images"
    none = "annotations: annotates no image of"
    usual: ClassVar[float | None] = None
    """Frames a second where the card does not say it."""

    @abstractmethod
    def sequences(self, samples: Samples, card: DataCard, labels: Labels | None) -> list[Frames]:
        """Return the frames that are there, by sequence; see :meth:`LabelKind.truths`."""

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, Boxes]:
        """Return the truths by the names of the frames."""
        every = self.sequences(samples, card, labels)
        return {name: truth for frames in every for name, truth in frames.values()}

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the frames in their order.

        Raises:
            DataError: there are none, one is missing between them, or names sort otherwise.
        """
        found, tally = self.samples(card, files), Tally()
        paths = {item.name: item.path for item in found.items}
        samples = Samples(found.root, paths, frozenset(paths), tally)
        every = [frames for frames in self.sequences(samples, card, labels) if frames]
        if not every:
            raise DataError(f"{card.path}: {self.none} {found.root}")
        items, films = list[Item](), list[Film]()
        for frames in every:
            named, film = self._film(frames, card)
            films.append(film)
            items += (Item(name, paths[name], truth) for name, truth in named)
        unknown = [item.name for item in items if item.truth.tracks is None]
        for name in unknown if len(unknown) < len(items) else ():
            tally.add("took", "frame", "with an object of no known track, so that none of the "
                      "annotated tracks is compared", name)  # fmt: skip
        notes = (*found.notes, *tally.notes())
        return replace(found, items=tuple(items), notes=notes, films=tuple(films))

    def _film(self, frames: Frames, card: DataCard) -> tuple[list[tuple[str, Boxes]], Film]:
        """Check the frames of one sequence, and put them in order."""
        numbers = sorted(frames)
        steps = {after - before for before, after in pairwise(numbers)}
        if len(steps) > 1:
            raise DataError(
                f"{card.path}: images: frames are {some(map(str, sorted(steps)))} apart; those of "
                "a sequence are equally far apart"
            )
        named = [frames[number] for number in numbers]
        for (before, _), (after, _) in pairwise(named):
            if before > after:
                raise DataError(
                    f"{card.path}: images: {before} is shown before {after}; names must sort in "
                    "the order of the frames: write numbers with leading zeros"
                )
        for name, truth in named:
            own = np.array([]) if truth.tracks is None else truth.tracks[~truth.crowd]
            if len(np.unique(own)) < len(own):
                raise DataError(f"{card.path}: annotations: {name} has two boxes of one track")
        spec: Any = card.spec
        rate = spec.rate or self.rate(card)
        return named, Film(len(named), rate and rate / max(steps, default=1))

    def rate(self, card: DataCard) -> float | None:
        """Return how many frames a second has where the card does not say it."""
        return self.usual


class Lines(FrameLabels):
    """A line for each object of a frame, whose image has the number of the frame as its name."""

    Spec = LinesSpec

    @abstractmethod
    def parsed(self, fields: Sequence[str]) -> tuple[int, Object]:
        """Return the frame and the object of a line's fields.

        Raises:
            ValueError: they are no object.
        """

    @abstractmethod
    def fields(self, line: str) -> Sequence[str]:
        """Return the fields of a line."""

    def sequences(self, samples: Samples, card: DataCard, labels: Labels | None) -> list[Frames]:
        """Return every image whose name is a number; without a line it has no object."""
        place = card.place("annotations")
        named: dict[int, list[Object]] = {}
        for number, line in numbered_lines(place):
            try:
                frame, one = self.parsed(self.fields(line))
            except (ValueError, IndexError) as error:
                raise DataError(f"{place}:{number}: {line.strip()!r:.80}: {error}") from error
            named.setdefault(frame, []).append(one)
        numbers = {name: as_index(_stem(name)) for name in sorted(samples.chosen)}
        for name in (name for name, number in numbers.items() if number is None):
            samples.tally.add("left out", "image", "whose name is no number", name)
        there: dict[int, str] = {}
        for name, at in numbers.items():
            if at is not None and there.setdefault(at, name) != name:
                both = f"{there[at]} and {name} are both frame {at}"
                raise DataError(f"{card.path}: images: {both}; name the folder of one sequence")
        for frame in sorted(named.keys() - there.keys()):
            samples.tally.add("left out", "frame", "without an image", str(frame))
        kept = {number: named.get(number, []) for number in there}
        judged, classes = _classes(kept.values(), card, labels, f"{place}")
        return [{
            number: (name, _boxes(kept[number], judged, classes, name, samples.tally))
            for number, name in there.items()
        }]  # fmt: skip


class Kitti(Lines):
    """KITTI's tracking labels: ``label_02/0000.txt`` beside ``image_02/0000/000000.png``."""

    usual = 10.0

    def fields(self, line: str) -> Sequence[str]:
        """Return what blanks part."""
        return line.split()

    def parsed(self, fields: Sequence[str]) -> tuple[int, Object]:
        """Return frame and object of: frame, track, type, truncated, occluded, alpha, box, …."""
        if len(fields) < 10:
            raise ValueError("frame, track, type, truncated, occluded, alpha, box expected")
        left, top, right, bottom = _numbers(fields[6:10])
        box = left, top, right - left, bottom - top
        return int(fields[0]), Object(*box, fields[2], track=_track(fields[1]))


class Mot(Lines):
    """MOTChallenge's ``gt/gt.txt`` beside ``img1/000001.jpg``; pixels are counted from 1."""

    def fields(self, line: str) -> Sequence[str]:
        """Return what commas part."""
        return line.split(",")

    def parsed(self, fields: Sequence[str]) -> tuple[int, Object]:
        """Return frame and object of: frame, track, box, whether it is judged, class, …."""
        if len(fields) < 7:
            raise ValueError("frame, track, left, top, width, height, flag, class expected")
        left, top, width, height, judged = _numbers(fields[2:7])
        label = _mot_class(fields[7]) if 7 < len(fields) < _MOT15 else _MOT[0]
        return int(fields[0]), Object(
            left - 1, top - 1, width, height, label if judged else UNJUDGED, track=_track(fields[1])
        )

    def rate(self, card: DataCard) -> float | None:
        """Return the ``frameRate`` of ``seqinfo.ini`` beside ``gt``, where it is there."""
        parser, root = configparser.ConfigParser(), card.file("annotations")
        try:
            parser.read_string(read_text(root.parent.parent / "seqinfo.ini"))
            rate = parser.getfloat("Sequence", "frameRate")
        except (DataError, ValueError, configparser.Error):
            return None
        return rate if 0 < rate <= MOST_RATE else None


class CocoVid(FrameLabels):
    """COCO's JSON with ``videos``: the images of one of them, by ``frame_id``."""

    Spec = VidSpec

    def sequences(self, samples: Samples, card: DataCard, labels: Labels | None) -> list[Frames]:
        """Return the images of each video, or of the one that the card names."""
        path, spec = card.file("annotations"), card.spec
        root = read_document(path)
        videos = entries_of(path, root, "videos")
        names = [_key(one.get("name")) for one in videos]
        if not names:
            raise DataError(f"{path}: videos: at least one expected")
        assert isinstance(spec, VidSpec)
        asked = spec.video
        if asked is not None and asked not in names:
            raise DataError(
                f"{card.path}: video: one of {some(map(str, names))} expected, got {asked}"
            )
        if names.count(asked) > 1:
            raise DataError(f"{path}: videos: {names.count(asked)} are called {asked}; rename one")
        taken = [one.get("id") for one in videos if asked is None or one.get("name") == asked]
        return [self._frames(samples, path, root, video, labels) for video in taken]

    def _frames(
        self, samples: Samples, path: Root, root: Entry, video: Any, labels: Labels | None
    ) -> Frames:
        """Return the images of a video that are there."""
        every = entries_of(path, root, "images")
        pictures = [one for one in every if one.get("video_id") == video]
        numbers = {_key(one.get("file_name")): one.get("frame_id") for one in pictures}
        own = {_key(one.get("id")) for one in pictures}
        every = entries_of(path, root, "annotations")
        objects = [one for one in every if _key(one.get("image_id")) in own]
        part = replace(samples, chosen=samples.chosen & numbers.keys())
        coco = checked_coco(part, path, {**root, "images": pictures, "annotations": objects})
        classes, found = coco.classes(labels), dict[int, tuple[str, Boxes]]()
        for picture, group in coco.annotated(samples.tally):
            number = numbers[picture.name]
            if not isinstance(number, int) or number in found:
                raise DataError(f"{path}: {picture.name}: frame_id: a number of its own expected")
            truth = boxes_of(coco, picture, group, classes, samples.tally)
            found[number] = picture.name, truth
        return found


def _classes(
    every: Iterable[list[Object]], card: DataCard, labels: Labels | None, where: str
) -> tuple[Mapping[Any, str | None], dict[str, int]]:
    """The model's name of each class of the file, None where nothing is counted; their indices."""
    spec: Any = card.spec
    given: Mapping[Any, str | None] = {UNJUDGED: None, **spec.classes}
    used = {one.label for objects in every for one in objects}
    judged = {label: given.get(label, str(label)) for label in sorted(used, key=str)}
    names = [name for name in judged.values() if name is not None]
    try:
        return judged, map_classes(names, None, labels, where)
    except DataError as error:
        told = "`classes: {NAME: the model's, OTHER: null}` in the data card says what they are"
        raise DataError(f"{error}; {told}") from error


def _boxes(
    objects: Sequence[Object],
    judged: Mapping[Any, str | None],
    classes: Mapping[str, int],
    name: str,
    tally: Tally,
) -> Boxes:
    """The truth of a frame: what is not judged is a crowd of every class."""
    known = [
        one._replace(label=label, crowd=judged[one.label] is None)
        for one in objects
        for label in ([judged[one.label]] if judged[one.label] else list(classes))
        if label is not None
    ]
    return make_boxes(known, classes, float("inf"), float("inf"), name, tally)


def _mot_class(field: str) -> str:
    (number,) = _numbers([field])
    if number not in range(1, len(_MOT) + 1):
        raise ValueError(f"a class of 1 to {len(_MOT)} expected, got {number:g}")
    return _MOT[int(number) - 1]


def _track(field: str) -> int | None:
    with suppress(ValueError):
        return track_number(float(field))
    return None


def _key(value: Any) -> Any:
    """A name or an id of a document; None for what is neither."""
    return value if isinstance(value, (int, str)) else None


def _numbers(fields: Sequence[str]) -> list[float]:
    values = [float(field) for field in fields]
    if not all(is_number(value) for value in values):
        raise ValueError("finite numbers expected")
    return values


def _stem(name: str) -> str:
    return posixpath.splitext(posixpath.basename(name))[0]


KITTI, MOT, COCO_VID = Kitti(), Mot(), CocoVid()
