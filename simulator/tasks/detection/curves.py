"""Precision over recall, as COCO draws it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.metric import matched, of_classes


def curves(
    found: Sequence[Detections], truths: Sequence[Boxes], labels: Sequence[str]
) -> dict[str, list[float]]:
    """Return the precision at the recalls 0, 0.01 to 1, at IoU 0.5.

    It is the interpolated one, and 0 beyond the recall that is reached: its mean is AP50.

    Args:
        found: what was detected, one an image.
        truths: what is there, of the same images in the same order.
        labels: the names of the classes, in index order.

    Returns:
        Of ``all classes`` the mean, and that of each class that has an object, by the names of
        :func:`of_classes` without ``AP``.

    Raises:
        DataError: a class index has no label.
    """
    evaluation = matched(found, truths, len(labels), slice(0, 1))
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.accumulate()
    precision = evaluation.eval["precision"][0, :, :, 0, 0]  # recall, class
    known = [at for at in range(len(labels)) if (precision[:, at] > -1).any()]
    if not known:
        return {}
    names = [name.removeprefix("AP ") for name in of_classes(labels)]
    of_each = {names[at]: precision[:, at].tolist() for at in known}
    return {"all classes": precision[:, known].mean(axis=1).tolist(), **of_each}
