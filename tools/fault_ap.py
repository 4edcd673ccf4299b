"""What false and lost objects do to average precision, on made-up detections.

  python tools/fault_ap.py        print the table; the form of Figure 2 of Qutub et al.

100 objects, each found with a chance of 0.7; 0.3 false boxes an object found; scores from 0.7 to 1.
Then boxes come, or go, as with a fault. AP50 and precisions are pycocotools', means over 50 draws.
"""

from __future__ import annotations

import numpy as np

from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.curves import curves

OBJECTS, FOUND, FALSE, DRAWS = 100, 0.7, 0.3, 50
RECALLS = (0.1, 0.3, 0.5)
CASES = (
    ("no fault", 0, (0.0, 0.0), 0),
    ("100 false boxes, scores 0 to 0.7", 100, (0.0, 0.7), 0),
    ("20 false boxes, scores 0.7 to 1", 20, (0.7, 1.0), 0),
    ("20 false boxes, scores 1", 20, (1.0, 1.0), 0),
    ("20 of the found objects lost", 0, (0.0, 0.0), 20),
)
"""The name, boxes added and their scores, true boxes lost."""


def boxes(count: int, row: int) -> np.ndarray:
    """Return (n, 4) boxes that do not overlap; those of another row do not either."""
    left = 20.0 * np.arange(count)
    top = np.full(count, 20.0 * row)
    return np.stack([left, top, left + 10, top + 10], axis=1)


def drawn(
    rng: np.random.Generator, added: int, scores: tuple[float, float], lost: int
) -> list[float]:
    """Return the precision over recall of one draw."""
    here = np.flatnonzero(rng.random(OBJECTS) < FOUND)
    false = round(FALSE * len(here))
    usual, own = rng.uniform(0.7, 1, len(here) + false), rng.uniform(*scores, added)
    kept = rng.permutation(len(here))[lost:]
    every = np.concatenate([boxes(OBJECTS, 0)[here[kept]], boxes(false, 1), boxes(added, 2)])
    values = np.concatenate([usual[kept], usual[len(here) :], own])
    order, none = np.argsort(-values, kind="stable"), np.zeros(OBJECTS, bool)
    found = Detections(every[order], values[order], np.zeros(len(order), np.int64))
    there = boxes(OBJECTS, 0) * [1, 1, 0, 0] + [0, 0, 10, 10]
    kinds = np.zeros(OBJECTS, np.int64)
    # an image each, as COCO takes the best 100 boxes of an image only
    images = [found.take(found.boxes[:, 0] // 20 == at) for at in range(OBJECTS)]
    truths = [
        Boxes(there[at : at + 1], kinds[:1], none[:1], np.full(1, 100.0), none[:1])
        for at in range(OBJECTS)
    ]
    return curves(images, truths, ["object"])["object"]


def main() -> None:
    print("| detections | AP50 | " + " | ".join(f"at recall {at}" for at in RECALLS) + " |")
    print("|---|---|" + "---|" * len(RECALLS))
    for name, added, scores, lost in CASES:
        draws = (np.random.default_rng(seed) for seed in range(DRAWS))
        mean = np.mean([drawn(rng, added, scores, lost) for rng in draws], axis=0)
        cells = [mean.mean(), *(mean[round(100 * at)] for at in RECALLS)]
        print(f"| {name} | " + " | ".join(f"{100 * cell:.1f} %" for cell in cells) + " |")


if __name__ == "__main__":
    main()
