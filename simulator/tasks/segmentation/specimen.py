"""What the conformance suite tries segmentation with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.contract import U8, Array
from simulator.data.masks import ArrayMask
from simulator.tasks.detection.specimen import LETTERBOX, NETWORK
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task

_LINEAR = {"mode": "bilinear", "coordinate_transformation_mode": "half_pixel"}
CARD: dict[str, object] = {
    "scores": "y", "kind": "logits", "logits_upsample": _LINEAR, "argmax": "after",
    "output_stride": 1, "mask_resize": {"of": "logits", **_LINEAR},
}  # fmt: skip


def logits(task: type[Task]) -> Specimen:
    """Return 8 x 8 logits of three classes, of an input of 32 x 32."""
    made = task(task.Output.model_validate(CARD), NETWORK)
    return specimen(
        made,
        lambda seed: {
            "y": np.random.default_rng(seed).normal(0, 3, (1, 3, 8, 8)).astype(np.float32)
        },
    )


def specimen(task: Task, outputs: Callable[[int], dict[str, Array]]) -> Specimen:
    """Return a segmenter with odd answers: wrong everywhere, of no such class, hardly any.

    Args:
        task: with :data:`NETWORK`.
        outputs: from a seed to the outputs for one image.
    """
    half = mask((0, 39, 30, 65, 1))
    seam = mask((0, 39, 30, 65, 1), (10, 14, 0, 65, 255))
    worthless = [
        (ArrayMask(half), (half + 1) % 3),
        (ArrayMask(seam), mask((0, 39, 0, 65, 2))),
        (ArrayMask(half), mask((0, 39, 0, 65, 200))),
        (ArrayMask(half), np.where(half == 1, 0, 255).astype(np.uint8)),
    ]
    return Specimen(task, (outputs(0), outputs(1)), LETTERBOX, ArrayMask(seam), worthless)


def mask(*fills: tuple[int, int, int, int, int]) -> U8:
    """Return 39 x 65 of class 0, and of a class in each (top, bottom, left, right, class)."""
    found = np.zeros((39, 65), np.uint8)
    for top, bottom, left, right, index in fills:
        found[top:bottom, left:right] = index
    return found
