"""What a difference looks like that has no name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import Array

_GRAY = np.array([0.299, 0.587, 0.114])[:, None, None]
_FRAME = 0.08
"""Width of the border, as a share of a side."""


def looks(levels: Sequence[Array], other: Sequence[Array]) -> str:
    """Say how far levels are apart, where, and in what the pictures differ.

    Args:
        levels: of the training, each (3, H, W).
        other: the deployment's.
    """
    gaps = [np.abs(two - one).max(axis=0) for one, two in zip(levels, other, strict=True)]
    apart = np.concatenate([np.abs(b - a).ravel() for a, b in zip(levels, other, strict=True)])
    parts = [f"mean {apart.mean():.3g} levels apart, at most {apart.max():.3g}, {_where(gaps)}"]
    edges = np.mean([_edged(one, gap) for one, gap in zip(levels, gaps, strict=True)])
    if edges > 4:
        parts.append("most along edges")
    moved = float(np.mean([(b - a).mean() for a, b in zip(levels, other, strict=True)]))
    if abs(moved) > 0.4 * apart.mean():
        parts.append(f"{'brighter' if moved > 0 else 'darker'} by {abs(moved):.3g} levels")
    if _in_colors(levels, other):
        parts.append("in colors and not in brightness (another chroma sampling?)")
    fine = [_fine(two) / max(_fine(one), 1e-9) for one, two in zip(levels, other, strict=True)]
    if (ratio := float(np.mean(fine))) < 0.85:
        parts.append("smoother")
    elif ratio > 1.15:
        parts.append("sharper, or noisier")
    return ", ".join(parts)


def _in_colors(levels: Sequence[Array], other: Sequence[Array]) -> bool:
    """Whether luma is about the same, and only differences of channels are not."""
    gaps = [two - one for one, two in zip(levels, other, strict=True)]
    bright = np.mean([np.abs((one * _GRAY).sum(axis=0)).mean() for one in gaps])
    return bool(3 * bright < np.mean([np.abs(one).mean() for one in gaps]))


def _where(gaps: Sequence[Array]) -> str:
    found = []
    for gap in gaps:
        rows, columns = (max(1, round(_FRAME * side)) for side in gap.shape)
        inner = gap[rows:-rows, columns:-columns]
        border = (gap.sum() - inner.sum()) / (gap.size - inner.size)
        found.append((border / max(float(inner.mean()), 1e-9), float((gap > 1).mean())))
    if min(one for one, _ in found) > 3:
        return "mostly at the borders"
    share = float(np.mean([one for _, one in found]))
    return "everywhere" if share > 0.5 else f"in {100 * share:.2g} % of the pixels"


def _slopes(picture: Array) -> Array:
    plane = picture.mean(axis=0)
    return np.asarray(np.hypot(*np.gradient(plane)))


def _edged(picture: Array, gap: Array) -> float:
    """How much farther apart pixels at edges are than in flat parts."""
    slopes = _slopes(picture)
    steep, flat = (slopes > np.quantile(slopes, 0.9)), (slopes <= np.quantile(slopes, 0.5))
    return float(gap[steep].mean() / max(gap[flat].mean(), 1e-3))


def _fine(picture: Array) -> float:
    """The root mean square of a picture's curvature."""
    plane = picture.mean(axis=0)
    rough = (
        4 * plane[1:-1, 1:-1] - plane[:-2, 1:-1] - plane[2:, 1:-1] - plane[1:-1, :-2]
        - plane[1:-1, 2:]
    )  # fmt: skip
    return float(np.sqrt((rough * rough).mean()))
