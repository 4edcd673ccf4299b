"""Persistent pixels by M of N frames."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.analysis.persistence import Frame, Rule, Tracker, nearby, persistent, severity
from simulator.tasks.impact import Blobs

RULE = Rule(window=15, least=10, radius=50)


def square(left, shape=(60, 400), side=20):
    mask = np.zeros(shape, bool)
    mask[20 : 20 + side, left : left + side] = True
    return mask


def counts(masks, rule=RULE, coasting=True):
    tracker = Tracker(rule, coasting)
    return [int(tracker.update(mask).sum()) for mask in masks]


def test_nothing_is_persistent_before_frame_m():
    """A square that stands still: all of its 400 pixels from the tenth frame on."""
    assert counts([square(50)] * 12) == [0] * 9 + [400] * 3


def test_a_square_that_moves_six_pixels_a_frame_is_persistent_nearby():
    """
    Nine frames ago it was 54 pixels behind: its first 16 of 20 columns are within 50 of that. No
    pixel was in it for ten frames, so that a count of single pixels gives nothing.
    """
    masks = [square(6 * frame) for frame in range(15)]
    assert counts(masks)[9:12] == [320, 320, 320]
    assert counts(masks, Rule(15, 10, 0)) == [0] * 15


def test_a_square_that_moves_twenty_pixels_a_frame_is_not():
    assert counts([square(20 * frame) for frame in range(16)]) == [0] * 16


def test_false_objects_coast_and_missed_ones_do_not():
    """After 15 frames the square is gone; 10 of the last 15 frames have it for 5 more frames."""
    masks = [square(50)] * 15 + [square(50) & False] * 7
    assert counts(masks)[15:] == [400] * 5 + [0] * 2
    assert counts(masks, coasting=False)[15:] == [0] * 7


def test_a_blob_does_not_grow_by_the_radius():
    """Only pixels that are occupied now are persistent for what is nearby."""
    assert counts([square(150)] * 11)[-1] == 400


def test_interruptions_count_within_the_window():
    """Present in two of three frames: 10 of 15 after the 14th frame, in which it is present."""
    masks = [square(50) if frame % 3 != 2 else square(50) & False for frame in range(18)]
    found = counts(masks, Rule(15, 10, 0), coasting=False)
    assert found[:13] == [0] * 13
    assert found[13] == 400


@pytest.mark.parametrize("radius", [0.0, 1.0, 1.5, 4.9, 5.0, 60.0])
def test_nearby_is_a_circle_around_each_pixel(radius):
    """Against the distances of all pairs of pixels."""
    rng = np.random.default_rng(int(radius * 10))
    for blob in (rng.random((11, 17)) < 0.05, np.zeros((11, 17), bool), np.ones((11, 17), bool)):
        rows, columns = np.indices(blob.shape)
        places = np.argwhere(blob)
        expected = np.zeros_like(blob)
        for row, column in places:
            expected |= (rows - row) ** 2 + (columns - column) ** 2 <= radius**2
        assert (nearby(blob, radius) == expected).all()


def test_areas_are_of_the_image_and_of_what_was_there():
    """Two of three frames: 1 of 12 pixels false; 1 of 2 missed; then nothing is there at all."""
    false, missed = np.zeros((2, 3, 4), bool)
    false[0, 0] = missed[2, 3] = True
    there = missed.copy()
    there[2, 2] = True
    nothing = np.zeros((3, 4), bool)
    video = [Blobs(false, missed, there)] * 2 + [Blobs(false, nothing, nothing)]
    frames = [frame for frame, *_ in persistent(video, Rule(2, 2, 0))]
    assert frames == [Frame(0.0, 0.0), Frame(1 / 12, 0.5), Frame(1 / 12, None)]
    found = severity(frames)
    assert (found.false, found.missed) == (pytest.approx(1 / 12), 0.5)
    assert (found.false_frames, found.missed_frames) == (2, 1)


def test_a_video_without_persistent_objects_has_no_severity():
    found = severity([Frame(0.0, None), Frame(0.0, 0.0)])
    assert (found.false, found.missed, found.false_frames, found.missed_frames) == (0, 0, 0, 0)


@pytest.mark.parametrize("numbers", [(15, 16, 50), (15, 0, 50), (15, 10, -1)])
def test_an_impossible_rule_is_refused(numbers):
    with pytest.raises(ValueError, match="1 to 15 frames"):
        Rule(*numbers)


def test_a_mask_may_be_used_again():
    """The tracker keeps values, not the array: two empty frames later nothing is left."""
    tracker, mask = Tracker(Rule(2, 1, 0), coasting=True), square(50)
    assert tracker.update(mask).sum() == 400
    mask[...] = False
    assert [int(tracker.update(mask).sum()) for _ in range(2)] == [400, 0]


def test_what_was_nearby_is_forgotten_after_the_window():
    """A square, 15 frames without it, and another one nearby."""
    nothing = square(50) & False
    assert counts([square(50)] * 15 + [nothing] * 15 + [square(60)])[-1] == 0
