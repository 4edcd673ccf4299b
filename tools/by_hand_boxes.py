"""What one would write without the package, for a detector and for a segmenter.

``tools/bench_detection.py`` races against it. Each side decodes, resizes and infers for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from by_hand import opencv, opencv_bilinear, pillow
from PIL import Image
from scipy.optimize import linear_sum_assignment

HEIGHT, WIDTH = 320, 416
MEAN, STD = (np.array(x, np.float32) for x in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


def pillow_bilinear(rgb, size):
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.BILINEAR))


def opened(model: Path):
    cv2.setNumThreads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])


def timed(differs: Callable[[Path], int], folder: Path, threads: int) -> tuple[int, float]:
    """Return the sum over the images of a folder, and the seconds that it took."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        count = sum(pool.map(differs, sorted(folder.iterdir())))
    return count, time.perf_counter() - start


def moved_objects(model: Path, folder: Path, threads: int) -> tuple[int, float]:
    """How many objects of the BCCD RetinaNet differ: Pillow against OpenCV and x2, y2 less by 1."""
    session, anchors = opened(model), all_anchors()

    def found(data, decode, resize, offset):
        rgb = decode(data)
        x = (resize(rgb, (WIDTH, HEIGHT)) / np.float32(255) - MEAN) / STD
        feed = np.ascontiguousarray(x.transpose(2, 0, 1)[None])
        logits, deltas = (y[0] for y in session.run(["cls_logits", "box_deltas"], {"image": feed}))
        row, label = np.nonzero(logits > np.log(0.05 / 0.95))
        score = 1 / (1 + np.exp(-logits[row, label].astype(np.float64)))
        boxes = decoded(deltas[row], anchors[row], offset).astype(np.float64)
        boxes = np.clip(boxes, 0, np.array([WIDTH, HEIGHT] * 2) - offset)
        kept = np.concatenate([suppressed(boxes, score, label == c, 0.5) for c in range(3)])
        kept = kept[np.argsort(-score[kept], kind="stable")][:200]
        scale = np.array([WIDTH / rgb.shape[1], HEIGHT / rgb.shape[0]] * 2)
        return boxes[kept] / scale, score[kept], label[kept]

    def differs(file):
        data = file.read_bytes()
        return changed(
            found(data, pillow, pillow_bilinear, 0), found(data, opencv, opencv_bilinear, 1)
        )

    return timed(differs, folder, threads)


def all_anchors():
    """(24570, 4) x1, y1, x2, y2: strides 8, 16, 32, three ratios, three scales."""
    levels = []
    for stride, base in ((8, 20), (16, 48), (32, 96)):
        y, x = np.mgrid[: -(-HEIGHT // stride), : -(-WIDTH // stride)]
        center = ((np.stack([x, y], -1) + 0.5) * stride)[:, :, None]
        root, size = np.sqrt([[0.75], [1], [4 / 3]]), base * 2 ** (np.arange(3) / 3)
        half = np.stack([size / root, size * root], -1).reshape(9, 2) / 2
        levels.append(np.concatenate([center - half, center + half], -1).reshape(-1, 4))
    return np.concatenate(levels).astype(np.float32)


def decoded(deltas, anchors, offset):
    size = anchors[:, 2:] - anchors[:, :2]
    center = anchors[:, :2] + size / 2 + deltas[:, :2] * size
    half = size * np.exp(np.minimum(deltas[:, 2:], np.float32(np.log(1000 / 16)))) / 2
    return np.concatenate([center - half, center + half - offset], 1)


def suppressed(boxes, score, chosen, threshold):
    """The greedy NMS that everybody has, of Fast R-CNN's ``nms.py`` without its +1."""
    order = np.flatnonzero(chosen)
    order = order[np.argsort(-score[order], kind="stable")]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order.size:
        best, rest = order[0], order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[rest, :2])
        high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        common = np.maximum(high - low, 0).prod(1)
        order = rest[common / (area[best] + area[rest] - common) <= threshold]
    return np.array(kept, int)


def changed(before, after):
    """Objects above 0.5 that are lost, gained, moved or relabelled."""
    a, b = ([x[side[1] > 0.5] for x in side] for side in (before, after))
    low = np.maximum(a[0][:, None, :2], b[0][None, :, :2])
    high = np.minimum(a[0][:, None, 2:], b[0][None, :, 2:])
    common = np.maximum(high - low, 0).prod(2)
    areas = [(x[0][:, 2:] - x[0][:, :2]).prod(1) for x in (a, b)]
    iou = common / (areas[0][:, None] + areas[1] - common)
    same = a[2][:, None] == b[2]
    worth = np.where(iou >= 0.5, iou + 0.05 * same, 0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    pair = iou[rows, columns] >= 0.5
    rows, columns = rows[pair], columns[pair]
    kept = same[rows, columns] & (iou[rows, columns] >= 0.9)
    return len(a[0]) + len(b[0]) - len(rows) - int(kept.sum())


def other_pixels(model: Path, folder: Path, threads: int) -> tuple[int, float]:
    """How many pixels of DeepLab's masks differ: Pillow against OpenCV."""
    session = opened(model)
    place = np.arange(257) / 8
    low = place.astype(int)
    high, share = np.minimum(low + 1, 32), (place - low).astype(np.float32)

    def mask(data, decode, resize):
        rgb = decode(data)
        x = (resize(rgb, (257, 257)) - np.float32(127.5)) / np.float32(127.5)
        feed = np.ascontiguousarray(x.transpose(2, 0, 1)[None])
        (scores,) = session.run(["t179"], {"input": feed})
        wide = scores[0][:, :, low] * (1 - share) + scores[0][:, :, high] * share
        down = share[:, None]
        chosen = (wide[:, low] * (1 - down) + wide[:, high] * down).argmax(0).astype(np.uint8)
        size = rgb.shape[1], rgb.shape[0]
        return np.asarray(Image.fromarray(chosen).resize(size, Image.Resampling.NEAREST))

    def differs(file):
        data = file.read_bytes()
        before, after = mask(data, pillow, pillow_bilinear), mask(data, opencv, opencv_bilinear)
        return int(np.count_nonzero(before != after))

    return timed(differs, folder, threads)
