"""Two-stage detectors: boxes of whole stacks against plain loops, axis by axis, and bad cards."""

from __future__ import annotations

import math

import numpy as np
import pytest
import two_stages
from PIL import Image

from simulator.errors import UserError
from simulator.experiments.common import chosen
from simulator.experiments.session import Session
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan

POST, ROI = "postprocess.proposal_", "graph.roi_align.coordinate_transformation_mode"
LOOPS = {
    "as trained": ([], {}, {}),
    "proposals' listing": (
        [f"{POST}box_offset={{anchors: 1, corners: 1}}"], {"anchors": 1, "corners": 1}, {}
    ),
    "proposals' corners": ([f"{POST}box_offset.corners=1"], {"corners": 1}, {}),
    "proposals' rounding": ([f"{POST}box_rounding.mode=floor"], {"whole": math.floor}, {}),
    "proposals' NMS": (
        [f"{POST}nms={{iou_threshold: 0.2, offset: 1}}"], {"threshold": 0.2, "nms": 1}, {}
    ),
    "the head's corners": (["postprocess.box_offset.corners=1"], {}, {"corners": 1}),
    "both": (
        [f"{POST}box_offset.corners=1", "postprocess.box_offset={anchors: 1, corners: 1}"],
        {"corners": 1}, {"anchors": 1, "corners": 1},
    ),
    "RoIAlign": ([f"{ROI}=output_half_pixel"], {}, {"mode": "output_half_pixel"}),
    "openvino": (["runtime={backend: openvino, graph_optimization_level: null}"], {}, {}),
}  # fmt: skip


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    Image.fromarray(two_stages.IMAGE).save(folder / "one.png")
    return folder


def walked(card, data, changes):
    """What one stack gives for the image: the second network's inputs, and the detections."""
    with Session.open(card, data, None, 0, 1, None, None) as session:
        one = chosen("pillow_bilinear_fp32", changes)
        stack = session.builder.stack("deploy", one, {"train": one, "deploy": one})
        executor = LocalExecutor(session.card.modality, session.builder.runtimes, workers=1)
        context = executor.context(session.dataset.items[0])
        walk = executor.open(plan({Arm("one"): stack.chain})).walk
        seen = {}
        walk(context, lambda recipe, value: seen.setdefault(recipe.stage, []).append(value))
        return seen["between"][0]["proposals"], seen["postprocess"][0].prediction


@pytest.mark.parametrize("name", LOOPS)
def test_boxes_are_those_of_plain_loops(name, data, tmp_path):
    if name == "openvino":
        pytest.importorskip("openvino")
    changes, of_proposals, of_head = LOOPS[name]

    given, found = walked(two_stages.write(tmp_path), data, changes)

    wanted = two_stages.proposals(**of_proposals)
    np.testing.assert_allclose(given, wanted, atol=1e-4)
    rows = two_stages.detections(wanted, **of_head)
    assert len(rows) > 4
    assert found.classes.tolist() == [label for _, label, _ in rows]
    np.testing.assert_allclose(found.scores, [score for score, _, _ in rows], atol=1e-4)
    np.testing.assert_allclose(found.boxes, [box for _, _, box in rows], atol=2e-3)


def told(folder, data, change=lambda card: None, **files):
    """The line for a card that is not right."""
    card = two_stages.write(folder, change, **files)
    with pytest.raises(UserError) as caught:
        Session.open(card, data, None, 0, 1, None, None)
    return str(caught.value)


def of(*keys):
    """A change of a card: the last key becomes the value before it; without a value it goes."""
    *path, last, value = keys

    def change(card):
        for key in path:
            card = card[key]
        card.pop(last) if value is None else card.update({last: value})

    return change


BAD = {
    "no second": (of("second", None), {}, "add second: {model: FILE.onnx}"),
    "no file": (lambda card: None, {"second": None}, "second.model: there is no file"),
    "no model": (of("second", {"tflite": {"fp32": "a.tflite"}}), {}, "FILE.onnx is missing"),
    "an empty name": (of("second", {"model": ""}), {}, "FILE.onnx is missing"),
    "no such output": (
        of("output", "head", "outputs", 0, "names", ["q"]), {},
        "/card.yaml: output: second.onnx has no output 'q'"),
    "another input": (
        of("output", "proposals", "input", "boxes"), {}, "unknown input 'boxes'"),
    "another feature": (
        of("output", "proposals", "features", ["q"]), {}, "has no output 'q'"),
    "another map": (lambda card: None, {"first": two_stages.first("q")}, "has no output 'p'"),
    "a fixed number": (
        lambda card: None, {"second": two_stages.second(rows=7)},
        "input 'proposals': expected ?x4, got 7x4"),
    "no proposals": (of("output", "proposals", None), {}, "kind regions needs proposals"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_card_that_is_not_right_is_one_line(name, data, tmp_path):
    change, files, expected = BAD[name]

    line = told(tmp_path, data, change, **files)

    assert expected in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("runtime.batch=2", r"runtime.batch takes a card with one network"),
        (f"{POST}box_offset.extent=1", "leave out proposal_box_offset.extent"),
        (f"{POST}box_rounding={{mode: floor, at: image}}", "proposal_box_rounding.at"),
    ],
)
def test_what_is_not_for_two_networks_is_refused(data, tmp_path, change, message):
    with pytest.raises(UserError, match=message) as caught:
        walked(two_stages.write(tmp_path), data, [change])
    assert "\n" not in str(caught.value)
