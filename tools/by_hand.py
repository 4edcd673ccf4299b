"""What one would write without the package: the script that ``tools/bench.py`` races against."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from PIL import Image


def pillow(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def opencv(data):
    flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
    return cv2.imdecode(np.frombuffer(data, np.uint8), flags)


def pillow_bicubic(rgb, size):
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.BICUBIC))


def opencv_bilinear(rgb, size):
    return cv2.resize(rgb, size, interpolation=cv2.INTER_LINEAR)


def opencv_nearest(rgb, size):
    return cv2.resize(rgb, size, interpolation=cv2.INTER_NEAREST)


def flips(model: Path, folder: Path, threads: int, train, deploy) -> tuple[int, float]:
    """Run every image through two (decode, resize) pairs; each decodes for itself.

    Returns:
        How many predictions differ, and the seconds that the images took.
    """
    cv2.setNumThreads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])

    def predict(data, decode, resize):
        rgb = decode(data)
        height, width = rgb.shape[:2]
        other = int(256 * max(height, width) / min(height, width))
        small = resize(rgb, (256, other) if width <= height else (other, 256))
        top, left = (round((n - 224) / 2) for n in small.shape[:2])
        crop = small[top : top + 224, left : left + 224].astype(np.float32)
        tensor = np.ascontiguousarray(((crop - 127) / 128).transpose(2, 0, 1)[None])
        return session.run(None, {"input": tensor})[0].argmax()

    def differs(file):
        data = file.read_bytes()
        return bool(predict(data, *train) != predict(data, *deploy))

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        count = sum(pool.map(differs, sorted(folder.iterdir())))
    return count, time.perf_counter() - start
