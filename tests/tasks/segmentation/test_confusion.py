import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simulator.errors import SampleError
from simulator.tasks.segmentation.confusion import Sparse, confusion, tally

TRUTH = np.array([[0, 0, 1, 1], [0, 0, 1, 255], [2, 2, 1, 255], [2, 2, 0, 0]], np.uint8)
GUESS = np.array([[0, 0, 1, 0], [0, 1, 1, 1], [2, 2, 2, 0], [2, 0, 0, 0]], np.uint8)
"""Class 3 is nowhere; two pixels are not judged."""

masks = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.tuples(
            hnp.arrays(np.uint8, (3, 4), elements=st.sampled_from([0, 1, 2, 255])),
            hnp.arrays(np.uint8, (3, 4), elements=st.sampled_from([0, 1, 2, 3, 9, 255])),
        ),
        min_size=n,
        max_size=n,
    )
)


def score(rows, classes):
    """The metrics, the IoU of each class, and how many pixels are judged."""
    images = tally(rows, classes)
    found = images.values([str(index) for index in range(classes)])
    iou = [found.pop(str(index)) for index in range(classes)]
    return found | {"iou": iou, "pixels": images.truth.sum()}


def figures(*pairs, classes=4):
    return score([confusion(*pair, classes) for pair in pairs], classes)


def transcribed(pairs, classes, lost=()):
    """The mean IoU of the classes that are not *lost* in plain Python, pixel by pixel."""
    tp, fp, fn = [0] * classes, [0] * classes, [0] * classes
    for truth, guess in pairs:
        for t, p in zip(truth.ravel().tolist(), guess.ravel().tolist(), strict=True):
            if t == 255 or p == 255:
                continue
            if t == p:
                tp[t] += 1
                continue
            fn[t] += 1
            if p < classes:
                fp[p] += 1
    unions = [sum(counts) for counts in zip(tp, fp, fn, strict=True)]
    shares = [tp[c] / unions[c] for c in range(classes) if unions[c] and c not in lost]
    return sum(shares) / len(shares) if shares else None


def judged(pairs):
    """The classes that the truth has where there is an answer."""
    return {t for truth, guess in pairs
            for t, p in zip(truth.ravel().tolist(), guess.ravel().tolist(), strict=True)
            if t != 255 and p != 255}  # fmt: skip


def test_four_by_four_pixels_by_hand():
    """Of 14 judged pixels:

    class 0: 6 are it, 5 of them found, 1 taken for 1; 1 of class 1 and 1 of class 2 are taken for
    it: 5 / 8. Class 1: 4 are it, 2 found, 1 taken for 0 and 1 for 2: 2 / (4 + 1). Class 2: 4 are
    it, 3 found; 1 of class 1 is taken for it: 3 / 5. Class 3 is nowhere.
    """
    found = confusion(TRUTH, GUESS, 4)
    got = score([found], 4)

    assert found == Sparse([0, 1, 5, 6, 7, 10, 12], [5, 1, 1, 2, 1, 1, 3])
    assert got["iou"] == [5 / 8, 2 / 5, 3 / 5, None]
    assert got["mIoU"] == pytest.approx((5 / 8 + 2 / 5 + 3 / 5) / 3, abs=1e-15)
    assert got["pixel_accuracy"] == 10 / 14
    assert got["mean_accuracy"] == pytest.approx((5 / 6 + 2 / 4 + 3 / 4) / 3, abs=1e-15)
    assert got["pixels"] == 14


def test_a_perfect_prediction_scores_one():
    got = figures((TRUTH, np.where(TRUTH == 255, 3, TRUTH).astype(np.uint8)))

    assert (got["mIoU"], got["pixel_accuracy"], got["mean_accuracy"]) == (1, 1, 1)
    assert got["iou"] == [1, 1, 1, None]


@pytest.mark.parametrize(
    ("truth", "guess", "iou", "accuracies"),
    [
        # class 0: 1 of 2 pixels; class 1 is only predicted, which counts as 0
        ([0, 0], [0, 1], [0.5, 0, None, None], (0.5, 0.5, 2)),
        # 7 of 4 classes is a miss and no false alarm: no more classes
        ([0, 0], [0, 7], [0.5, None, None, None], (0.5, 0.5, 2)),
        # pixels without an answer are not judged
        ([0, 1], [0, 255], [1, None, None, None], (1, 1, 1)),
    ],
)
def test_two_pixels_by_hand(truth, guess, iou, accuracies):
    got = figures((np.array([truth], np.uint8), np.array([guess], np.uint8)))

    assert got["iou"] == iou
    known = [one for one in iou if one is not None]
    assert got["mIoU"] == sum(known) / len(known)
    assert (got["pixel_accuracy"], got["mean_accuracy"], got["pixels"]) == accuracies


def test_where_nothing_is_judged_nothing_is_known():
    nothing = np.full((2, 2), 255, np.uint8)
    rows = [confusion(nothing, np.zeros_like(nothing), 2)]
    got = score(rows, 2)

    assert rows == [Sparse([], [])]
    assert (got["mIoU"], got["pixel_accuracy"], got["mean_accuracy"]) == (None, None, None)
    assert got["iou"] == [None, None]
    assert np.isnan(tally(rows, 2).mean_iou(np.ones((1, 1), np.int64))).tolist() == [True]
    assert score([], 2)["mIoU"] is None


def test_the_set_is_scored_by_the_sum_of_its_images():
    """Class 0: 1 of 1 and 1 of 4 pixels are 2 / 5 together, not the mean 5 / 8; class 1: 0 / 3."""
    one = np.array([[0]], np.uint8), np.array([[0]], np.uint8)
    four = np.zeros((1, 4), np.uint8), np.array([[0, 1, 1, 1]], np.uint8)

    assert figures(one, four)["iou"] == [2 / 5, 0, None, None]


def test_a_truth_of_another_size():
    with pytest.raises(
        SampleError, match=r"has 4x3 pixels and the prediction 3x4; was .* .EXIF. by"
    ):
        confusion(np.zeros((3, 4), np.uint8), np.zeros((4, 3), np.uint8), 2)
    with pytest.raises(SampleError, match=r"has 4x3 pixels and the prediction 5x3$"):
        confusion(np.zeros((3, 4), np.uint8), np.zeros((3, 5), np.uint8), 2)


def test_a_truth_with_a_class_that_the_model_does_not_know():
    with pytest.raises(SampleError, match="the mask has class 2, but the model knows 0 to 1"):
        confusion(TRUTH, GUESS, 2)


@settings(deadline=None, derandomize=True)
@given(masks)
def test_the_figure_is_that_of_plain_python(pairs):
    rows = [confusion(*pair, 3) for pair in pairs]

    assert score(rows, 3)["mIoU"] == pytest.approx(transcribed(pairs, 3), abs=1e-12)


@settings(deadline=None, derandomize=True)
@given(masks, st.data())
def test_a_resample_is_the_figure_of_the_images_that_were_drawn(pairs, data):
    drawn = data.draw(
        st.lists(st.integers(0, len(pairs) - 1), min_size=len(pairs), max_size=len(pairs))
    )
    counts = np.stack([np.ones(len(pairs), np.int64), np.bincount(drawn, minlength=len(pairs))])

    found = tally([confusion(*pair, 3) for pair in pairs], 3).mean_iou(counts)

    for value, images in zip(found, [pairs, [pairs[i] for i in drawn]], strict=True):
        expected = transcribed(images, 3, lost=judged(pairs) - judged(images))
        assert value == pytest.approx(np.nan if expected is None else expected, nan_ok=True)
