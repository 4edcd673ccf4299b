"""How much a robustness run gains by one plan, and whether its memory grows; run by ``make bench``.

The suite is ``corruptions`` and four further kinds (19 conditions, 5 severities) on three stacks of
the built-in model. It is raced by scripts that loop over stacks, conditions and images, decode and
corrupt each time anew: (a) a plain loop with the corruptions of ``imagecorruptions``, which needs
``--oracle PYTHON``, an environment as in tools/corruption_goldens.py with onnxruntime; (b) a plain
loop with our corruptions; (c) a pool of threads with our corruptions.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench
import by_hand
import yaml

THREADS = 2
NAMES = (
    "gaussian_noise", "glass_blur", "zoom_blur", "snow", "elastic_transform", "shot_noise",
    "impulse_noise", "defocus_blur", "motion_blur", "frost", "fog", "brightness", "contrast",
    "pixelate", "jpeg_compression", "speckle_noise", "saturate", "spatter", "gaussian_blur",
)  # fmt: skip
FEW = 5
TARGET = 2.5
Seconds = tuple[float, float]
"""Of the clock, and of processors, which tell more on a busy machine."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="8 images, severity 3 alone")
    parser.add_argument("--oracle", help="a Python that has imagecorruptions-imaug")
    parser.add_argument("--oracle-images", type=int, default=4, help="for (a), which is slow")
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak_of:
        ours(Path(args.peak_of[0]), Path(args.peak_of[1]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return
    count = 8 if args.quick else args.images
    files = bench.images(args.data)[:count]
    levels = [3] if args.quick else [1, 2, 3, 4, 5]
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # First, while this process is small: Linux counts it into the peak of its children.
        rows = [memory(labelled(home / "few", files, min(count, 4)), home)]
        folder = labelled(home / "images", files, count)
        rows = [*race(folder, home, levels, args.oracle, args.oracle_images), *rows]
    bench.show(rows, f"robustness, {count} images, {THREADS} threads; load {busy:.1f} before")


def labelled(folder: Path, files: list[Path], count: int) -> Path:
    bench.linked(folder, files, count)
    rows = "".join(f"{file.name},0\n" for file in sorted(folder.iterdir()))
    (folder / "labels.csv").write_text("file,label\n" + rows)
    return folder


def suite(path: Path, conditions: dict[str, list[str]]) -> Path:
    path.write_text(
        yaml.safe_dump(
            {"schema": 1, "name": path.stem, "summary": "", "conditions": {"all": conditions}}
        )
    )
    return path


def texts(names: tuple[str, ...], levels: list[int]) -> dict[str, list[str]]:
    return {name: [f"{name}:{level}" for level in levels] for name in names}


def ours(folder: Path, document: Path) -> Seconds:
    """A run over the three stacks, from the call to the written summary."""
    from simulator import robustness

    nearest = document.with_name("nearest.yaml")
    nearest.write_text(
        yaml.safe_dump({
            "schema": 1, "name": "nearest", "summary": "another resize",
            "extends": "pillow_fp32", "resize": "opencv-nearest",
        })
    )  # fmt: skip
    stacks = ["pillow_fp32", "opencv_fp32", str(nearest)]
    start, busy = time.perf_counter(), time.process_time()
    robustness(
        str(document), stacks, data=folder, workers=THREADS, overwrite=True,
        out=document.with_name("run"),
    )  # fmt: skip
    return time.perf_counter() - start, time.process_time() - busy


def memory(folder: Path, home: Path) -> tuple[str, ...]:
    """Peak memory of five kinds at one severity, and of all at all severities."""
    suites = [
        suite(home / "few.yaml", texts(NAMES[:FEW], [3])),
        suite(home / "many.yaml", texts(NAMES, [1, 2, 3, 4, 5])),
    ]
    peaks = [
        int(subprocess.check_output([sys.executable, __file__, "--peak-of", folder, one])) / 1024
        for one in suites
    ]
    what = f"(d) peak memory, {5 * len(NAMES)} conditions against {FEW}"
    note = f"{peaks[1]:.0f} against {peaks[0]:.0f} MiB, {len(list(folder.glob('*.*'))) - 1} images"
    return bench.row(what, peaks[1] / peaks[0], 1.25, note)


def race(
    folder: Path, home: Path, levels: list[int], oracle: str | None, few: int
) -> list[tuple[str, ...]]:
    document = suite(home / "all.yaml", texts(NAMES, levels))
    whole = ours(folder, document)
    files = sorted(folder.glob("*.[jJ]*"))
    plain, pooled = script(files, levels), script(files, levels, THREADS)
    cells = f"{len(NAMES)} conditions x {len(levels)} severities x {len(by_hand.PAIRS)} stacks"
    rows = [
        faster("(b) a plain loop, our corruptions", plain, whole, cells),
        faster("(c) a pool of threads, our corruptions", pooled, whole, cells),
    ]
    if oracle:
        few = min(few, len(files))
        pairs = zip(
            published(oracle, files[:few], levels), script(files[:few], levels), strict=True
        )
        times = [one / other for one, other in pairs]
        note = f"{cells}; {times[0]:.2f} times (b), measured on {few} images"
        scaled = times[0] * plain[0], times[1] * plain[1]
        rows.insert(0, faster("(a) a plain loop, imagecorruptions", scaled, whole, note))
    return rows


def faster(what: str, script: Seconds, ours: Seconds, note: str) -> tuple[str, ...]:
    """A script's seconds by ours, which is to be high."""
    target = TARGET if "plain" in what else 0
    ratio, busy = (one / other for one, other in zip(script, ours, strict=True))
    met = "[green]met[/]" if ratio >= target else "[red]not met[/]"
    goal = (f"≥ {target:g}", met) if target else ("", "")
    return f"{what} / simulate robustness", f"{ratio:.2f}", *goal, (
        f"{script[0]:.1f} s against {ours[0]:.1f} s; of processors {script[1]:.1f} s against "
        f"{ours[1]:.1f} s, {busy:.2f} times; {note}"
    )  # fmt: skip


def script(files: list[Path], levels: list[int], threads: int | None = None) -> Seconds:
    import numpy as np

    from simulator.conditions.condition import CONDITIONS

    parsed = [CONDITIONS[name].parse(str(level)) for name in NAMES for level in levels]
    corruptions = [
        lambda rgb, one=one: one.apply(rgb, np.random.default_rng(0)) for one in parsed
    ]  # fmt: skip
    return by_hand.under_conditions(model(), files, by_hand.PAIRS.values(), corruptions, threads)


def published(oracle: str, files: list[Path], levels: list[int]) -> Seconds:
    asked = {
        "model": str(model()), "files": [str(file) for file in files],
        "names": NAMES, "levels": levels,
    }  # fmt: skip
    words = [oracle, by_hand.__file__, json.dumps(asked)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def model() -> Path:
    from simulator.data import example

    return example.model_card().parent / "model.onnx"


if __name__ == "__main__":
    main()
