"""How much a robustness run gains by one plan; run by ``make bench``.

The suite is ``corruptions`` and four further kinds (19 conditions, 5 severities) on three stacks of
the built-in model,
against a script that loops over stacks and conditions with the same libraries, kernels and threads.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bench
import by_hand
import cv2
import numpy as np
import onnxruntime
import yaml

THREADS = 2
MORE = ("speckle_noise", "saturate", "spatter", "gaussian_blur")
STACKS = {
    "pillow_fp32": (by_hand.pillow, by_hand.pillow_bicubic),
    "opencv_fp32": (by_hand.opencv, by_hand.opencv_bilinear),
    "nearest": (by_hand.pillow, by_hand.opencv_nearest),
}
"""As by_hand writes them; the last one is pillow_fp32 with another resize."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="8 images, severity 3 alone")
    args = parser.parse_args()
    count = 8 if args.quick else args.images
    files = bench.images(args.data)[:count]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        folder = bench.linked(home / "images", files, count)
        (folder / "labels.csv").write_text(
            "file,label\n" + "".join(f"{f.name},0\n" for f in sorted(folder.iterdir()))
        )
        levels = [3] if args.quick else [1, 2, 3, 4, 5]
        bench.show(race(folder, home, levels), f"robustness, {count} images, {THREADS} threads")


def race(folder: Path, home: Path, levels: list[int]) -> list[tuple[str, ...]]:
    from simulator.robustness.document import load_suite
    from simulator.robustness.run import robustness

    names = [*(one.name for one in load_suite("corruptions").series), *MORE]
    rows = {name: [f"{name}:{level}" for level in levels] for name in names}
    suite = home / "bench.yaml"
    suite.write_text(
        yaml.safe_dump({"schema": 1, "name": "bench", "summary": "", "conditions": {"all": rows}})
    )
    profiles = home / "nearest.yaml"
    profiles.write_text(
        yaml.safe_dump({
            "schema": 1, "name": "nearest", "summary": "another resize",
            "extends": "pillow_fp32", "resize": "opencv-nearest",
        })
    )  # fmt: skip
    stacks = ["pillow_fp32", "opencv_fp32", str(profiles)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    robustness(str(suite), stacks, data=folder, workers=THREADS, out=home / "run")
    ours = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    texts = [text for by in rows.values() for text in by]
    plain = script(folder, texts)
    cells = f"{len(names)} conditions x {len(levels)} severities x {len(STACKS)} stacks"
    return [
        bench.row("a plain script / simulate robustness, whole call", plain / ours, 0,
                  f"{plain:.1f} s against {ours:.1f} s, {cells}; target ≥ 2.5; "
                  f"peak memory + {grown:.0f} MiB"),
    ]  # fmt: skip


def script(folder: Path, texts: list[str]) -> float:
    """Seconds of a script: for every stack, condition and image decode, corrupt, resize, infer."""
    from simulator.conditions.condition import under
    from simulator.data import example

    cv2.setNumThreads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = str(example.model_card().parent / "model.onnx")
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    conditions = [None, *(under(text).condition for text in texts)]

    def predict(job):
        file, (decode, resize), condition = job
        rgb = decode(file.read_bytes())
        if condition is not None:
            rgb = condition.apply(rgb, np.random.default_rng(0))
        height, width = rgb.shape[:2]
        other = int(256 * max(height, width) / min(height, width))
        small = resize(rgb, (256, other) if width <= height else (other, 256))
        top, left = (round((n - 224) / 2) for n in small.shape[:2])
        crop = small[top : top + 224, left : left + 224].astype(np.float32)
        tensor = np.ascontiguousarray(((crop - 127) / 128).transpose(2, 0, 1)[None])
        return session.run(None, {"input": tensor})[0].argmax()

    files = sorted(folder.glob("*.[jJ]*"))
    jobs = [
        (file, stack, condition)
        for stack in STACKS.values()
        for condition in conditions
        for file in files
    ]
    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(predict, jobs):
            pass
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
