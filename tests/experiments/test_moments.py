"""Frames in a row that changed are one moment, worked out by hand."""

import pytest

from simulator.data.video import Shown
from simulator.experiments.moments import moments


def frames(clip, count, apart):
    return [Shown(clip, n * apart) for n in range(count)]


@pytest.mark.parametrize(
    ("shown", "order", "want"),
    [
        # worst frame, its moment, and its strip of two frames each way
        (frames("a", 7, 0.1), [3, 2, 6, 4], [(3, [2, 3, 4], [1, 2, 3, 4, 5]), (6, [6], [4, 5, 6])]),
        (frames("a", 2, 0.1) + frames("b", 2, 0.1), [1, 2], [(1, [1], [0, 1]), (2, [2], [2, 3])]),
        (frames("a", 5, 0.5), [0, 1, 2, 3], [(0, [0, 1, 2], [0, 1, 2]), (3, [3], [1, 2, 3, 4])]),
        ([*reversed(frames("a", 4, 0.1))], [0, 1], [(0, [1, 0], [2, 1, 0])]),
        (frames("a", 3, 0.1), [], []),
    ],
    ids=["in a row", "two clips", "a second each way", "another order", "none"],
)  # fmt: skip
def test_moments(shown, order, want):
    assert [*moments(shown, order)] == want
