"""``simulate --track``: tracks worked out by hand, and what cannot be followed.

Two persons walk through 20 frames, one a second; SORT gives a track its number with its third box,
and drops it after two frames without one. The training stack finds both everywhere: each lacks two
boxes of 20, so MOTA is 36 / 40. The deployment stack does not find the second one in frames 8, 9
and 10 (from 0), and has to begin again: it lacks 2 + 3 + 2 of her boxes, and switches once.
"""

import numpy as np
import pytest
import tiny
import tiny_tasks
from datacards import card_of, images

from backends.roboflow_trackers import BoxTracker, TrackEvalMetrics
from simulator import compare
from simulator.data.truth import Boxes
from simulator.errors import UserError
from simulator.model.card import Card
from simulator.tasks.detection.tracks import Tracked, agreement, judged, pairs, tracking
from simulator.tasks.score import Shot

FRAMES, GAP = 20, (8, 9, 10)
CODE = """
from pathlib import Path

def train(path):
    t = int(Path(path).stem)
    return [[10 + t, 10, 20 + t, 40, 0.9, 0], [40 + t, 12, 52 + t, 45, 0.8, 0]]

def deploy(path):
    return train(path)[: 1 if int(Path(path).stem) in (8, 9, 10) else 2]
"""


def boxes(t):
    return [[10.0 + t, 10, 20 + t, 40], [40.0 + t, 12, 52 + t, 45]]


@pytest.fixture
def street(tmp_path, monkeypatch, cache):
    """A function that runs the pair on the annotated sequence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval.py").write_text(CODE)
    images(tmp_path, *(f"{t:06}.png" for t in range(FRAMES)), size=(64, 64))
    lines = (f"{t},{n},{x0 + 1},{y0 + 1},{x1 - x0},{y1 - y0},1,1,1"
             for t in range(FRAMES) for n, (x0, y0, x1, y1) in enumerate(boxes(t), 1))  # fmt: skip
    (tmp_path / "gt.txt").write_text("\n".join(lines))
    data = card_of(tmp_path, "detection", "mot", images="images", annotations="gt.txt",
                   classes={"Pedestrian": "red"}, rate=1).path  # fmt: skip
    model = tiny_tasks.card(tmp_path)

    tiny.card(tmp_path / "plain")

    def run(track="sort", **more):
        given = {"model": model, "data": data, "quick": True, "out": tmp_path / "run", **more}
        return compare("eval.py:train", "eval.py:deploy", track=track, **given)

    return run


def test_a_gap_costs_an_identity(street):
    rules = ["tracking.delta.mota < -14 points", "tracking.between.broken > 1"]
    result = street(fail_on=rules)

    found = result.summary.tracking
    assert (found.clips, found.frames) == (1, FRAMES)
    assert (found.tracks.train, found.tracks.deploy) == (2, 3)
    assert (found.train.mota, found.deploy.mota) == (36 / 40, (40 - 9 - 1) / 40)
    assert found.train.idf1 == pytest.approx(2 * 36 / (36 + 40))
    # of her 20 boxes 6 are of the first track and 7 of the second, which is taken for her
    assert found.deploy.idf1 == pytest.approx(2 * (18 + 7) / (31 + 40))
    assert (found.train.switches, found.deploy.switches) == (0, 1)
    assert (found.train.fragmentations, found.deploy.fragmentations) == (0, 1)
    between = found.between
    assert (between.lost, between.gained, between.broken, between.joined) == (0, 0, 1, 0)
    assert between.switches == 1
    assert (between.boxes, between.paired, between.mota) == (36, 31, (36 - 5 - 1) / 36)
    worst = found.moments[0]
    assert (worst.sample, worst.start, worst.end) == ("000008.png", 8, 13)
    assert worst.switches == ["red 1: 1 → 2"]
    assert [rule.failed for rule in result.summary.gate.rules[:2]] == [True, False]
    assert found.delta.mota.ci95 is None
    assert [one for one in result.summary.verdict.lost if "track" in one] == [
        "Of 2 tracks of train (sort) 0 lost, 1 broken; of 3 of deploy 0 gained, 0 joined; "
        "identities switch 1 time.",
        f"Against the annotated tracks: HOTA {100 * found.delta.hota.value:+.2f} points, "
        f"MOTA -15.00 points, IDF1 {100 * (50 / 71 - 72 / 76):+.2f} points; an interval takes 6 "
        "clips.",
    ]
    assert "red 1: 1 → 2" in result.report.read_text()


@pytest.mark.parametrize(
    ("track", "more", "why"),
    [
        ("sorted", {}, "--track: unknown tracker 'sorted'; did you mean 'sort'"),
        ("sort", {"limit": 5}, "frames in order and equally far apart are followed"),
        ("sort", {"model": "plain/card.yaml", "data": "images"}, "classification has none"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_a_line(street, track, more, why):
    with pytest.raises(UserError, match=why) as caught:
        street(track, **more)
    assert "\n" not in str(caught.value)


def test_what_lies_on_a_distractor_counts_neither_way():
    """By MOTChallenge's rules: a box on a distractor is left out, one on a person beside it not."""
    person, other = [10.0, 10, 20, 60], [14.0, 10, 20, 60]
    two = np.zeros(2, np.int64)
    truth = Boxes(np.array([person, other]), two, np.array([False, True]), np.full(2, 1200.0),
                  np.zeros(2, bool), tracks=np.array([5, -1]))  # fmt: skip
    corners = np.array([[10.0, 10, 30, 70], [15, 10, 34, 70], [15, 10, 34, 200]])
    own = Tracked(np.arange(3), corners, np.zeros(3, np.int64))

    assert judged(own, truth).numbers.tolist() == [0, 2]  # the last lies outside by more than half


def walks(seed, frames=30, people=6):
    """Tracks that wander, are missing now and then, and swap their numbers."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, 120, (people, 2))
    clip = []
    for _ in range(frames):
        at += rng.normal(0, 2, at.shape)
        there = rng.random(people) < 0.8
        numbers = rng.permutation(people) if rng.random() < 0.1 else np.arange(people)
        corners = np.hstack([at, at + 20])[there]
        clip.append(Tracked(numbers[there], corners, np.zeros(there.sum(), np.int64)))
    return clip


@pytest.mark.parametrize(
    ("seed", "mota", "idf1", "expected"),
    [(0, 0.521739, 0.746377, 30), (1, 0.453237, 0.726619, 42), (2, 0.496350, 0.729927, 39)],
)
def test_figures_are_those_of_motmetrics(seed, mota, idf1, expected):
    """By py-motmetrics 1.4, from the same numbers and overlaps."""
    one, two = walks(seed), walks(seed)
    rng = np.random.default_rng(seed)
    two = [Tracked(rng.permutation(20)[: len(b.numbers)] if rng.random() < 0.2 else b.numbers,
                   b.boxes + rng.normal(0, 3, b.boxes.shape), b.classes) for b in two]  # fmt: skip
    latest, switches = {}, 0
    for found in pairs(one, two):
        switches += sum(latest.get(of, now) != now for of, now in found.items())
        latest |= found

    clip = [(a.numbers, b.numbers, agreement(a, b)) for a, b in zip(one, two, strict=True)]
    figures = TrackEvalMetrics({}).measure([clip], np.array([[1]]))
    assert switches == figures["switches"][0] == expected
    assert (figures["mota"][0], figures["idf1"][0]) == pytest.approx((mota, idf1), abs=1e-6)


def test_several_clips_give_an_interval(tmp_path):
    """Of six clips in which the deployment stack never finds the second person; all agree.

    A seventh clip, which a stack could not answer, is left out.
    """
    task = Card(tiny_tasks.card(tmp_path)).task
    shots = []
    for t in range(FRAMES):
        corners = np.array(boxes(t))
        truth = Boxes(np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]]),
                      np.zeros(2, np.int64), np.zeros(2, bool), np.full(2, 300.0),
                      np.zeros(2, bool), tracks=np.array([1, 2]))  # fmt: skip
        both = tuple({"boxes": corners[:n].ravel(), "scores": [0.9] * n, "classes": [0] * n}
                     for n in (2, 1))  # fmt: skip
        shots.append(Shot(f"{t}", None, truth, both))
    parts = BoxTracker({"method": "sort"}), TrackEvalMetrics({})

    failed = [Shot("none", None, None, None)], 1.0

    found = tracking(task, *parts, [*[(shots, 1.0)] * 6, failed], 0)

    mota = found["delta"]["mota"]
    assert (mota["value"], mota["ci95"]) == (pytest.approx(-18 / 40), pytest.approx([-18 / 40] * 2))
    assert mota["p"] == 2 / 2**6
    assert (found["clips"], found["between"]["lost"]) == (6, 6)
