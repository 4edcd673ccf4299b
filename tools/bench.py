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
    args = parser.parse_args()
    if args.peak_of:
        print(peak_of(args.peak_of))
        return
    count, rounds = (min(args.images, 60), 2) if args.quick else (args.images, 5)
    files = images(args.data)[:count]
    with tempfile.TemporaryDirectory() as temporary:
        few, many = (linked(Path(temporary) / str(n), files, n) for n in (count, 10 * count))
        # First, while this process is small: Linux counts it into the peak of its children.
        rows = [memory(few, many), start_up(10)]
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

    from simulator.pipeline.executor import LocalExecutor

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
