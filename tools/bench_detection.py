"""Speed of a whole pair of detectors and of segmenters, against a script; run by ``make bench``.

Timings that are compared are interleaved (A B A B ...); a figure is the median of the ratios.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import bench

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
OPENCV = ["deploy.decode.backend=opencv", "deploy.resize=opencv-bilinear"]
MINUS_1 = "deploy.postprocess.box_offset.corners=1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="at most 60 images, 2 rounds")
    args = parser.parse_args()
    if not SHARED.is_dir():
        print(f"{SHARED} is not there: no detector to measure")
        return
    import by_hand_boxes

    count, rounds = (min(args.images, 60), 2) if args.quick else (args.images, 5)
    rows = []
    for name, images, card, model, overrides, script in (
        ("detection", "bccd/JPEGImages", "bccd_retinanet_320x416", "bccd_retinanet_320x416.onnx",
         [*OPENCV, MINUS_1], by_hand_boxes.moved_objects),
        ("segmentation", "coco/images", "deeplabv3_257", "deeplabv3_257_logits33.onnx",
         OPENCV, by_hand_boxes.other_pixels),
    ):  # fmt: skip
        files = bench.images(SHARED / images)[:count]
        with tempfile.TemporaryDirectory() as temporary:
            folder = bench.linked(Path(temporary) / "images", files, len(files))
            rows += race(name, folder, card, overrides, script, SHARED / "models" / model, rounds)
    bench.show(rows, f"{count} images, {bench.THREADS} threads, {rounds} rounds")


def race(name, folder, card, overrides, script, model, rounds) -> list[tuple[str, ...]]:
    """Race a script that does everything twice, of images that nobody has annotated."""
    from simulator import compare

    whole, loop = [], []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        with bench.watched() as seen:
            summary = compare(
                "pillow_fp32",
                "pillow_fp32",
                model=ROOT / "tests" / "cards" / f"{card}.yaml",
                data=folder,
                overrides=["train.resize=pil-bilinear", *overrides],
                workers=bench.THREADS,
                out=folder.with_name("run"),
                overwrite=True,
            ).summary
        middle = time.perf_counter()
        expected, seconds = script(model, folder, bench.THREADS)
        found = summary["flips"]["count"]
        assert found == expected, f"{found} flips against {expected}: not the same work"
        whole.append((middle - start, time.perf_counter() - middle))
        loop.append((seen["seconds"], seconds))
    count, rows = summary["samples"], []
    for what, pairs, target in (("images alone", loop[1:], 1.1), ("whole call", whole[1:], 0)):
        ours, by_hand = (median(side) for side in zip(*pairs, strict=True))
        ratio = median(a / b for a, b in pairs)
        note = f"{count / ours:.1f} against {count / by_hand:.1f} images/s, {found} flips"
        rows.append(bench.row(f"{name}: {what} / a script", ratio, target, note))
    return rows


if __name__ == "__main__":
    main()
