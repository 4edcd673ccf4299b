"""Tracks: each stack's boxes followed through clips, and held against annotated and other tracks.

Each class is followed by itself: a box never goes on with a track of another class.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.tracking import Matchable, Tracker, TrackMetrics
from simulator.data.truth import Boxes
from simulator.statistics.bootstrap import DIFFERENCE, Counts, Floats, Resamples, effect
from simulator.tasks.detection.boxes import Detections, areas, common, detections, overlaps
from simulator.tasks.detection.matching import PAIR
from simulator.tasks.figures import Figures
from simulator.tasks.score import Footage, Shot

RATES = ("hota", "deta", "assa", "mota", "idf1")
EVENTS = ("switches", "fragmentations")
CLIPS = 6
"""Of fewer clips there is no interval: if all agreed, p would be 2 / 2^5 at least."""
RESAMPLES = 1000
MOMENTS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Tracked:
    """The n boxes of a frame that are of a track.

    Attributes:
        numbers: (n,) int64, of the tracks; of two classes they differ.
        boxes: (n, 4) float64 x1, y1, x2, y2.
        classes: (n,) int64.
    """

    numbers: NDArray[np.int64]
    boxes: Floats
    classes: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Tracked:
        """Return some of them, by a mask."""
        return Tracked(self.numbers[rows], self.boxes[rows], self.classes[rows])


Clip = Sequence[Tracked]


def tracking(
    task: Any, tracker: Tracker, metrics: TrackMetrics, footage: Sequence[Footage], seed: int
) -> Figures:
    """Follow both stacks' boxes and compare the tracks, by the frames that both answered.

    Args:
        task: the detection task.
        tracker: follows the boxes.
        metrics: measures tracks.
        footage: the frames of each clip.
        seed: of the resamples of clips.

    Returns:
        The fields of :class:`simulator.results.tracking.Tracking`, without the tracker's name.
    """
    footage = [clip for clip in footage if any(shot.records for shot in clip[0])]
    taken = [[shot for shot in shots if shot.records] for shots, _ in footage]
    threshold = task.output.operating_threshold
    train, deploy = (
        [_of_stack(tracker, *clip, side, threshold) for clip in footage] for side in (0, 1)
    )
    draws = Resamples(len(footage), seed, RESAMPLES)
    whole = np.ones((1, len(footage)), np.int64)
    found: Figures = {
        "clips": len(footage), "frames": sum(map(len, taken)),
        "tracks": {"train": _count(train), "deploy": _count(deploy)},
        **_against_truth(metrics, taken, train, deploy, draws),
    }  # fmt: skip
    between, seen = _measured(metrics, train, deploy, whole), _Between()
    for shots, before, after in zip(taken, train, deploy, strict=True):
        seen.add(shots, before, after, task.network.label)
    found["between"] = {**_plain(between), **seen.tracks}
    found["moments"] = sorted(seen.moments, key=_weight)[:MOMENTS]
    return found


def follow(
    tracker: Tracker, clip: Sequence[Detections], threshold: float, rate: float
) -> list[Tracked]:
    """Follow the boxes of a clip; those of no track are left out."""
    numbers, begun = [np.full(len(frame), -1, np.int64) for frame in clip], 0
    for label in sorted({int(label) for frame in clip for label in frame.classes}):
        of = [frame.classes == label for frame in clip]
        own = [(frame.boxes[mask], frame.scores[mask])
               for frame, mask in zip(clip, of, strict=True)]  # fmt: skip
        found = tracker.follow(own, threshold, rate)
        for every, mask, part in zip(numbers, of, found, strict=True):
            every[mask] = np.where(part < 0, -1, part + begun)
        begun += 1 + max(int(part.max(initial=-1)) for part in found)
    return [
        Tracked(own, frame.boxes, frame.classes).take(own >= 0)
        for own, frame in zip(numbers, clip, strict=True)
    ]


def annotated(truth: Boxes) -> Tracked:
    """Return the annotated objects that are to be found, with the numbers of their tracks."""
    assert truth.tracks is not None
    judged = ~(truth.crowd | truth.difficult)
    return Tracked(truth.tracks, truth.corners, truth.classes).take(judged)


def judged(own: Tracked, truth: Boxes) -> Tracked:
    """Return a frame's boxes without those on what is not judged: crowds, and what is difficult.

    A box is left out that is not paired with an object to be found, where all boxes and all that
    is annotated are paired by IoU, and lies by half or more in what is not judged.

    Source:
        TrackEval, ``MotChallenge2DBox`` and ``Kitti2DBox.get_preprocessed_seq_data``.
    """
    from scipy.optimize import linear_sum_assignment

    ignored = truth.crowd | truth.difficult
    same = own.classes[:, None] == truth.classes[None]
    shares = overlaps(own.boxes, truth.corners) * same
    rows, columns = linear_sum_assignment(np.where(shares >= PAIR, shares, 0), maximize=True)
    held = np.zeros(len(own.numbers), np.bool_)
    held[rows] = (shares[rows, columns] >= PAIR) & ~ignored[columns]
    inside = common(own.boxes, truth.corners) >= 0.5 * areas(own.boxes)[:, None]
    return own.take(held | ~(inside & same & ignored).any(axis=1))


def agreement(reference: Tracked, other: Tracked) -> Floats:
    """Return (n, m) the IoU of boxes of one class; 0 of two classes."""
    same = reference.classes[:, None] == other.classes[None]
    return np.where(same, overlaps(reference.boxes, other.boxes), 0.0)


def pairs(reference: Clip, other: Clip) -> Iterator[dict[int, int]]:
    """Yield for each frame which other track is on which reference track.

    Boxes are paired one to one, by an IoU of at least 0.5 and as much as possible; a pair of the
    frame before goes on.

    Source:
        Bernardin and Stiefelhagen 2008, "Evaluating multiple object tracking performance: the
        CLEAR MOT metrics"; TrackEval, ``CLEAR.eval_sequence``.
    """
    from scipy.optimize import linear_sum_assignment

    last: dict[int, int] = {}
    for one, two in zip(reference, other, strict=True):
        if not len(one.numbers) or not len(two.numbers):
            yield {}
            continue
        shares = agreement(one, two)
        before = np.array([last.get(number, -1) for number in one.numbers.tolist()])
        worth = np.where(shares >= PAIR, shares + 1000 * (before[:, None] == two.numbers), 0)
        rows, columns = linear_sum_assignment(worth, maximize=True)
        valid = shares[rows, columns] >= PAIR
        both = one.numbers[rows[valid]].tolist(), two.numbers[columns[valid]].tolist()
        last = dict(zip(*both, strict=True))
        yield last


@dataclass
class _Between:
    """What differs between two stacks' tracks, clip by clip."""

    tracks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(
        ("lost", "gained", "broken", "joined", "boxes", "paired"), 0))  # fmt: skip
    moments: list[Figures] = field(default_factory=list)

    def add(self, shots: Sequence[Shot], train: Clip, deploy: Clip, label: Any) -> None:
        """Count the tracks of a clip, and note the frames in a row in which something differs."""
        owners, latest = defaultdict[int, set[int]](set), dict[int, int]()
        moment: Figures | None = None
        for shot, one, two, found in zip(shots, train, deploy, pairs(train, deploy), strict=True):
            names = dict(zip(one.numbers.tolist(), map(label, one.classes.tolist()), strict=True))
            changed = [f"{names[of]} {of}: {latest[of]} → {now}" for of, now in found.items()
                       if latest.get(of, now) != now]  # fmt: skip
            for of, now in found.items():
                owners[of].add(now)
            latest |= found
            self.tracks["boxes"] += len(one.numbers)
            self.tracks["paired"] += len(found)
            differs = len(one.numbers) - len(found), len(two.numbers) - len(found)
            if not changed and not any(differs):
                moment = None
                continue
            if moment is None:
                moment = {"sample": shot.name, "start": shot.seconds, "frames": 0, "switches": [],
                          "missing": 0, "added": 0}  # fmt: skip
                self.moments.append(moment)
            moment["end"] = shot.seconds
            moment["frames"] += 1
            moment["switches"] += changed
            moment["missing"] += differs[0]
            moment["added"] += differs[1]
        followed = Counter(now for own in owners.values() for now in own)
        self.tracks["lost"] += len(_numbers(train) - owners.keys())
        self.tracks["gained"] += len(_numbers(deploy) - followed.keys())
        self.tracks["broken"] += sum(len(own) > 1 for own in owners.values())
        self.tracks["joined"] += sum(number > 1 for number in followed.values())


def _of_stack(
    tracker: Tracker, shots: Sequence[Shot], rate: float, side: int, threshold: float
) -> Clip:
    """A stack's tracks in the frames that both stacks answered; in others it has no boxes."""
    nothing = Detections(np.empty((0, 4)), np.empty(0), np.empty(0, np.int64))
    clip = [detections(shot.records[side]) if shot.records else nothing for shot in shots]
    found = follow(tracker, clip, threshold, rate)
    return [frame for frame, shot in zip(found, shots, strict=True) if shot.records]


def _against_truth(
    metrics: TrackMetrics, taken: list[list[Shot]], train: list[Clip], deploy: list[Clip],
    draws: Resamples,
) -> Figures:  # fmt: skip
    """The figures of both stacks where tracks are annotated, and how far deployment's moved."""
    truths = [[shot.truth for shot in shots] for shots in taken]
    if any(truth is None or truth.tracks is None for clip in truths for truth in clip):
        return {}
    known = [[annotated(truth) for truth in clip] for clip in truths]
    whole = np.ones((1, draws.images), np.int64)
    counts = np.concatenate([whole, *draws]) if draws.images >= CLIPS else whole
    sides = []
    for clips in (train, deploy):
        kept = [[judged(*both) for both in zip(*clip, strict=True)]
                for clip in zip(clips, truths, strict=True)]  # fmt: skip
        sides.append(_measured(metrics, known, kept, counts))
    old, new = sides
    if not old or not new:
        return {}
    delta = {name: _delta(name, new[name] - old[name], draws) for name in RATES}
    return {"train": _plain(old), "deploy": _plain(new), "delta": delta}


def _measured(
    metrics: TrackMetrics, reference: Sequence[Clip], other: Sequence[Clip], counts: Counts
) -> dict[str, Floats]:
    """The figures of some tracks; none where there is nothing to follow."""
    clips: list[list[Matchable]] = [
        [(a.numbers, b.numbers, agreement(a, b)) for a, b in zip(*both, strict=True)]
        for both in zip(reference, other, strict=True)
    ]
    return dict(metrics.measure(clips, counts)) if _count(reference) else {}


def _delta(name: str, moved: Floats, draws: Resamples) -> Figures:
    if len(moved) == 1:
        return {"value": float(moved[0])}
    figure = np.concatenate([moved, np.full(draws.images, np.nan)])
    found = effect(figure, draws.number, None if name == "mota" else DIFFERENCE)
    return {**found.told(), "method": "bootstrap over clips"}


def _plain(found: dict[str, Floats]) -> Figures:
    if not found:
        return dict.fromkeys((*RATES, *EVENTS))
    rates = {name: float(found[name][0]) for name in RATES}
    return {**rates, **{name: int(found[name][0]) for name in EVENTS}}


def _count(clips: Sequence[Clip]) -> int:
    return sum(len(_numbers(clip)) for clip in clips)


def _numbers(clip: Clip) -> set[int]:
    return {number for frame in clip for number in frame.numbers.tolist()}


def _weight(moment: Figures) -> tuple[int, int]:
    return -len(moment["switches"]), -moment["missing"] - moment["added"]
