"""Pictures of changes: each box and each pixel has the color of what became of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from simulator.contract import Key, Rectangle
from simulator.data.truth import Boxes
from simulator.tasks.detection.specimen import found
from simulator.tasks.detection.task import Detection
from simulator.tasks.segmentation import view as masks

IMAGE = np.zeros((60, 80, 3), np.uint8)
LOST, GAINED, GRAY = (213, 94, 0), (86, 180, 233), (200, 200, 200)
PURPLE, YELLOW, GREEN = (204, 121, 167), (240, 228, 66), (0, 158, 115)


def names(index):
    return ("cat", "dog", "cow")[index]


def drawn(before, after, truth, threshold):
    """Both panels of a detector with this operating threshold."""
    output, network = (SimpleNamespace(**one) for one in ({"operating_threshold": threshold},
                                                          {"label": names}))  # fmt: skip
    task = SimpleNamespace(output=output, network=network)
    return Detection.view().panels(task, (IMAGE, IMAGE), before, after, truth)


def test_every_fate_has_its_color_and_its_words():
    before = found(
        (0, 0, 10, 10, 0.95, 0),  # kept
        (20, 0, 30, 10, 0.90, 0),  # lost
        (40, 0, 50, 10, 0.85, 0),  # relabelled
        (60, 0, 70, 10, 0.80, 0),  # rescored
        (0, 30, 10, 40, 0.75, 1),  # moved: the pair's IoU is 10 * 7 / (10 * 13)
        (0, 50, 10, 60, 0.20, 1),  # under the threshold
    )
    after = found(
        (0, 0, 10, 10, 0.95, 0),
        (40, 0, 50, 10, 0.85, 1),
        (0, 33, 10, 43, 0.75, 1),
        (60, 30, 70, 40, 0.60, 2),  # gained
        (60, 0, 70, 10, 0.40, 0),
    )
    train, deploy = drawn(before, after, None, 0.3)
    assert train.title == "train: 5 objects (score > 0.3)"
    assert train.rectangles == (
        Rectangle([0, 0, 10, 10], GRAY, width=1),
        Rectangle([60, 0, 70, 10], GREEN, "cat 0.80"),
        Rectangle([0, 30, 10, 40], YELLOW, "dog 0.75"),
        Rectangle([40, 0, 50, 10], PURPLE, "cat 0.85"),
        Rectangle([20, 0, 30, 10], LOST, "cat 0.90"),
    )
    assert [(r.color, r.caption) for r in deploy.rectangles] == [
        (GRAY, ""),
        (GREEN, "cat 0.40"),
        (YELLOW, "dog 0.75"),
        (PURPLE, "dog 0.85"),
        (GAINED, "cow 0.60"),
    ]
    assert [key.words for key in train.legend] == [
        "kept: 1",
        "rescored: 1",
        "moved: 1",
        "relabelled: 1",
        "gained (deploy only): 1",
        "lost (train only): 1",
    ]
    assert train.legend == deploy.legend


def test_the_truth_is_dashed_in_both_panels_and_below_the_answers():
    truth = Boxes(
        np.array([[5.0, 6, 10, 20], [1, 2, 3, 4]]),
        np.array([0, 1]),
        np.array([False, True]),
        np.array([200.0, 12]),
        np.array([False, False]),
    )
    both = drawn(found((0, 0, 9, 9, 0.5, 0)), found(), truth, 0.1)
    for panel in both:
        outline, crowd = panel.rectangles[:2]
        assert outline == Rectangle([5, 6, 15, 26], (255, 255, 255), "", dashed=True, width=1)
        assert (crowd.box, crowd.caption) == ([1, 2, 4, 6], "crowd")
        assert panel.legend[-1] == Key((255, 255, 255), "truth: 2", dashed=True)
    assert [panel.title for panel in both] == [
        "train: 1 object (score > 0.1)",
        "deploy: 0 objects (score > 0.1)",
    ]


def test_an_image_without_objects_is_drawn_bare():
    none = Boxes(
        np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0), np.zeros(0, bool)
    )
    for panel in drawn(found(), found(), none, 0.3):
        assert panel.rectangles == () and panel.legend == ()


def test_the_colors_are_those_of_the_voc_development_kit():
    """The table of the VOC 2012 segmentation guidelines: aeroplane, bicycle, ..., the border."""
    known = {
        0: (0, 0, 0),
        1: (128, 0, 0),
        2: (0, 128, 0),
        3: (128, 128, 0),
        4: (0, 0, 128),
        7: (128, 128, 128),
        8: (64, 0, 0),
        15: (192, 128, 128),
        20: (0, 64, 128),
        255: (224, 224, 192),
    }
    colors = masks.colormap(256)
    assert {index: tuple(colors[index].tolist()) for index in known} == known
    assert len(np.unique(colors, axis=0)) == 256


def test_masks_are_painted_and_changes_marked():
    before = np.zeros((60, 80), np.uint8)
    before[:, 40:] = 1  # the boundary runs between the columns 39 and 40
    after = before.copy()
    after[0, 38] = 1  # two pixels from it
    after[0, 36] = 1  # four
    truth = np.full((60, 80), 255, np.uint8)
    train, deploy, changes, annotated = masks.panels((IMAGE, IMAGE), before, after, truth, names)
    assert [panel.title for panel in (train, deploy, annotated)] == ["train", "deploy", "truth"]
    assert (train.overlay == before).all() and (deploy.overlay == after).all()
    assert train.palette[0, 3] == 0 and tuple(train.palette[1, :3]) == (128, 0, 0)
    assert train.legend == deploy.legend == (Key((128, 0, 0), "dog"),)
    assert annotated.legend == (Key((224, 224, 192), "not judged"),)
    assert changes.title == "changed: 0.04% of pixels"  # 2 of 4800
    assert changes.palette[changes.overlay[0, 38]].tolist() == [*YELLOW, 255]
    assert changes.palette[changes.overlay[0, 36]].tolist() == [*LOST, 255]
    assert np.count_nonzero(changes.overlay) == 2
    assert [key.words for key in changes.legend] == [
        "changed at a boundary: 0.02%",
        "changed inside: 0.02%",
    ]


def test_where_neither_mask_has_an_answer_nothing_is_counted():
    before = np.zeros((60, 80), np.uint8)
    before[:40] = 255  # 1600 pixels with an answer
    after = before.copy()
    after[50, :8] = 2
    train, deploy, changes = masks.panels((IMAGE, IMAGE), before, after, None, names)
    assert train.legend == (Key((224, 224, 192), "no answer"),)
    assert [key.words for key in deploy.legend] == ["cow", "no answer"]
    assert changes.title == "changed: 0.50% of pixels"


def test_a_mask_of_a_turned_image_is_drawn_on_what_is_common():
    before, after = np.zeros((60, 80), np.uint8), np.zeros((80, 60), np.uint8)
    drawn = masks.panels((IMAGE, IMAGE), before, after, None, names)
    assert [panel.image.shape[:2] for panel in drawn] == [(60, 80), (60, 60), (60, 80)]
    assert drawn[2].title == "changed: 100.00% of pixels"
