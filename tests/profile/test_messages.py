"""A mistake in a document is one line, about the key as it is written, in a person's words."""

import copy
import re

import pytest
import tiny
import yaml
from detection_cards import NMS, RETINANET
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import refused

from simulator.data.card import read_card
from simulator.data.recording import load_recording
from simulator.errors import UserError
from simulator.model.card import Card
from simulator.profile.load import load
from simulator.profile.suite import load_suite

OUTPUT = {
    "head": RETINANET, "exp_clamp": 4.0, "clip": "network", "nms": {**NMS, "kind": "greedy"},
    "operating_threshold": 0.5,
}  # fmt: skip
PROFILE = "schema: 1\nname: mine\nsummary: a test\nextends: pillow_fp32\n"
WHY = "nothing that changes a pixel has a default"
JARGON = re.compile(r"literal|tuple|constrained|\btag\b|valid |NoneType|function-|None|True|False")


def changed(document, dotted, value):
    """A copy with a key set anew, or removed where the value is ``...``."""
    document = copy.deepcopy(document)
    *parts, last = [int(p) if p.isdigit() else p for p in dotted.split(".")]
    inner = document
    for part in parts:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document


def line_of(text, dotted):
    """The line of the nearest part of a key that is there, from PyYAML's own marks."""
    node, line = yaml.compose(text), 1
    for part in dotted.split("."):
        if isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            pairs = {name.value: (name, value) for name, value in node.value}
            if part not in pairs:
                break
            name, node = pairs[part]
            line = name.start_mark.line + 1
        else:
            break
    return line


HEADS = "(offered: anchors, boxes, detections, grid, regions)"


@pytest.mark.parametrize(
    ("key", "value", "told", "what"),
    [
        ("head.strides", [8, 0, 32], "head.strides.1", "input should be greater than 0, got 0"),
        ("head.strides", [8, [16, 16, 1], 32], "head.strides.1", "2 numbers expected, got 3"),
        ("head.strides", [8, [16], 32], "head.strides.1", "2 numbers expected, got 1"),
        ("head.strides", [8, [16, "x"], 32], "head.strides.1.1", "a number expected, got 'x'"),
        ("head.strides", ["x", 8, 9], "head.strides.0",
         "a number or a list of 2 numbers expected, got 'x'"),
        ("head.strides", "x", "", "a list of numbers or lists of 2 numbers expected, got 'x'"),
        ("head.strides", [], "", "at least 1 expected, got 0"),
        ("head.cells", "ceeil", "", "unknown value 'ceeil'; did you mean 'ceil'? "
         "(offered: a list of lists of 2 whole numbers, ceil, floor)"),
        ("head.cells", [[1, 2], [3, 0]], "head.cells.1.1",
         "input should be greater than or equal to 1, got 0"),
        ("head.cells", 7, "",
         "ceil, floor or a list of lists of 2 whole numbers expected, got 7"),
        ("head.kind", "anchor", "", f"unknown value 'anchor'; did you mean 'anchors'? {HEADS}"),
        ("head.kind", ..., "", f"required, and not written {HEADS}"),
        ("head.kind", None, "",
         "anchors, grid, boxes, detections or regions expected, got nothing"),
        ("head.stride", 8, "", "unknown key 'stride'; did you mean 'strides'? (offered: anchors, "
         "cells, center, deltas, kind, layout, order, outputs, score, strides)"),
        ("head.anchors.kind", "ratio", "",
         "unknown value 'ratio'; did you mean 'ratios'? (offered: ratios, shapes)"),
        ("head.anchors.ratios", "x", "", "a list of numbers expected, got 'x'"),
        ("head.anchors.ratio", 1, "", "unknown key 'ratio'; did you mean 'ratios'? "
         "(offered: kind, outer, ratios, rounding, scales, sizes)"),
        ("head.anchors.sizes", [[20], [], [9]], "head.anchors.sizes.1",
         "at least 1 expected, got 0"),
        ("head.anchors", {"kind": "shapes", "shapes": [[[1, 2, 3]]]}, "head.anchors.shapes.0.0",
         "2 numbers expected, got 3"),
        ("head.deltas.weights", [1, 1, 1], "", "4 numbers expected, got 3"),
        ("head.deltas.weights", [1, 1, 1, 1, 1], "", "4 numbers expected, got 5"),
        ("head", 5, "", "keys expected (outputs, kind, …), got 5"),
        ("head.outputs", [5], "head.outputs.0",
         "keys expected (names, columns, shared, ignored), got 5"),
        ("nms", None, "", "keys expected (kind, iou_threshold, class_aware, offset, sigma, "
         "score_threshold, top_k_before, top_k_after, class_top_k_after, min_width, min_height, "
         "max_width, max_height, classes), got nothing"),
        ("nms.iou_threshold", 2, "", "input should be less than or equal to 1, got 2"),
        ("nms.iou_threshold", "x", "", "unknown value 'x' (offered: a number)"),
        ("nms.class_aware", 1, "", "true or false expected, got 1"),
        ("nms.kind", "greddy", "", "unknown value 'greddy'; did you mean 'greedy'? "
         "(offered: greedy, none, soft_gaussian, soft_linear)"),
        ("operating_threshold", "a", "", "a number expected, got 'a'"),
    ],
)  # fmt: skip
def test_of_a_union_only_what_was_meant_is_told(tmp_path, key, value, told, what):
    """The tag ``anchors`` is a key as well; cards take no ``model``, and so do not offer it."""
    path = tiny.card(tmp_path, task="detection", output=changed(OUTPUT, key, value))
    told = f"output.{told or key}"

    found = refused(Card, path)

    assert found == [f"{path}:{line_of(path.read_text(), told)}: {told}: {what}"]


def test_a_section_that_is_none_is_told_for_the_whole_card(tmp_path):
    path = tiny.card(tmp_path, output=5)

    assert refused(Card, path)[0].endswith(": output: keys expected, got 5")


@pytest.mark.parametrize(
    ("body", "whats"),
    [
        ("postprocess: {nms: {iou_threshold: 2}, box_offset: {anchors: 2}, exp_clamp: -1}",
         ["postprocess.box_offset.anchors: unknown value '2' (offered: 0, 1, model)",
          "postprocess.exp_clamp: input should be greater than 0, got -1",
          "postprocess.nms.iou_threshold: input should be less than or equal to 1, got 2"]),
        ("postprocess: {nms: {iou_threshold: [1], class_aware: yess, top_k_before: 0}}",
         ["postprocess.nms.iou_threshold: model or a number expected, got [1]",
          "postprocess.nms.class_aware: unknown value 'yess' (offered: false, model, true)",
          "postprocess.nms.top_k_before: input should be greater than or equal to 1, got 0"]),
        ("normalize: {mean: [1, 2], std: modl}",
         ["normalize.mean: 3 numbers expected, got 2",
          "normalize.std: unknown value 'modl'; did you mean 'model'? "
          "(offered: a list of 3 numbers, model)"]),
        ("decode: [backend]\nevidence: 5",
         ["decode: keys expected (backend, exif, idct, chroma_upsampling, device), "
          "got ['backend']",
          "evidence: keys expected (video, decode, develop, color, resize, geometry, normalize, "
          "front_end, graph, "
          "precision, runtime, prompts, postprocess, tokenize, feeds), got 5"]),
        ("graph: {batchnorm: {epsilon: 1e-5}}",
         ["graph.batchnorm.epsilon: keep or a number expected, got the text '1e-5'; "
          "YAML writes exponents as in 1.0e-5"]),
        ("graph: {activation: {table: {entries: 2, limit: 8}}}",
         ["graph.activation.table.interpolation: required, and not written "
          f"(offered: linear, nearest; {WHY})"]),
        ("color: {order: 2020-01-01}",
         ["color.order: unknown value '2020-01-01' (offered: bgr, model, rgb)"]),
        ("decode: {backend: ffmpeg, idct: null, swscale_flags: bicubic}\nresize: {domain: x}",
         ["decode.swscale_flags: ffmpeg offers a list with any of fast_bilinear, bilinear, "
          "bicubic, point, accurate_rnd, full_chroma_int, full_chroma_inp, bitexact here, "
          "got bicubic",
          "resize.domain: unknown value 'x' (offered: rgb, yuv)"]),
    ],
)  # fmt: skip
def test_every_mistake_in_a_profile_is_a_line(write, body, whats):
    path = write(f"{PROFILE}{body}\n")

    found = refused(load, path)

    assert [line.partition(": ")[2] for line in found] == whats
    assert found[0].startswith(f"{path}:5: ")


@pytest.mark.parametrize(
    ("read", "text", "lines"),
    [
        (lambda path: load_suite(str(path)), "columns: {a: {b: c}}\ncombined: 5\ntrain: [x]",
         ["6: train: text expected, got ['x']", "4: columns.a.b: keys expected, got 'c'",
          "5: combined: keys expected, got 5"]),
        (read_card, "task: segmentation\nformat: index_masks\nimages: i\nannotations: a\n"
         "train_ids:\n  70000: 1\n  '3': 300\n  4: x\nignore: void",
         ["12: ignore: a whole number expected, got 'void'",
          "9: train_ids.70000: input should be less than or equal to 65535, got 70000",
          "10: train_ids.3: input should be less than or equal to 255, got 300",
          "11: train_ids.4: a whole number expected, got 'x'"]),
        (load_recording, "kind: output\nmatch: name\nfile: f\nmodel: m\ndevise: d",
         ["1: device: required, and not written",
          "4: kind: unknown value 'output'; did you mean 'outputs'? "
          "(offered: frames, outputs, predictions, tensors)",
          "3: summary: unknown key 'summary' "
          "(offered: after, device, file, kind, latency, match, model, name, schema)",
          "8: devise: unknown key 'devise'; did you mean 'device'? "
          "(offered: after, device, file, kind, latency, match, model, name, schema)"]),
    ],
)  # fmt: skip
def test_all_documents_are_told_of_in_the_same_way(tmp_path, read, text, lines):
    path = tmp_path / "d.yaml"
    path.write_text(f"schema: 1\nname: mine\nsummary: a test\n{text}\n")

    assert refused(read, path) == [f"{path}:{line}" for line in lines]


def keys(value, key=()):
    """The key of every value in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in pairs:
        yield (*key, name)
        if isinstance(inner, (dict, list)):
            yield from keys(inner, (*key, name))


LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 20), st.sampled_from([0.5, 1e9, float("nan")]),
    st.sampled_from(["model", "none", "anchors", "ratios", "ceil", "x", "8", ""]),
)  # fmt: skip
VALUE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.sampled_from(["kind", "anchors", "nms", "x"]), inner, max_size=3),
    ),
    max_leaves=5,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.sampled_from(list(keys(OUTPUT))), value=VALUE)
def test_any_value_anywhere_is_told_in_lines_about_that_key(tmp_path, key, value):
    """A line is of the key, of what is in it, or of what holds it; and in a person's words."""
    dotted = ".".join(map(str, key))
    path = tiny.card(tmp_path, task="detection", output=changed(OUTPUT, dotted, value))
    try:
        Card(path)
    except UserError as error:
        for line in str(error).splitlines():
            _, told, what = line.removeprefix(f"{path}:").split(": ", 2)
            parts = told.split(".")[1:]
            shared = min(len(parts), len(key))
            assert parts[:shared] == [str(part) for part in key[:shared]] or "required" in what
            assert not JARGON.search(what.partition("got ")[0]), line
