"""Trackers, and measures of tracks: checks against clips and figures that were worked out by hand.

Two tracks A and B are there in three frames. The boxes on A are of track 1; those on B are of track
2 and then, twice, of track 3. So MOTA is 1 - 1/6, and IDF1 pairs A with 1 and B with 3: 5 of 6
boxes on either side. All boxes agree fully, so DetA is 1; AssA is the mean over boxes of 1, 1, 1 on
A, and of 1/3, 2/3, 2/3 on B: 7/9. In a second clip, C is found in the first of two frames, and in
the other one a box lies elsewhere: MOTA is 0, IDF1 and AssA are 1/2, DetA is 1/3.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from simulator.contract.tracking import FoundBoxes, Matchable
from simulator.testing.subject import Subject, expect
from simulator.testing.work import Job, Work

FRAMES, RATE = 20, 30.0
THRESHOLD = 0.5
BEGUN = 5
"""Frames after which every tracker has begun a track."""


def clip(objects: int = 2, seed: int = 0) -> list[FoundBoxes]:
    """Return boxes of 40x80 that move by 3 pixels a frame; none is found in one frame of them."""
    start = np.array(
        [[30.0 + 150 * n + seed, 20, 70 + 150 * n + seed, 100] for n in range(objects)]
    )
    step = np.array([3, 1, 3, 1])
    frames = [(start + t * step, np.full(objects, 0.9)) for t in range(FRAMES)]
    frames[BEGUN + 5] = (np.empty((0, 4)), np.empty(0))
    return frames


def every_frame_has_its_numbers(subject: Subject) -> None:
    """There is an array for every frame, the last one too, and in it a number for each box."""
    given = clip()
    found = subject.make().follow(given, THRESHOLD, RATE)
    expect(
        [one.shape for one in found] == [scores.shape for _, scores in given]
        and all(one.dtype == np.int64 and (one >= -1).all() for one in found),
        f"of {FRAMES} frames with 2 boxes or none one int64 of at least -1 for each box expected, "
        f"got {len(found)} arrays of {', '.join(str(one.shape) for one in found)}",
    )


def no_number_stands_twice(subject: Subject) -> None:
    """Two objects of a frame are of two tracks."""
    for at, numbers in enumerate(subject.make().follow(clip(), THRESHOLD, RATE)):
        own = numbers[numbers >= 0].tolist()
        expect(len({*own}) == len(own), f"frame {at}: two boxes are of one track: {own}")


def steady_objects_keep_their_numbers(subject: Subject) -> None:
    """An object that moves steadily has one number, over a frame in which it is not found, too."""
    found = subject.make().follow(clip(1), THRESHOLD, RATE)[BEGUN : FRAMES - 1]
    own = {*np.concatenate(found).tolist()}
    expect(len(own) == 1 and min(own) >= 0, f"one track expected, got those of {sorted(own)}")


def each_clip_begins_anew(subject: Subject) -> None:
    """A clip has the same tracks whatever was followed before it."""
    made = subject.make()
    first, second = (made.follow(clip(), THRESHOLD, RATE) for _ in range(2))
    same = all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    expect(same, "the same clip has other numbers the second time")


def _clips() -> list[list[Matchable]]:
    both = np.array([0, 1])
    first = [(both, np.array([1, other]), np.eye(2)) for other in (2, 3, 3)]
    one = np.array([0])
    return [first, [(one, np.array([4]), np.eye(1)), (one, np.array([9]), np.zeros((1, 1)))]]


def figures_by_hand(subject: Subject) -> None:
    """HOTA, DetA, AssA, MOTA, IDF1 and identity switches of a clip are those worked out by hand."""
    wanted = {
        "hota": sqrt(7 / 9), "deta": 1, "assa": 7 / 9, "mota": 5 / 6, "idf1": 5 / 6, "switches": 1,
        "fragmentations": 0,
    }  # fmt: skip
    _compare(subject.make().measure(_clips()[:1], np.array([[1]])), wanted)


def clips_are_put_together(subject: Subject) -> None:
    """Each box counts once, whatever clip it is of, and as often as its clip was drawn."""
    made = subject.make()
    both = {"hota": sqrt(31 / 54), "mota": 5 / 8, "idf1": 3 / 4}
    _compare(made.measure(_clips(), np.array([[1, 1]])), both)
    twice = {"hota": sqrt(1 / 6), "mota": 0, "idf1": 1 / 2}
    _compare(made.measure(_clips(), np.array([[0, 2]])), twice)


def _compare(found: Any, wanted: dict[str, float]) -> None:
    for name, value in wanted.items():
        got = float(found[name][0])
        expect(abs(got - value) < 1e-9, f"{name}: {value:.4g} expected, got {got:.4g}")


class Following(Work):
    """A job is where the objects of a clip begin; the result are the numbers of all boxes."""

    def _jobs(self) -> list[Job]:
        return [(np.array([seed]),) for seed in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        found = made.follow(clip(seed=int(job[0][0])), THRESHOLD, RATE)
        return (np.concatenate(found),)


class Measuring(Work):
    """A job is how often each of two clips is drawn; the result are the figures."""

    def _jobs(self) -> list[Job]:
        return [(np.array([[1, number]]),) for number in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        return tuple(made.measure(_clips(), job[0]).values())
