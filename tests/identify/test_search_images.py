"""Which images a search compares where every trial runs the network."""

from pathlib import Path

from simulator.data.folder import Item
from simulator.identify.search import Search
from simulator.identify.target import Distance
from simulator.identify.trials import Score

AXES = {
    "resize": {one: {"resize": one} for one in "abcdefghij"},
    "decode": {one: {"decode": one} for one in "abcdefghij"},
    "order": {one: {"color.order": one} for one in "abc"},
}
START, HIDDEN = ("a", "a", "a"), ("d", "g", "b")
SHOWS = {"one": [0], "two": [0], "three": [1, 2], "four": [0, 1]}
"""The columns that an image depends on, by their places."""


class Board:
    """A recording by arithmetic: an image is off by how many letters an option is."""

    names, axes, kind, tried, over = tuple(AXES), AXES, "outputs", 0, False

    def __init__(self):
        self.composer = self.target = self
        self.first = {}

    def quick(self, points):
        return points

    def steps(self, point):
        return ()

    def by_image(self, point, items):
        found = []
        for item in items:
            off = sum(abs(ord(point[at]) - ord(HIDDEN[at])) for at in SHOWS[item.name])
            found.append(Distance(off == 0, off, off))
        return found

    def scores(self, points, items):
        found = {}
        for point in points:
            self.first.setdefault(point, items[0].name)
            gaps = [one.mean for one in self.by_image(point, items)]
            found[point] = Score(gaps.count(0), len(gaps), sum(gaps) / len(gaps), max(gaps), 0)
        return found


def test_an_image_that_tells_more_is_compared_as_soon_as_the_first_two_tell_nothing():
    """The first two show the resize alone: decoders are tried on images that show them."""
    board = Board()
    items = [Item(name, Path(name), None) for name in SHOWS]

    found = Search(board, items, START, lambda _: None).run()

    assert (found.best, found.exact) == (HIDDEN, True)
    decoders = [first for point, first in board.first.items() if point[1] != START[1]]
    assert decoders
    assert set(decoders) <= {"three", "four"}
