"""Detection and segmentation from the command's inputs to its run folder."""

import hashlib
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
import yaml
from PIL import Image
from stopping import StopsAt

from simulator import cli, compare, explain, sweep, worst
from simulator.results.json_text import finite
from simulator.typed import plain

SAME = ("pillow_fp32", "pillow_fp32")
SIDES = ("--train", SAME[0], "--deploy", SAME[1])
TASKS = ["detection", "segmentation"]
HEADLINE = {"detection": "mAP", "segmentation": "mIoU"}
BGR = "deploy.color.order=bgr"
"""Red becomes blue and blue red; of two squares of each color four change their class."""
POST = {
    "detection": "deploy.postprocess.nms.score_threshold=1.0",
    "segmentation": "deploy.postprocess.logits_upsample.mode=nearest",
}
SUITE = {
    "schema": 1, "name": "trial", "summary": "two axes", "train": "pillow_fp32",
    "columns": {
        "resize": {"nearest": {"resize": "opencv-nearest"}},
        "strict": {"nms": {"postprocess.nms.score_threshold": 1.0},
                   "logits": {"postprocess.logits_upsample.mode": "nearest"},
                   "bgr": {"color.order": "bgr"}},
        "pool": {"ceil": {"graph.pooling.ceil_mode": "ceil"}},
    },
}  # fmt: skip


@pytest.fixture(params=TASKS)
def given(request, cache, tmp_path):
    """A model card and a data card of one task, as keyword arguments."""
    card = tiny_tasks.card(tmp_path / "model", request.param)
    return request.param, {"model": card, "data": tiny_tasks.data(tmp_path / "data", request.param)}


def test_a_perfect_network_scores_one_and_equal_stacks_never_flip(given, tmp_path):
    task, inputs = given
    run = compare(*SAME, **inputs, out=tmp_path / "run")
    found = run.summary

    assert found["task"] == task and found["metric"] == HEADLINE[task]
    assert found["train"]["metric"][HEADLINE[task]] == 1
    assert found["flips"]["count"] == 0
    assert found["flips"]["ci95"] == pytest.approx([0, 3 / 4], rel=0.01)  # the rule of three
    assert found["samples"] == found["labelled"] == 4
    rows = pq.read_table(run.folder / "records.parquet").to_pylist()

    assert len(rows) == 8
    first = rows[0]
    if task == "detection":
        assert np.reshape(first["boxes"], (-1, 4)).tolist() == [[0, 0, 16, 16], [32, 16, 48, 32]]
        assert first["classes"] == [0, 2] and len(first["scores"]) == 2
    else:
        assert first["cells"] == [0, 10] and first["pixels"] == [256, 256]  # 4 columns a class
    assert (first["changed"], first["side"]) == (0, "train")


def test_a_loss_is_counted_and_drawn(given, tmp_path):
    """Of three classes one keeps its score of 1, two have 0."""
    task, inputs = given
    run = compare(*SAME, **inputs, overrides=[BGR], out=tmp_path / "run")
    found = run.summary

    assert found["delta"][HEADLINE[task]]["value"] == pytest.approx(-2 / 3)
    assert found["flips"]["count"] > 0
    if task == "detection":
        assert (found["flips"]["relabelled"], found["flips"]["units"]) == (4, 6)
    for flip in found["worst_flips"]:
        picture = Image.open(run.folder / flip["picture"])
        assert picture.format == "PNG" and picture.width > 64


def test_an_axis_of_the_task_is_swapped_alone(given, tmp_path):
    """No score is above 1, so every square is lost."""
    task, inputs = given
    found = compare(*SAME, **inputs, overrides=[POST[task]], out=tmp_path / "run").summary

    (axis,) = found["axes"]
    assert axis["axis"] == {"detection": "nms", "segmentation": "logits_upsample"}[task]
    assert "answers differ in 3 of 4 images" in axis["effect"]["why"]
    assert not axis["effect"]["null"]
    if task == "detection":
        assert (found["flips"]["lost"], found["flips"]["units"]) == (6, 6)
        assert found["delta"]["mAP"]["value"] == -1


def test_explain_sweep_and_worst(given, tmp_path):
    task, inputs = given
    metric = HEADLINE[task]
    blame = explain(
        *SAME, **inputs, out=tmp_path / "explain",
        overrides=[BGR, "deploy.resize={backend: opencv, interpolation: nearest, "
                   "antialias: false, domain: rgb}"],
    ).summary  # fmt: skip
    assert set(blame["blame"]) == {"flip_rate", metric}
    assert abs(blame["blame"][metric]["residual"]) < 1e-9
    assert blame["null"] == ["resize"]

    suite = tmp_path / "suite.yaml"
    suite.write_text(yaml.safe_dump(SUITE))
    (swept,) = sweep(str(suite), models=[inputs["model"]], data=inputs["data"], out=tmp_path / "s")
    table = swept.summary
    other = "strict/logits" if task == "detection" else "strict/nms"
    assert set(table["left_out"]) == {other, "pool/ceil"}
    assert table["left_out"][other].startswith("changes nothing here")
    assert table[metric] == 1 and table["columns"]["strict"]["max_drop"] > 0
    assert table["columns"]["resize"]["mean_drop"] == 0

    path = worst(str(suite), **inputs, out=tmp_path / "worst").summary
    assert path["path"][0]["added"].startswith("strict/")
    assert path["path"][0]["drop"] == pytest.approx(table["columns"]["strict"]["max_drop"])


@pytest.mark.parametrize("task", TASKS)
def test_a_run_is_resumed_after_what_it_has(task, cache, tmp_path, capsys):
    inputs = {
        "model": tiny_tasks.card(tmp_path / "model", task),
        "data": tiny_tasks.data(tmp_path / "data", task, copies=20),
        "overrides": [BGR],
    }
    whole = compare(*SAME, **inputs, out=tmp_path / "whole").summary
    with pytest.raises(KeyboardInterrupt):
        compare(*SAME, **inputs, out=tmp_path / "run", progress=StopsAt(40))

    assert cli.main(["resume", str(tmp_path / "run")]) == 0

    again = json.loads((tmp_path / "run" / "summary.json").read_text())
    whole = json.loads(json.dumps(finite(plain(whole))))
    for part in ("train", "deploy", "delta", "flips", "worst_flips"):
        assert again[part] == whole[part], part


def test_a_gate_on_the_headline(given, tmp_path, capsys):
    task, inputs = given
    metric = HEADLINE[task]
    asked = [*SIDES, "--set", BGR, "--model", str(inputs["model"]), "--data", str(inputs["data"])]

    code = cli.main([*asked, "--fail-on", f"delta.{metric} < -0.1%", "--out", str(tmp_path / "r")])
    assert code == cli.GATE_FAILED
    assert f"FAILED delta.{metric} < -0.1%" in capsys.readouterr().out

    code = cli.main([*asked, "--fail-on", "delta.top1 < 0", "--out", str(tmp_path / "other")])
    assert code == 2
    assert "names delta.top1, which this run does not have" in capsys.readouterr().err


def test_images_that_nobody_has_annotated_flip_all_the_same(given, tmp_path):
    task, inputs = given
    images = tmp_path / "data" / "images"
    found = compare(
        *SAME, model=inputs["model"], data=images, overrides=[BGR], out=tmp_path / "run"
    ).summary

    assert found["labelled"] == 0 and found["delta"][HEADLINE[task]] is None
    assert found["flips"]["count"] > 0
    assert any("no labels" in warning for warning in map(str, found["warnings"]))


@pytest.fixture
def boxes(tmp_path):
    """A detector and four images of squares."""
    return {
        "model": tiny_tasks.card(tmp_path / "model"),
        "data": tiny_tasks.data(tmp_path / "data"),
    }


def head(**changed):
    return {"head": {**tiny_tasks.HEAD, **changed}}


MISSING = [{"names": ["scores"], "columns": ["scores"]}, {"names": ["boxes"], "columns": ["boxes"]}]
TWO_ANCHORS = {"kind": "shapes", "shapes": [[[16, 16], [8, 8]]]}


@pytest.mark.parametrize(
    ("card", "data", "more", "says"),
    [
        ({}, "segmentation", [], "data.yaml: task: segmentation, and the model is for detection"),
        ({}, None, [], "there are no built-in samples for "),
        (head(outputs=MISSING), "detection", [],
         "model.onnx has no output 'boxes'; it has scores 1x16x3, deltas 1x16x4"),
        (head(anchors=TWO_ANCHORS), "detection", [],
         "(1, 32, 3), 4x4x2 boxes, each 3 scores; got (1, 16, 3)"),
        ("labels: labels.txt\n", "detection", [], "labels: detection needs a file of class names"),
        ({}, "detection", ["--fail-on", "flips.lost > 5%"],
         "the unit in the rule 'flips.lost > 5%' does not fit: flips.lost is a count"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_line(tmp_path, capsys, card, data, more, says):
    """Two anchors a cell are 32 rows, and the network gives 16."""
    model = tiny_tasks.card(tmp_path / "model", **({} if isinstance(card, str) else card))
    if isinstance(card, str):
        model.write_text(model.read_text().replace(card, ""))
    words = [*SIDES, "--model", model, *more]
    if data:
        words += ["--data", tiny_tasks.data(tmp_path / "data", data)]

    assert cli.main([*map(str, words)]) == cli.USER_ERROR

    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_mask_of_another_size_costs_its_sample(cache, tmp_path):
    model = tiny_tasks.card(tmp_path / "model", "segmentation")
    data = tiny_tasks.data(tmp_path / "data", "segmentation")
    Image.new("L", (63, 64)).save(tmp_path / "data" / "masks" / "00b.png")

    found = compare(*SAME, model=model, data=data, out=tmp_path / "run").summary

    assert (found["samples"], found["skipped"]) == (3, 1)
    (skip,) = found["skipped_samples"]
    assert skip["sample"] == "00b.jpg"
    assert "truth: the mask has 63x64 pixels" in skip["why"]


def test_annotations_that_name_missing_images_are_told(boxes, tmp_path):
    (tmp_path / "data" / "images" / "00c.jpg").unlink()

    found = compare(*SAME, **boxes, out=tmp_path / "run").summary

    assert found["samples"] == 3
    assert any("00c.jpg" in warning for warning in map(str, found["warnings"]))


def test_answers_about_a_turned_image_are_turned_back(cache, tmp_path):
    """EXIF 6 means: turn right by 90 degrees; truth and answers stay in the stored image."""
    model, _ = tiny_tasks.card(tmp_path / "model"), tiny_tasks.data(tmp_path / "data")
    for file in (tmp_path / "data" / "images").iterdir():
        file.unlink()
    exif = Image.Exif()
    exif[0x0112] = 6
    pixels = tiny_tasks.picture(("red", 0, 32, 16))
    path = tmp_path / "data" / "images" / "00a.jpg"
    path.write_bytes(tiny.encoded(pixels, quality=95, exif=exif))

    run = compare(
        *SAME, model=model, data=path.parent, out=tmp_path / "run",
        overrides=["deploy.decode.exif=apply", "train.decode.exif=ignore"],
    )  # fmt: skip

    train, deploy = pq.read_table(run.folder / "records.parquet").to_pylist()
    assert train["boxes"] == deploy["boxes"] == [0, 32, 16, 48]
    assert deploy["kept"] == deploy["units"] == 1


def test_a_mask_of_an_image_whose_odd_row_was_dropped_has_it_all_the_same(cache, tmp_path):
    """63 rows: the 63rd has no answer from a stack that carries pairs of rows."""
    model = tiny_tasks.card(tmp_path / "model", "segmentation")
    images = tmp_path / "images"
    images.mkdir()
    pixels = tiny_tasks.picture(("red", 0, 0, 16), size=(63, 64))
    (images / "a.jpg").write_bytes(tiny.encoded(pixels, quality=95))
    nv12 = (
        "deploy.color={format: nv12, order: model, source: encode, odd_size: drop, encode: "
        "{backend: itu, matrix: bt601, range: full, chroma_downsampling: average}, convert: "
        "{backend: itu, matrix: bt601, range: full, chroma_upsampling: nearest}}"
    )

    found = compare(*SAME, model=model, data=images, overrides=[nv12], out=tmp_path / "r").summary

    assert found["flips"]["units"] == 63 * 64 and found["skipped"] == 0
    assert 64 <= found["flips"]["count"] < 4 * 64


def test_annotations_about_an_image_of_another_size_cost_their_sample(boxes, tmp_path):
    path = tmp_path / "data" / "boxes.json"
    document = json.loads(path.read_text())
    document["images"][0] |= {"width": 65}
    path.write_text(json.dumps(document))

    found = compare(*SAME, **boxes, out=tmp_path / "run").summary

    (skip,) = found["skipped_samples"]
    assert skip["why"] == "truth: the annotations say 65x64 pixels, and the file has 64x64"


@pytest.mark.parametrize("rule", ["deploy.AP red < 50%", "flips.mean_iou < 90%"])
def test_a_gate_on_one_class(rule, boxes, tmp_path):
    assert compare(*SAME, **boxes, fail_on=[rule], out=tmp_path / "run").passed


def test_outputs_of_a_detector_are_replayed(boxes, tmp_path):
    """Recorded here with ONNX Runtime alone, they are what the stack itself makes of them."""
    import onnxruntime

    file = tmp_path / "model" / "model.onnx"
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    dump = {}
    for image in sorted((tmp_path / "data" / "images").iterdir()):
        pixels = np.asarray(Image.open(image).convert("RGB"), np.float32)
        tensor = ((pixels - 127) / 64).transpose(2, 0, 1)[None]
        for name, array in zip(("scores", "deltas"), session.run(None, {"x": tensor}), strict=True):
            dump[f"{image.name}/{name}"] = array
    np.savez(tmp_path / "dump.npz", **dump)
    manifest = {
        "schema": 1, "name": "board", "device": "Board 7", "kind": "outputs", "file": "dump.npz",
        "match": "name", "model": hashlib.sha256(file.read_bytes()).hexdigest(),
    }  # fmt: skip
    (tmp_path / "recording.yaml").write_text(json.dumps(manifest))
    recorded = (
        f"deploy.runtime={{backend: recorded, recording: {tmp_path / 'recording.yaml'}, "
        "graph_optimization_level: null}"
    )

    found = compare(*SAME, **boxes, overrides=[recorded], out=tmp_path / "run")

    assert found.summary["flips"]["count"] == 0 and found.summary["deploy"]["metric"]["mAP"] == 1
    assert found.summary["deploy"]["effective"]["device"] == "Board 7"


DETECTOR = """
import json

import numpy as np
import onnxruntime
from PIL import Image

session = onnxruntime.InferenceSession({model!r}, providers=["CPUExecutionProvider"])


def tensor(path):
    return ((np.asarray(Image.open(path).convert("RGB"), np.float32) - 127) / 64)[None]


def outputs(path):
    found = session.run(None, {{"x": tensor(path).transpose(0, 3, 1, 2)}})
    return dict(zip(("scores", "deltas"), found))


def answers(path):
    with open({answers!r}) as file:
        return np.array(json.load(file)[path.rpartition("/")[2]]).reshape(-1, 6)


def named(path):  # as torchvision's detectors answer
    rows = answers(path)
    return [{{"boxes": rows[:, :4], "labels": rows[:, 5].astype(int), "scores": rows[:, 4]}}]
"""


def test_code_stands_for_a_detector_up_to_its_input_its_outputs_or_its_boxes(boxes, tmp_path):
    """It computes what the other stack does, and hands on the boxes that this one has found."""
    model, answers = tmp_path / "model" / "model.onnx", tmp_path / "answers.json"
    code = tmp_path / "code.py"
    code.write_text(DETECTOR.format(model=str(model), answers=str(answers)))

    one = compare("pillow_fp32", f"{code}:tensor", **boxes, out=tmp_path / "tensor")
    rows = [row for row in one.records().to_pylist() if row["side"] == "deploy"]
    answers.write_text(
        json.dumps({
            row["sample"].rpartition("/")[2]: [
                [*box, score, kind]
                for box, score, kind in zip(
                    np.reshape(row["boxes"], (-1, 4)).tolist(), row["scores"], row["classes"],
                    strict=True,
                )
            ]
            for row in rows
        })
    )  # fmt: skip
    others = [
        compare("pillow_fp32", f"{code}:{name}", **boxes, out=tmp_path / name)
        for name in ("outputs", "answers", "named")
    ]

    for found in (one, *others):
        assert found.summary["flips"]["count"] == 0
        assert found.summary["deploy"]["metric"]["mAP"] == 1
    assert any("where its pixels lie" in notice.text for notice in one.summary.warnings)
    assert [len(one.summary.axes), *(len(other.summary.axes) for other in others)] == [1] * 4
