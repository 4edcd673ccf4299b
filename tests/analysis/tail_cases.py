"""Answers, truths and latencies, small enough to be judged slowly."""

import numpy as np

from simulator.data.truth import Boxes
from simulator.latency.quality import Quality
from simulator.latency.tail_figures import tail
from simulator.latency.times import NEVER, Times
from simulator.tasks.classification.answer import Answer
from simulator.tasks.detection.boxes import Detections

MS = 1_000_000
IMAGES, CLASSES = 60, 3


def answered(task, answers, truths):
    """The quality of answers to truths, with the records that the engine would keep."""
    records = [task.records([one], truth)[0] for one, truth in zip(answers, truths, strict=True)]
    return Quality(task, records, truths)


def labelled(task, right):
    """Of images whose label is 0 those are right that are said to be."""
    answers = [Answer(0 if one else 1, 0.9, 0.5, 3) for one in right]
    return answered(task, answers, [0] * len(right))


def latencies(seed, rounds=12, images=IMAGES, failing=0.01):
    """Whole nanoseconds around 5 ms, of instances that differ; some answers never came."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(3e6, 7e6, images)
    total = (base * rng.lognormal(0, 0.1, (rounds, images))).astype(np.int64)
    total[rng.random(total.shape) < failing] = NEVER
    return Times(total, {})


def one_side(times, quality, deadlines=(), seed=0, number=40):
    found, why = tail({"deploy": times}, {"deploy": quality}, deadlines, seed, number)
    return found["deploy"], why


def boxes(seed, images=8):
    """Objects of three classes, one a crowd, and what was found: jittered, with ties."""
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for image in range(images):
        n = int(rng.integers(0 if image else 1, 5))
        corner, sides = rng.uniform(0, 200, (n, 2)), rng.uniform(20, 90, (n, 2))
        crowd = rng.random(n) < 0.1
        classes = rng.integers(0, CLASSES, n)
        truths.append(
            Boxes(np.hstack([corner, sides]), classes, crowd, sides.prod(axis=1), np.zeros(n, bool))
        )
        pick = np.repeat(np.arange(n), 2)
        corners = np.hstack([corner, corner + sides])[pick] + rng.normal(0, 6, (2 * n, 4))
        scores = rng.integers(1, 9, 2 * n) / 9
        best = np.argsort(-scores, kind="stable")
        found.append(Detections(corners[best], scores[best], classes[pick][best]))
    return found, truths


def masks(seed, images=6):
    rng = np.random.default_rng(seed)
    truths = [rng.choice([0, 1, 2, 255], (5, 7), p=[0.4, 0.3, 0.2, 0.1]) for _ in range(images)]
    guesses = [np.where(rng.random((5, 7)) < 0.7, truth, rng.choice([0, 1, 2, 255], (5, 7)))
               for truth in truths]  # fmt: skip
    guesses = [np.where(guess == 255, 0, guess) for guess in guesses]
    guesses[0][:2] = 255  # cropped: not judged, in time or late
    return [one.astype(np.uint8) for one in guesses], [one.astype(np.uint8) for one in truths]
