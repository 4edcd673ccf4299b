"""Boxes and masks follow a lens: held against a picture of the same objects that is distorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.conditions.condition import under
from simulator.data.masks import IGNORE, ArrayMask, MovedMask
from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import areas
from simulator.tasks.detection.moving import moved

LEVELS = [f"geometric_distortion:{level}" for level in range(1, 6)]


def boxes(*xywh):
    array = np.array(xywh, np.float64).reshape(-1, 4)
    none = np.zeros(len(array), bool)
    area = areas(np.concatenate([array[:, :2], array[:, :2] + array[:, 2:]], axis=1))
    return Boxes(array, np.arange(len(array)), none, area, none)


@pytest.mark.parametrize("text", LEVELS)
@pytest.mark.parametrize("box", [(10, 20, 60, 30), (150, 100, 45, 60), (90, 70, 20, 20)])
def test_a_box_is_where_the_distorted_object_is(text, box):
    """A white rectangle is drawn, distorted as an image, and found again by its pixels."""
    condition = under(text).condition
    image = np.zeros((180, 240, 3), np.uint8)
    x, y, width, height = box
    image[y : y + height, x : x + width] = 255

    after = condition.apply(image, np.random.default_rng(0))
    rows, columns = np.nonzero(after[..., 0] > 127)
    seen = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]

    found = moved(boxes(box), condition.warp, (180, 240)).xywh[0]
    corners = [found[0], found[1], found[0] + found[2], found[1] + found[3]]
    assert np.abs(np.subtract(corners, seen)).max() <= 2  # a curved side ends in a thin tip


@pytest.mark.parametrize("text", LEVELS)
def test_a_mask_is_the_distorted_picture_of_itself(text):
    """Two classes as levels 0 and 255: away from the edge between them they are equal."""
    condition = under(text).condition
    mask = np.zeros((90, 121), np.uint8)
    mask[30:70, 40:90] = 1
    picture = condition.apply(np.repeat(255 * mask[..., None], 3, axis=2), np.random.default_rng(0))

    found = MovedMask(ArrayMask(mask), condition.warp).read()

    sure = (picture[..., 0] < 60) | (picture[..., 0] > 195)
    assert np.array_equal(found[sure], (picture[..., 0] > 127)[sure])
    assert set(np.unique(found)) <= {0, 1, IGNORE}


@given(
    st.sampled_from(LEVELS),
    st.integers(2, 300),
    st.integers(2, 300),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_point_comes_from_where_it_went(text, height, width, across, down):
    """Forward and back again: the source of the new place is the old one."""
    condition = under(text).condition
    warp = condition.warp((height, width))
    rows, columns = np.mgrid[0:height, 0:width]
    at = int(down * (height - 1)), int(across * (width - 1))
    row, column = warp.sources[at]
    gone = warp.forward(np.array([[column + 0.5, row + 0.5]]))[0]
    assert gone == pytest.approx([columns[at] + 0.5, rows[at] + 0.5], abs=0.01)


def test_an_object_that_is_gone_is_left_out_and_others_keep_their_flags():
    found = moved(
        boxes((0, 0, 0, 0), (60, 40, 30, 20)), under(LEVELS[0]).condition.warp, (100, 150)
    )
    assert found.classes.tolist() == [1]
    assert found.area[0] == pytest.approx(found.xywh[0, 2] * found.xywh[0, 3])


def test_what_stays_in_place_moves_no_truth():
    assert under("fog:3").warp is None
    assert under("geometric_distortion:3,crop224").warp is None
    assert under("geometric_distortion:3").warp is not None
