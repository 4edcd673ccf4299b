"""Speed and memory of ``simulate``, as ratios within one run; run by ``make bench``.

Timings that are compared are interleaved (A B A B ...); a figure is the median of the ratios.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "imagenet" / "train500"
THREADS = 2
NEAREST = ["deploy.resize.backend=opencv", "deploy.resize.interpolation=nearest"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--data", type=Path, help=f"a flat folder of JPEGs; default: {DATA}")
    parser.add_argument("--quick", action="store_true", help="at most 60 images, 2 rounds")
    parser.add_argument("--peak-of", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--loop-of", nargs=2, metavar=("FOLDER", "WORKERS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.loop_of:
        print(loop_of(Path(args.loop_of[0]), int(args.loop_of[1])))
        return
    if args.peak_of:
        print(peak_of(args.peak_of))
        return
    count, rounds = (min(args.images, 60), 2) if args.quick else (args.images, 5)
    files = images(args.data)[:count]
    with tempfile.TemporaryDirectory() as temporary:
        few, many = (linked(Path(temporary) / str(n), files, n) for n in (count, 10 * count))
        # First, while this process is small: Linux counts it into the peak of its children.
        one = linked(Path(temporary) / "one", files, 1)
        rows = [memory(few, many), start_up(10), *one_image(one, 3 if args.quick else 7)]
        rows.append(processes(files, Path(temporary), 1 if args.quick else 3))
        rows = [*speed(few, rounds), *rows]
    show(rows, f"{count} images, {THREADS} threads, {rounds} rounds")


def images(given: Path | None) -> list[Path]:
    found = sorted(p for p in (given or DATA).glob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    if not found and given:
        sys.exit(f"{given}: no JPEG in it; give --data a flat folder of images")
    if not found:
        from simulator.data import example

        print(f"{DATA} is not there: the built-in images are used, repeated")
        found = [item.path for item in example.images().items]
    return found


def linked(folder: Path, files: list[Path], count: int) -> Path:
    """Make a folder of *count* links to the files, over and over."""
    folder.mkdir()
    for index in range(count):
        source = files[index % len(files)].resolve()
        (folder / f"{index:06}{source.suffix}").symlink_to(source)
    return folder


def compare(folder: Path, deploy: str, overrides: list[str]) -> int:
    """Run the product, and return the number of flips."""
    from simulator import compare

    settings = {"overrides": overrides, "workers": THREADS, "overwrite": True, "quick": True}
    out = folder.with_name("run")
    result = compare("pillow_fp32", deploy, data=folder, out=out, **settings)
    return int(result.summary["flips"]["count"])


def memory(few: Path, many: Path) -> tuple[str, ...]:
    command = [sys.executable, __file__, "--peak-of"]
    peaks = [int(subprocess.check_output([*command, folder])) / 1024 for folder in (few, many)]
    what = f"(c) peak memory, {many.name} against {few.name} images"
    return row(what, peaks[1] / peaks[0], 1.1, f"{peaks[1]:.0f} against {peaks[0]:.0f} MiB")


def peak_of(folder: Path) -> int:
    """Peak memory in KiB of one simulation in this process."""
    import resource

    compare(folder, "opencv_fp32", [])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def start_up(runs: int) -> tuple[str, ...]:
    commands = {
        "simulate": [Path(sys.executable).with_name("simulate"), "--help"],
        "python": [sys.executable, "-c", "pass"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    note = f"median of {runs}; python -c pass: {median(times['python']):.3f} s"
    return row("(d) simulate --help, seconds", median(times["simulate"]), 0.3, note)


BY_HAND = """
import sys
import numpy as np
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
session.run(None, {session.get_inputs()[0].name: np.zeros((1, 3, 224, 224), np.float32)})
"""


def one_image(folder: Path, runs: int) -> list[tuple[str, ...]]:
    """Time the command on one image from a warm cache, and imports and one inference by hand."""
    import resource

    from simulator.data import example

    model = str(example.model_card().parent / "model.onnx")
    out = str(folder.with_name("one-run"))
    commands = {
        "simulate": [
            sys.executable, "-m", "simulator.cli", "--train", "pillow_fp32", "--deploy",
            "opencv_fp32", "--data", str(folder), "--out", out, "--overwrite",
        ],
        "by hand": [sys.executable, "-c", BY_HAND, model],
    }  # fmt: skip
    wall: dict[str, list[float]] = {name: [] for name in commands}
    busy: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs + 1):
        for name, command in commands.items():
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            wall[name].append(time.perf_counter() - start)
            busy[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    seconds, cpu = (
        {name: median(times[1:]) for name, times in both.items()} for both in (wall, busy)
    )  # the first fills the cache
    note = (
        f"median of {runs}; processors {cpu['simulate']:.2f} s; by hand {seconds['by hand']:.2f} s"
    )
    ratio = median(a / b for a, b in zip(busy["simulate"][1:], busy["by hand"][1:], strict=True))
    return [
        row("(e) simulate on one image, seconds", seconds["simulate"], 0.9, note),
        row("(e) the same / imports and one inference by hand, processors", ratio, 0,
            f"{cpu['simulate']:.2f} s against {cpu['by hand']:.2f} s"),
    ]  # fmt: skip


def processes(files: list[Path], home: Path, rounds: int) -> tuple[str, ...]:
    """Race one process of THREADS threads against as many processes of one thread."""
    half = len(files) // THREADS
    parts = [linked(home / f"part{at}", files[at * half :], half) for at in range(THREADS)]
    whole = linked(home / "whole", files, half * THREADS)
    threads, alone = [], []
    for _ in range(rounds):
        threads.append(max(loops([whole], THREADS)))
        alone.append(max(loops(parts, 1)))
    ratio = median(a / b for a, b in zip(threads, alone, strict=True))
    note = f"{median(threads):.2f} s against {median(alone):.2f} s, images alone, {half * THREADS}"
    return row(f"(f) {THREADS} threads / {THREADS} processes", ratio, 0, note)


def loops(folders: list[Path], workers: int) -> list[float]:
    """Seconds of the executor's loop over each folder, each in a process of its own, at once."""
    command = [sys.executable, __file__, "--loop-of"]
    running = [
        subprocess.Popen([*command, str(folder), str(workers)], stdout=subprocess.PIPE, text=True)
        for folder in folders
    ]
    return [float(one.communicate()[0]) for one in running]


def loop_of(folder: Path, workers: int) -> float:
    from simulator import compare

    with watched() as seen:
        compare(
            "pillow_fp32", "opencv_fp32", data=folder, out=folder.with_name(f"{folder.name}-run"),
            workers=workers, overwrite=True, quick=True,
        )  # fmt: skip
    return seen["seconds"]


def speed(folder: Path, rounds: int) -> list[tuple[str, ...]]:
    """Race a script that does everything twice: with nothing to share, and with a decoder."""
    import by_hand

    from simulator.data import example
    from simulator.experiments import controls

    model = example.model_card().parent / "model.onnx"
    train = by_hand.pillow, by_hand.pillow_bicubic
    rows = []
    for name, profile, overrides, deploy, target in (
        ("(a)", "opencv_fp32", [], (by_hand.opencv, by_hand.opencv_bilinear), 1.1),
        ("(b) decode shared,", "pillow_fp32", NEAREST, (by_hand.pillow, by_hand.opencv_nearest), 0),
    ):
        whole, loop = [], []
        for _ in range(rounds + 1):
            start = time.perf_counter()
            with watched() as seen:
                found = compare(folder, profile, overrides)
            middle = time.perf_counter()
            expected, seconds = by_hand.flips(model, folder, THREADS, train, deploy)
            assert found == expected, f"{found} flips against {expected}: not the same work"
            whole.append((middle - start, time.perf_counter() - middle))
            loop.append((seen["seconds"], seconds))
        for what, pairs in (("whole call", whole[1:]), ("images alone", loop[1:])):  # 0: warm-up
            ours, script = (median(side) for side in zip(*pairs, strict=True))
            ratio = median(a / b for a, b in pairs)
            note = f"{ours:.2f} s against {script:.2f} s"
            rows.append(row(f"{name} {what} / a script", ratio, target, note))
        if overrides:
            count, twice = len(list(folder.iterdir())), controls.SELF_SAMPLES
            note = f"Pillow opened {seen['decodes']} images of {count}, {twice} for a control"
            decodes = (seen["decodes"] - twice) / count
            rows.append(row(f"{name} decodes an image", decodes, 1, note))
    return rows


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Time the executor's loop over the images, and count the images that Pillow opens in it."""
    from PIL import Image

    from simulator.pipeline.local import LocalExecutor

    run, load, opened, seen = LocalExecutor.run, Image.open, [], {}

    def timed(*args):
        before, start = len(opened), time.perf_counter()
        yield from run(*args)
        seen.update(seconds=time.perf_counter() - start, decodes=len(opened) - before)

    LocalExecutor.run, Image.open = timed, lambda *a, **k: opened.append(1) or load(*a, **k)
    try:
        yield seen
    finally:
        LocalExecutor.run, Image.open = run, load


def row(what: str, value: float, target: float, note: str) -> tuple[str, ...]:
    if not target:
        return what, f"{value:.3f}", "", "", note
    met = "[green]met[/]" if value <= target else "[red]not met[/]"
    return what, f"{value:.3f}", f"≤ {target:g}", met, note


def show(rows: list[tuple[str, ...]], title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from simulator import machine, registry

    used = ("pillow", "opencv-python-headless", "onnxruntime")
    libraries = [
        lib for b in registry.backends() for lib in b.libraries if lib.distribution in used
    ]
    here = machine.describe({lib.distribution: lib.version for lib in libraries})
    table = Table("figure", "measured", "target", "", "from", title=title)
    for line in rows:
        table.add_row(*line)
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(table)
    console.print(f"{here['cpu']['model']}, {here['cores']} cores, {here['platform']}")
    console.print(f"Python {here['python']}", *(f"{k} {v}" for k, v in here["versions"].items()))


if __name__ == "__main__":
    main()
