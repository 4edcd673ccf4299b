"""What the training stack's outputs give with another suppression, or with other scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.declared import Objectness, Score
from simulator.tasks.detection.settings import Settings, Suppression

Again = Callable[[Suppression, Score | None], Detections]
SCORE = 1e-4
"""Scores are equal up to this."""
_IOUS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_NMS = "postprocess.nms."


@dataclass(frozen=True)
class Other:
    """What the training stack would give otherwise.

    Attributes:
        name: what engineers call it; empty: as it is.
        boxes: of each image.
        change: fields of the deployment's profile that undo it.
        code: the same in words.
    """

    name: str
    boxes: tuple[Detections, ...]
    change: Mapping[str, object] = field(default_factory=dict)
    code: str = ""


def others(
    runs: Sequence[Again], deploy: Sequence[Detections], settings: Settings
) -> Iterator[Other]:
    """Yield what the training stack's outputs give otherwise, what is likely first.

    Args:
        runs: what an image's outputs give.
        deploy: the deployment's boxes, whose lowest score is no lower than its threshold.
        settings: of the training stack.
    """

    def of(nms: Suppression, score: Score | None = None) -> tuple[Detections, ...]:
        return tuple(run(nms, score) for run in runs)

    own = settings.nms
    lowest = min(float(one.scores.min(initial=1)) for one in deploy)
    most = max(len(one) for one in deploy)
    if lowest < own.score_threshold:
        own = replace(own, score_threshold=max(lowest - SCORE, 0.0))
        change = {f"{_NMS}score_threshold": "model"}
        yield Other(f"a lower score threshold: at most {lowest:.4g}", of(own), change)
    if own.top_k_after is not None and most > own.top_k_after:
        own = replace(own, top_k_after=None)
        name = f"more than {settings.nms.top_k_after} boxes are kept"
        yield Other(name, of(own), {f"{_NMS}top_k_after": "model"})
    if (limit := own.top_k_after) is not None:  # others come up where some are missing
        whole = of(replace(own, top_k_after=None))
        pairs = zip(whole, deploy, strict=True)
        yield Other("", tuple(
            one.above(two.scores.min() - SCORE) if len(two) >= limit else one for one, two in pairs
        ))  # fmt: skip
    for name, nms, key in _suppressions(own):
        yield Other(name, of(nms), {f"{_NMS}{key}": "model"})
    for name, code, score in _scores(settings):
        yield Other(name, of(own, score), code=code)
    if own.kind == "none":
        return
    given = [(iou, of(replace(own, iou_threshold=iou))) for iou in _IOUS]
    for _, alike in groupby(given, lambda one: [tuple(b.scores) for b in one[1]]):
        some = list(alike)
        first, last = some[0][0], some[-1][0]
        between = f"{first:g}" if first == last else f"between {first:g} and {last:g}"
        name = f"another IoU threshold of the NMS: {between} in place of {own.iou_threshold:g}"
        yield Other(name, some[0][1], {f"{_NMS}iou_threshold": "model"})


def _suppressions(own: Suppression) -> Iterator[tuple[str, Suppression, str]]:
    """Yield other kinds of it, each with the field that undoes it."""
    name = "the NMS keeps classes apart (class-aware)"
    if own.class_aware:
        name = "the NMS ignores classes (class-agnostic)"
    yield name, replace(own, class_aware=not own.class_aware), "class_aware"
    if own.kind != "none":
        yield "the NMS is missing", replace(own, kind="none"), "kind"
    yield "widths in the NMS have another offset", replace(own, offset=1 - own.offset), "offset"


def _scores(settings: Settings) -> Iterator[tuple[str, str, Score]]:
    """Yield other scores of the same head: a name, what undoes it in code, and the scores."""
    score = getattr(settings.head, "score", None)
    if not isinstance(score, Score):
        return
    own = score.objectness
    if own is not None:
        alone = score.model_copy(update={"objectness": None})
        yield (
            "scores are not multiplied by the objectness", "multiply class score and objectness",
            alone,
        )  # fmt: skip
        if own.activation == "none":
            twice = Objectness(activation="sigmoid", exponent=own.exponent)
            yield (
                "a sigmoid is applied to the objectness once more", "leave it out",
                score.model_copy(update={"objectness": twice}),
            )  # fmt: skip
    if score.exponent != 1 or (own and own.exponent != 1):
        plain = own.model_copy(update={"exponent": 1.0}) if own else None
        yield (
            "the exponents of the scores are forgotten", f"raise them to {score.exponent:g}",
            score.model_copy(update={"exponent": 1.0, "objectness": plain}),
        )  # fmt: skip
    if score.activation == "none":
        yield (
            "a sigmoid is applied to the class scores once more", "leave it out",
            score.model_copy(update={"activation": "sigmoid"}),
        )  # fmt: skip
    other = "all" if score.classes == "best" else "best"
    name = "each box has every class above the threshold, not its best alone"
    if other == "best":
        name = "each box has its best class alone"
    yield name, "treat the classes of a box as in training", score.model_copy(
        update={"classes": other}
    )  # fmt: skip
