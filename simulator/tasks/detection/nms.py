"""Non-maximum suppression: greedy, and soft (Bodla et al., ICCV 2017, figure 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.detection.boxes import areas
from simulator.tasks.detection.settings import Suppression

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def suppress(
    boxes: Floats, scores: Floats, classes: NDArray[np.int64], rule: Suppression
) -> tuple[Indices, Floats]:
    """Drop boxes that overlap a better one, or lower their scores.

    Args:
        boxes: (n, 4) x1, y1, x2, y2, finite.
        scores: (n,), not increasing.
        classes: (n,).
        rule: ``top_k_before`` and ``score_threshold`` apply to what is given here as well.

    Returns:
        (m,) indices of the boxes that remain, and their (m,) scores, not increasing; of equal
        scores the earlier box comes first.
    """
    least = rule.of("score_threshold", classes)
    start = np.flatnonzero(scores > least)[: rule.top_k_before]
    kept, left = start, scores[start]
    if rule.kind != "none" and len(start):
        groups = [start]
        if rule.class_aware:
            groups = [start[classes[start] == c] for c in np.unique(classes[start])]
        parts = [
            _one_group(boxes[g], scores[g], least[g], rule.of_class(int(classes[g[0]])))
            for g in groups
        ]
        kept = np.concatenate(
            [group[index] for group, (index, _) in zip(groups, parts, strict=True)]
        )
        left = np.concatenate([new for _, new in parts])
        order = np.lexsort((kept, -left))
        kept, left = kept[order], left[order]
    best = _best_of_each(classes[kept], rule)[: rule.top_k_after]
    return kept[best], left[best]


def fitting(boxes: Floats, classes: NDArray[np.int64], rule: Suppression) -> NDArray[np.bool_]:
    """Return (n,) whether the (n, 4) boxes of an image are as large as their classes must be."""
    sides = boxes[:, 2:] - boxes[:, :2]
    least = np.stack([rule.of(name, classes) for name in ("min_width", "min_height")], 1)
    most = np.stack([rule.of(name, classes) for name in ("max_width", "max_height")], 1)
    return np.asarray(np.all((sides >= least) & (sides <= most), axis=1))


def _best_of_each(classes: NDArray[np.int64], rule: Suppression) -> Indices:
    """Return the places of the best boxes of each class, as many as it may have, in order."""
    places = [
        np.flatnonzero(classes == one)[: rule.of_class(int(one)).class_top_k_after]
        for one in np.unique(classes)
    ]
    return np.sort(np.concatenate([np.zeros(0, np.intp), *places]))


def _one_group(
    boxes: Floats, scores: Floats, least: Floats, rule: Suppression
) -> tuple[Indices, Floats]:
    """Boxes that may suppress each other, best first; *least* is the threshold of each."""
    if rule.kind == "greedy":
        index = _greedy(boxes, rule)
        return index, scores[index]
    return _soft(boxes, scores, least, rule)


def _table(boxes: Floats, offset: int) -> Floats:
    """(5, n): the corners, and the area."""
    return np.concatenate([boxes.T, areas(boxes, offset)[None]])


def _overlaps(best: Floats, rest: Floats, offset: int) -> Floats:
    """IoU of one box (5,) with others (5, n); 0 where there is no area."""
    wide = np.minimum(best[2], rest[2]) - np.maximum(best[0], rest[0]) + offset
    high = np.minimum(best[3], rest[3]) - np.maximum(best[1], rest[1]) + offset
    common = np.maximum(wide, 0) * np.maximum(high, 0)
    union = best[4] + rest[4] - common
    share: Floats = common / np.maximum(union, _TINY)
    return share


def _greedy(boxes: Floats, rule: Suppression) -> Indices:
    table, left = _table(boxes, rule.offset), np.arange(len(boxes))
    kept = []
    while len(left):
        kept.append(left[0])
        overlaps = _overlaps(table[:, 0], table[:, 1:], rule.offset)
        apart = np.flatnonzero(overlaps <= rule.iou_threshold) + 1
        table, left = table[:, apart], left[apart]
    return np.array(kept, np.intp)


def _soft(
    boxes: Floats, scores: Floats, least: Floats, rule: Suppression
) -> tuple[Indices, Floats]:
    table, left, now = _table(boxes, rule.offset), np.arange(len(boxes)), scores
    kept, final = [], []
    while len(left):
        best = int(now.argmax())
        kept.append(left[best])
        final.append(now[best])
        now = now * _decay(_overlaps(table[:, best], table, rule.offset), rule)
        now[best] = -np.inf
        more = np.flatnonzero(now > least)
        table, left, now, least = table[:, more], left[more], now[more], least[more]
    return np.array(kept, np.intp), np.array(final, np.float64)


def _decay(overlaps: Floats, rule: Suppression) -> Floats:
    """What a score is multiplied by: the paper's equations 2 (linear) and 3 (Gaussian)."""
    if rule.kind == "soft_gaussian":
        gentle: Floats = np.exp(-(overlaps**2) / rule.sigma)
        return gentle
    return np.where(overlaps > rule.iou_threshold, 1 - overlaps, 1)


_TINY = np.finfo(np.float64).tiny
