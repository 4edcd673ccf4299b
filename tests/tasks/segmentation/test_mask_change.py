import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from simulator.errors import SampleError
from simulator.tasks.segmentation.change import at_boundary, change

KINDS = ("right_to_wrong", "wrong_to_right", "wrong_to_wrong")
sizes = st.tuples(st.integers(1, 20), st.integers(1, 20))


def mask(*rows):
    return np.array([list(map(int, row.replace(" ", ""))) for row in rows], np.uint8)


def test_a_row_of_twelve_pixels_by_hand():
    """Classes meet between pixels 5 and 6: 3 to 8 are within 3 px of the other one.

    Changed are 0 (inside, right → wrong), 4 (boundary, wrong → right), 7 (boundary, wrong →
    wrong) and 11 (inside, not judged).
    """
    before = mask("000000 111111")
    after = mask("200010 121110")
    truth = np.array([[0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 255]], np.uint8)

    found = change(before, after, truth)

    assert (found["units"], found["changed"]) == (12, 4)
    assert (found["boundary"], found["boundary_changed"]) == (6, 2)
    by_class = found["classes"], found["class_units"], found["class_changed"]
    assert by_class == ([0, 1], [6, 6], [2, 2])
    assert [found[one] for one in KINDS] == [1, 1, 1]


def test_without_truth_nothing_is_right_or_wrong():
    found = change(mask("01"), mask("11"), None)

    assert (found["changed"], found["right_to_wrong"]) == (1, None)
    assert (found["wrong_to_right"], found["wrong_to_wrong"]) == (None, None)


def test_equal_masks_have_not_changed():
    one = np.random.default_rng(0).integers(0, 5, (30, 40), np.uint8)
    found = change(one, one.copy(), one)

    assert (found["changed"], found["boundary_changed"], sum(found["class_changed"])) == (0, 0, 0)
    assert (found["right_to_wrong"], found["wrong_to_right"], found["wrong_to_wrong"]) == (0, 0, 0)
    assert sum(found["class_units"]) == found["units"] == 1200


def test_pixels_without_an_answer_in_both_masks_are_no_units():
    """255: no answer. Pixel 1 has lost its answer, which was right; pixel 2 has got one."""
    before = np.array([[0, 0, 255, 255]], np.uint8)
    after = np.array([[0, 255, 1, 255]], np.uint8)
    found = change(before, after, np.array([[0, 0, 1, 1]], np.uint8))

    assert (found["units"], found["changed"]) == (3, 2)
    assert (found["classes"], found["class_units"], found["class_changed"]) == ([0], [2], [1])
    assert (found["right_to_wrong"], found["wrong_to_right"], found["wrong_to_wrong"]) == (1, 1, 0)


def test_masks_of_different_sizes_have_changed_everywhere():
    found = change(np.ones((3, 4), np.uint8), np.ones((4, 3), np.uint8), None)

    assert (found["units"], found["changed"]) == (12, 12)
    assert (found["classes"], found["class_changed"]) == ([1], [12])
    with pytest.raises(SampleError, match="the mask has 4x3 pixels and the prediction 3x4"):
        change(np.ones((3, 4), np.uint8), np.ones((4, 3), np.uint8), np.ones((3, 4), np.uint8))


@settings(deadline=None, derandomize=True)
@given(sizes.flatmap(lambda size: hnp.arrays(np.uint8, size, elements=st.integers(0, 2))))
def test_at_a_boundary_is_where_scipy_finds_two_classes(one):
    """A window of 7x7 that the image's border cuts off; scipy's mode nearest adds no class."""
    highest, lowest = (
        of(one, 7, mode="nearest") for of in (ndimage.maximum_filter, ndimage.minimum_filter)
    )

    assert np.array_equal(at_boundary(one), highest != lowest)


@settings(deadline=None, derandomize=True)
@given(
    sizes.flatmap(
        lambda size: st.tuples(
            *[hnp.arrays(np.uint8, size, elements=st.sampled_from([0, 1, 2, 255]))] * 3
        )
    )
)
def test_every_count_is_that_of_plain_python(three):
    before, after, truth = three
    found = change(before, after, truth)
    pixels = list(zip(*(one.ravel().tolist() for one in three), strict=True))
    changed = [(b, a, t) for b, a, t in pixels if b != a]
    judged = [(b, a, t) for b, a, t in changed if t != 255]

    assert found["units"] == sum(b != 255 or a != 255 for b, a, _ in pixels)
    assert found["changed"] == len(changed)
    assert found["right_to_wrong"] == sum(b == t for b, _, t in judged)
    assert found["wrong_to_right"] == sum(a == t for _, a, t in judged)
    assert found["wrong_to_wrong"] == sum(t not in (b, a) for b, a, t in judged)
    for index, units, moved in zip(
        found["classes"], found["class_units"], found["class_changed"], strict=True
    ):
        assert units == sum(b == index for b, _, _ in pixels)
        assert moved == sum(b == index for b, _, _ in changed)
