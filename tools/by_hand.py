"""What one would write without the package: the scripts that the benchmarks race against."""

from __future__ import annotations

import io
import itertools
import json
import sys
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


def tensor_of(rgb, resize):
    """(1, 3, 224, 224) float32: short side to 256, the middle, mean 127, deviation 128."""
    height, width = rgb.shape[:2]
    other = int(256 * max(height, width) / min(height, width))
    small = resize(rgb, (256, other) if width <= height else (other, 256))
    top, left = (round((n - 224) / 2) for n in small.shape[:2])
    crop = small[top : top + 224, left : left + 224].astype(np.float32)
    return np.ascontiguousarray(((crop - 127) / 128).transpose(2, 0, 1)[None])


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
        return session.run(None, {"input": tensor_of(decode(data), resize)})[0].argmax()

    def differs(file):
        data = file.read_bytes()
        return bool(predict(data, *train) != predict(data, *deploy))

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        count = sum(pool.map(differs, sorted(folder.iterdir())))
    return count, time.perf_counter() - start


def under_conditions(model: Path, files: list[Path], stacks, corruptions, threads=None):
    """Run every image through every stack under every corruption, each from its file.

    Args:
        model: an ONNX file.
        files: the images.
        stacks: pairs of decode and resize.
        corruptions: functions of an RGB image that return one.
        threads: of a pool, in which ONNX Runtime and OpenCV have one each; without a number a loop,
            in which both have as many as they like.

    Returns:
        The seconds that the images took: of the clock, and of processors.
    """
    options = onnxruntime.SessionOptions()
    if threads:
        options.intra_op_num_threads = 1
        cv2.setNumThreads(1)
    session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])

    def predict(job):
        (decode, resize), corrupt, file = job
        return session.run(None, {"input": tensor_of(corrupt(decode(file.read_bytes())), resize)})

    jobs = itertools.product(stacks, [lambda rgb: rgb, *corruptions], files)
    start, busy = time.perf_counter(), time.process_time()
    if threads:
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(predict, jobs):
                pass
    else:
        for job in jobs:
            predict(job)
    return time.perf_counter() - start, time.process_time() - busy


def published(names: list[str], levels: list[int]):
    """The corruptions of ``imagecorruptions``, which glass blur's first call compiles."""
    from imagecorruptions import corrupt

    corrupt(np.zeros((64, 64, 3), np.uint8), corruption_name="glass_blur", severity=1)
    return [
        lambda rgb, name=name, level=level: corrupt(rgb, corruption_name=name, severity=level)
        for name in names
        for level in levels
    ]


PAIRS = {
    "pillow_fp32": (pillow, pillow_bicubic),
    "opencv_fp32": (opencv, opencv_bilinear),
    "nearest": (pillow, opencv_nearest),
}
"""Stacks by name; the last one is pillow_fp32 with another resize."""


def main() -> None:
    """Print the seconds of a loop over :data:`PAIRS` with ``imagecorruptions``; JSON in argv."""
    asked = json.loads(sys.argv[1])
    corruptions = published(asked["names"], asked["levels"])
    files = [Path(one) for one in asked["files"]]
    print(json.dumps(under_conditions(Path(asked["model"]), files, PAIRS.values(), corruptions)))


if __name__ == "__main__":
    main()
