"""Detection against a short script that shares no code with it.

Everything up to ``CASES`` goes from files to boxes, COCO's figures and flips with the libraries
alone, box by box. Then ``simulate`` must find the same boxes, scores and classes, bit for bit.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from shared_data import shared

pytestmark = pytest.mark.prove

Image = pytest.importorskip("PIL.Image")
cv2 = pytest.importorskip("cv2")
ort = pytest.importorskip("onnxruntime")
pq = pytest.importorskip("pyarrow.parquet")
coco = pytest.importorskip("pycocotools.coco")
cocoeval = pytest.importorskip("pycocotools.cocoeval")
optimize = pytest.importorskip("scipy.optimize")

CARDS = Path(__file__).with_name("cards")
F = np.float32


def pillow(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def opencv(data):
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    return cv2.imdecode(np.frombuffer(data, np.uint8), flags)[..., ::-1]


def pillow_bilinear(rgb, size):
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.BILINEAR))


def pillow_nearest(rgb, size):
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.NEAREST))


def opencv_bilinear(rgb, size):
    return cv2.resize(np.ascontiguousarray(rgb), size, interpolation=cv2.INTER_LINEAR)


class Bccd:
    """The RetinaNet, by its card ``bccd_retinanet.md``."""

    model, card, data = "bccd_retinanet_320x416.onnx", "bccd_retinanet_320x416", "bccd_test"
    annotations, images, operating = "bccd/bccd_test.json", "bccd/JPEGImages", 0.5
    resize = staticmethod(pillow_bilinear)

    def tensor(self, rgb, resize):
        mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        x = (resize(rgb, (416, 320)) / F(255) - F(mean)) / F(std)
        scale = 416 / rgb.shape[1], 320 / rgb.shape[0]
        return np.ascontiguousarray(x.transpose(2, 0, 1)[None]), scale

    @staticmethod
    @cache
    def anchors():
        return np.array(list(Bccd.every_anchor()), F)

    @staticmethod
    def every_anchor():
        for stride, base in ((8, 20), (16, 48), (32, 96)):
            for row in range(math.ceil(320 / stride)):
                for column in range(math.ceil(416 / stride)):
                    cx, cy = (column + 0.5) * stride, (row + 0.5) * stride
                    for ratio in (0.75, 1, 4 / 3):
                        for z in (1, 2 ** (1 / 3), 2 ** (2 / 3)):
                            w, h = base * z / math.sqrt(ratio), base * z * math.sqrt(ratio)
                            yield cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2

    def found(self, outputs, offset):
        """Box in float32, class and score of everything above 0.05, anchor by anchor."""
        logits, deltas = outputs
        scores = 1 / (1 + np.exp(-logits[0].astype(np.float64)))
        for at in np.flatnonzero((scores > 0.05).any(axis=1)):
            ax1, ay1, ax2, ay2 = self.anchors()[at]
            dx, dy, dw, dh = deltas[0, at]
            aw, ah = ax2 - ax1, ay2 - ay1
            cx, cy = ax1 + aw / 2 + dx * aw, ay1 + ah / 2 + dy * ah
            w = aw * np.exp(np.minimum(dw, F(math.log(1000 / 16))))
            h = ah * np.exp(np.minimum(dh, F(math.log(1000 / 16))))
            corners = cx - w / 2, cy - h / 2, cx + w / 2 - offset, cy + h / 2 - offset
            edges = (416 - offset, 320 - offset) * 2
            box = [min(max(float(x), 0.0), edge) for x, edge in zip(corners, edges, strict=True)]
            for label in range(3):
                if scores[at, label] > 0.05:
                    yield box, label, float(scores[at, label])

    iou_threshold, most = 0.5, 200


class Yolox:
    """YOLOX-Nano: https://github.com/Megvii-BaseDetection/YOLOX, ``demo_utils.py``."""

    model, card, data = "yolox_nano_416.onnx", "yolox_nano", "coco_boxes"
    annotations, images, operating = "coco/instances.json", "coco/images", 0.3
    resize = staticmethod(opencv_bilinear)
    iou_threshold, most = 0.65, 100

    def tensor(self, rgb, resize):
        ratio = min(416 / rgb.shape[0], 416 / rgb.shape[1])
        width, height = int(rgb.shape[1] * ratio), int(rgb.shape[0] * ratio)
        padded = np.full((416, 416, 3), 114, np.uint8)
        padded[:height, :width] = resize(rgb, (width, height))
        bgr = padded[..., ::-1].transpose(2, 0, 1)[None]
        return np.ascontiguousarray(bgr, F), (ratio, ratio)

    def found(self, outputs, offset):
        """Box in float32, class and score of everything above 0.01, cell by cell."""
        rows = iter(outputs[0][0])
        for stride in (8, 16, 32):
            for y in range(416 // stride):
                for x in range(416 // stride):
                    row = next(rows)
                    tx, ty, tw, th, objectness = row[:5]
                    label = int(np.argmax(row[5:]))
                    score = float(objectness) * float(row[5 + label])
                    if score > 0.01:
                        cx, cy = (tx + F(x)) * F(stride), (ty + F(y)) * F(stride)
                        w, h = np.exp(tw) * F(stride), np.exp(th) * F(stride)
                        corners = cx - w / 2, cy - h / 2, cx + w / 2 - offset, cy + h / 2 - offset
                        yield [float(corner) for corner in corners], label, score


def iou(a, b):
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(wide, 0) * max(high, 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / union if union > 0 else 0.0


def detections(net, session, data, decode, resize, offset=0):
    """[(box in the image's pixels, class, score)], best first."""
    tensor, (sx, sy) = net.tensor(decode(data), resize or net.resize)
    outputs = session.run(None, {session.get_inputs()[0].name: tensor})
    kept = []
    for box, label, score in sorted(net.found(outputs, offset), key=lambda one: -one[2]):
        if all(c != label or iou(box, b) <= net.iou_threshold for b, c, _ in kept):
            kept.append((box, label, score))
    return [
        ([x1 / sx, y1 / sy, x2 / sx, y2 / sy], label, score)
        for (x1, y1, x2, y2), label, score in kept[: net.most]
    ]


def figures(annotations, names, found):
    """COCO's mAP, AP50 and AP75 of the named images, from the annotations' own file."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO(str(annotations))
        key = {one["file_name"]: one["id"] for one in truth.dataset["images"]}
        category = sorted(truth.cats)
        results = [
            {
                "image_id": key[name],
                "category_id": category[label],
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "score": score,
            }
            for name in names
            for (x1, y1, x2, y2), label, score in found[name]
        ]
        judge = cocoeval.COCOeval(truth, truth.loadRes(results), "bbox")
        judge.params.imgIds = [key[name] for name in names]
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return judge.stats[:3].tolist()


def flips(before, after, operating):
    """(lost, gained, moved, relabelled) of what is above the operating threshold.

    Pairs overlap by 0.5 or more, and their IoU (0.05 more for one class) adds up to the most;
    one of two classes is relabelled, else under 0.9 moved.
    """
    before = [one for one in before if one[2] > operating]
    after = [one for one in after if one[2] > operating]
    worth = np.zeros((len(before), len(after)))
    for i, (a, label, score) in enumerate(before):
        for j, (b, other, rescored) in enumerate(after):
            overlap = iou(a, b)
            if overlap >= 0.5:
                worth[i, j] = overlap + 0.05 * (label == other) - 1e-6 * abs(score - rescored)
    chosen = zip(*optimize.linear_sum_assignment(-worth), strict=True)
    pairs = [(before[i], after[j]) for i, j in chosen if worth[i, j] > 0]
    relabelled = sum(a[1] != b[1] for a, b in pairs)
    moved = sum(a[1] == b[1] and iou(a[0], b[0]) < 0.9 for a, b in pairs)
    return len(before) - len(pairs), len(after) - len(pairs), moved, relabelled


TRAIN = {Bccd: "resize=pil-bilinear", Yolox: "resize=opencv-bilinear"}
CASES = [
    pytest.param(net, mine, settings, id=f"{net.__name__}-{name}")
    for net, name, mine, settings in (
        (Bccd, "nearest", (pillow, pillow_nearest), ["resize=pil-nearest"]),
        (Bccd, "opencv-corners", (opencv, opencv_bilinear, 1),
         ["decode.backend=opencv", "resize=opencv-bilinear", "postprocess.box_offset.corners=1"]),
        (Yolox, "pillow", (pillow, pillow_bilinear), ["resize=pil-bilinear"]),
        (Yolox, "corners", (pillow, None, 1), ["postprocess.box_offset.corners=1"]),
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def networks():
    """The session of each network and 20 of its images, answered by the training stack."""
    made = {}

    def of(net):
        if net not in made:
            options = ort.SessionOptions()
            options.intra_op_num_threads = 1
            model = shared("models") / net.model
            session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
            files = {path.name: path.read_bytes() for path in images(net)}
            made[net] = session, files, answers(net, session, files, pillow, None)
        return made[net]

    return of


def answers(net, session, files, *stack):
    return {name: detections(net(), session, data, *stack) for name, data in files.items()}


def images(net):
    """20 images from all over the set, among them one that has no object if there is any."""
    folder = shared("models").parent
    listed = json.loads((folder / net.annotations).read_text())
    annotated = {one["image_id"] for one in listed["annotations"]}
    empty = [one["file_name"] for one in listed["images"] if one["id"] not in annotated]
    names = sorted(one["file_name"] for one in listed["images"])
    chosen = names[:: len(names) // 20][:20]
    return sorted(folder / net.images / name for name in {*chosen[len(empty[:1]) :], *empty[:1]})


@pytest.mark.parametrize(("net", "mine", "settings"), CASES)
def test_same_boxes(net, mine, settings, networks, tmp_path):
    """Boxes and scores are equal bit for bit; mAP, AP50, AP75 to 1e-12; flips are the same."""
    from simulator import compare

    session, files, train = networks(net)
    deploy = answers(net, session, files, *mine)
    given = yaml.safe_load((CARDS / f"{net.data}.yaml").read_text())
    for key in ("images", "annotations"):
        given[key] = str((CARDS / given[key]).resolve())
    (tmp_path / "twenty.txt").write_text("\n".join(files) + "\n")
    (tmp_path / "data.yaml").write_text(yaml.safe_dump({**given, "split": "twenty.txt"}))

    every = TRAIN[net]
    summary = compare(
        "pillow_fp32",
        "pillow_fp32",
        model=CARDS / f"{net.card}.yaml",
        data=tmp_path / "data.yaml",
        overrides=[f"train.{every}", f"deploy.{every}", *(f"deploy.{one}" for one in settings)],
        out=tmp_path / "run",
        quick=True,
        report=False,
    ).summary
    assert (summary["samples"], summary["skipped"]) == (20, 0)

    records = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    annotations = shared("models").parent / net.annotations
    for side, found in (("train", train), ("deploy", deploy)):
        got = {row["sample"]: row for row in records if row["side"] == side}
        assert got.keys() == found.keys()
        for name, row in got.items():
            boxes = np.reshape(row["boxes"], (-1, 4)).tolist()
            assert list(zip(boxes, row["classes"], row["scores"], strict=True)) == found[name]
        metric = summary[side]["metric"]
        wanted = figures(annotations, sorted(files), found)
        assert [metric[key] for key in ("mAP", "AP50", "AP75")] == pytest.approx(wanted, abs=1e-12)
    kinds = [flips(train[name], deploy[name], net.operating) for name in files]
    total = np.sum(kinds, axis=0).tolist()
    counted = summary["flips"]
    assert [counted[kind] for kind in ("lost", "gained", "moved", "relabelled")] == total
    assert counted["count"] == sum(total) > 0
