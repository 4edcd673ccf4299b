"""Average precision of five images, worked out on paper.

Classes: cell, dust, ghost (which no image has). Boxes coincide (IoU 1) or lie apart (IoU 0), but
for one of IoU 0.78: a match at the 6 thresholds 0.50 ... 0.75, none at the 4 from 0.80 on.

image  objects                              detections
0      cell A 100x100                       A at 0.9; 10x10 beside it at 0.8
1      cell B 100x100, cell S 20x20         78x100 of B at 0.7; S at 0.6
2      crowd of cells 200x200               50x50 inside at 0.95 and at 0.85
3      -                                    cell 100x100 at 0.5
4      cell D 100x100, dust E and F 50x50,  E at 0.4; the difficult one at 0.65
       a difficult cell 100x100

cell: to be found are A, B, S, D: 4. Both boxes in the crowd and the one on the difficult cell are
ignored. By score, with (precision, recall):
    IoU <= 0.75   0.9 T (1, 1/4)  0.8 F (1/2, 1/4)  0.7 T (2/3, 2/4)  0.6 T (3/4, 3/4)  0.5 F
                  26 recalls 0 ... 0.25 at 1, 50 recalls to 0.75 at 3/4, 25 at 0: 63.5 / 101
    IoU >= 0.80   0.9 T (1, 1/4)  0.8 F             0.7 F (1/3, 1/4)  0.6 T (2/4, 2/4)  0.5 F
                  26 at 1, 25 recalls to 0.50 at 1/2, 50 at 0: 38.5 / 101
    AP = (6 x 63.5 + 4 x 38.5) / 1010 = 535 / 1010
dust: of 2, E is found: 51 recalls 0 ... 0.50 at 1: AP = 51 / 101 = 510 / 1010

small (to 32^2): cell S. Left of the detections: 0.8 F, 0.6 T (1/2, 1): AP 1/2. dust has none.
medium (to 96^2): no cell; dust as above, 51 / 101.
large: cells A, B, D; 0.8 is small and the 78x100 of B is medium, so ignored where unmatched.
    IoU <= 0.75   0.9 T (1, 1/3)  0.7 T (1, 2/3)  0.5 F: 67 recalls 0 ... 0.66 at 1: 67 / 101
    IoU >= 0.80   0.9 T (1, 1/3)                  0.5 F: 34 recalls 0 ... 0.33 at 1: 34 / 101
    AP = (6 x 67 + 4 x 34) / 1010 = 538 / 1010
recall: cell (6 x 3/4 + 4 x 2/4) / 10 = 0.65, dust 1/2: mean 0.575
"""

from __future__ import annotations

import numpy as np
import pytest

from simulator.data.truth import Boxes
from simulator.tasks.detection import specimen
from simulator.tasks.detection.metric import Ranking, evaluate

LABELS = ("cell", "dust", "ghost")
CELL, DUST = 0, 1
A = B = D = (0, 0, 100, 100)
S = (300, 0, 320, 20)
E, F = (300, 0, 350, 50), (300, 100, 350, 150)


def truth(*objects):
    """Objects (x1, y1, x2, y2), class, and ``crowd`` or ``difficult``."""
    corners = np.array([box for box, *_ in objects], np.float64).reshape(-1, 4)
    sides = corners[:, 2:] - corners[:, :2]
    return Boxes(
        xywh=np.hstack([corners[:, :2], sides]),
        classes=np.array([one[1] for one in objects], np.int64),
        crowd=np.array(["crowd" in one for one in objects], bool),
        area=sides.prod(axis=1),
        difficult=np.array(["difficult" in one for one in objects], bool),
    )


def detections(*found):
    """Detections (x1, y1, x2, y2), class, score."""
    return specimen.found(*((*box, score, index) for box, index, score in found))


TRUTHS = (
    truth((A, CELL)),
    truth((B, CELL), (S, CELL)),
    truth(((0, 0, 200, 200), CELL, "crowd")),
    truth(),
    truth((D, CELL), (E, DUST), (F, DUST), ((0, 300, 100, 400), CELL, "difficult")),
)
FOUND = (
    detections((A, CELL, 0.9), ((200, 200, 210, 210), CELL, 0.8)),
    detections(((0, 0, 78, 100), CELL, 0.7), (S, CELL, 0.6)),
    detections(((10, 10, 60, 60), CELL, 0.95), ((120, 120, 170, 170), CELL, 0.85)),
    detections((A, CELL, 0.5)),
    detections(((0, 300, 100, 400), CELL, 0.65), (E, DUST, 0.4)),
)


def test_five_images_give_what_was_worked_out_on_paper():
    assert evaluate(FOUND, TRUTHS, LABELS) == {
        "mAP": pytest.approx(1045 / 2020, abs=1e-12),
        "AP50": pytest.approx((63.5 + 51) / 202, abs=1e-12),
        "AP75": pytest.approx((63.5 + 51) / 202, abs=1e-12),
        "AP_small": pytest.approx(1 / 2, abs=1e-12),
        "AP_medium": pytest.approx(51 / 101, abs=1e-12),
        "AP_large": pytest.approx(538 / 1010, abs=1e-12),
        "AR100": pytest.approx(0.575, abs=1e-12),
        "AP cell": pytest.approx(535 / 1010, abs=1e-12),
        "AP dust": pytest.approx(51 / 101, abs=1e-12),
        "AP ghost": None,
    }


def test_resamples_of_five_images_give_what_was_worked_out_on_paper():
    """Without image 4 there is no dust, and of cells A, B and S are to be found.

    IoU <= 0.75: T (1, 1/3) F T (2/3, 2/3) T (3/4, 1) F: 34 recalls at 1, 67 at 3/4 = 84.25 / 101.
    IoU >= 0.80: T (1, 1/3) F F T (2/4, 2/3) F: 34 at 1, 33 recalls to 0.66 at 1/2 = 50.5 / 101.

    Image 0 twice, image 3 three times: T T (1, 1), at every IoU.
    """
    counts = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [2, 0, 0, 3, 0], [0, 0, 4, 1, 0]])
    values = Ranking.of(FOUND, TRUTHS, len(LABELS)).resampled(counts)
    expected = [1045 / 2020, (6 * 84.25 + 4 * 50.5) / 1010, 1, np.nan]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
