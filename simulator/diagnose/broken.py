"""Inputs that are no picture of their image: no numbers, one value, another image's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Difference
from simulator.diagnose.levels import levels_of
from simulator.diagnose.normalization import Numbers


def broken(
    before: Sequence[Array], after: Sequence[Array], right: Numbers, channels: str
) -> Difference | None:
    """Name what makes inputs worthless.

    Args:
        before: the training's tensors, each (3, H, W).
        after: the deployment's.
        right: the training's normalization.
        channels: their names.
    """
    lost = sum(int((~np.isfinite(one)).sum()) for one in after)
    if lost:
        text = f"{lost:,} of {sum(one.size for one in after):,} values are NaN or infinite"
        return Difference(text, "look for a division by 0 or an overflow")
    if one := _constant(before, after, right, channels):
        return one
    for at, mine in enumerate(after):
        for other, theirs in enumerate(before):
            if other != at and np.array_equal(mine, theirs):
                text = f"image {at + 1} gets the input of image {other + 1}"
                if np.array_equal(before[at], theirs):
                    continue
                code = "fill the input's buffer anew for each image, and keep their order"
                return Difference(text, code)
    return None


def _constant(
    before: Sequence[Array], after: Sequence[Array], right: Numbers, channels: str
) -> Difference | None:
    flat = [c for c in range(3) if all(not np.ptp(one[c]) for one in after)]
    if not flat or all(not np.ptp(one[c]) for one in before for c in flat):
        return None
    values = [{float(one[c].flat[0]) for one in after} for c in flat]
    level = levels_of(after[0], right)[flat, 0, 0] + 0.0
    which = "the input is" if len(flat) == 3 else f"channel {channels[flat[0]]} is"
    if len(flat) == 2:
        which = f"channels {channels[flat[0]]} and {channels[flat[1]]} are"
    shown = ", ".join(f"{one:.3g}" for one in level)
    text = f"{which} empty: one value everywhere"
    if not any(len(one) > 1 for one in values):
        text += f" (that of level {shown})"
    code = "look for a division of integers, a buffer that is not filled, a channel not copied"
    return Difference(text, code)
