"""A run over many images, whole and killed twice: its memory, and whether both give the same.

    python tools/large_run.py --images FOLDER --model CARD [--count 50000] [--out FOLDER]

Links to the images of FOLDER, which has a folder for each class, are laid out as many times as it
takes. `simulate` goes over them once without a break, and once killed with SIGKILL where a third
and two thirds of the samples are on the disk, and resumed. Printed are the seconds, the memory of
the process, the bytes that each sample adds to it (least squares), and what differs.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from simulator.results.layout import PARTS, RECORDS

SETTLED = 0.1
"""The part of the samples before which caches and pools still fill."""
MEASURED = ("ns",)
"""Columns of the records that differ from run to run."""


@dataclass
class Watched:
    """One process: its (samples done, resident bytes) while it ran samples, and its seconds."""

    seen: list[tuple[int, int]] = field(default_factory=list)
    seconds: float = 0
    peak: int = 0


def links(images: Path, count: int, folder: Path) -> Path:
    """Lay out links to images, round after round, in folders of their classes."""
    files = sorted(one for one in images.glob("*/*") if one.is_file())
    for number in range(count):
        source = files[number % len(files)]
        place = folder / source.parent.name / f"{number // len(files):03}-{source.name}"
        if not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(source.resolve())
    return folder


def done(run: Path) -> int:
    """How many samples of a run are on the disk; each has a row for either stack."""
    try:
        return sum(pq.read_metadata(part).num_rows for part in (run / PARTS).glob("*.parquet")) // 2
    except FileNotFoundError:  # the run is complete, and the parts were put together
        return 0


def watch(command: Sequence[str], run: Path, until: int | None, every: float) -> Watched:
    """Run a command and look at its memory; kill it when so many samples are on the disk."""
    found, started = Watched(), time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "simulator.cli", *command],
                               stdout=subprocess.DEVNULL)  # fmt: skip
    while process.poll() is None:
        finished, resident = done(run), _resident(process.pid)
        if resident:
            found.peak = max(found.peak, resident)
            if finished:
                found.seen.append((finished, resident))
        if until is not None and finished >= until:
            process.send_signal(signal.SIGKILL)
            process.wait()
        time.sleep(every)
    found.seconds = time.perf_counter() - started
    wanted = 0 if until is None else -signal.SIGKILL
    if process.returncode != wanted:
        sys.exit(f"simulate {' '.join(command)}: exit code {process.returncode}, not {wanted}")
    return found


def _resident(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
    except OSError:
        return 0
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") if text else 0


def slope(seen: Sequence[tuple[int, int]], count: int) -> float:
    """Bytes that a sample adds, by least squares, once the caches are full."""
    settled = np.array([one for one in seen if SETTLED * count <= one[0] < count], np.float64)
    return float(np.polyfit(settled[:, 0], settled[:, 1], 1)[0]) if len(settled) > 2 else np.nan


def different(one: Path, other: Path) -> list[str]:
    """The columns in which the records of two runs differ, those that are measured aside."""
    tables = [pq.read_table(run / RECORDS) for run in (one, other)]
    if tables[0].num_rows != tables[1].num_rows:
        return [f"{tables[0].num_rows} and {tables[1].num_rows} rows"]
    names = [name for name in tables[0].column_names if name not in MEASURED]
    return [name for name in names if not tables[0][name].equals(tables[1][name])]


def rows(whole: Watched, killed: Sequence[Watched], count: int) -> Iterator[tuple[str, str]]:
    """The lines of the table."""
    mega = 2**20
    yield "images", f"{count:,}"
    yield "seconds, in one go", f"{whole.seconds:,.0f}"
    yield "seconds, killed twice", " + ".join(f"{one.seconds:,.0f}" for one in killed)
    for part in (0.1, 0.25, 0.5, 0.75, 0.95):
        near = [resident for finished, resident in whole.seen if finished >= part * count]
        if near:
            yield f"resident at {part:.0%} of the samples", f"{near[0] / mega:,.0f} MiB"
    yield "resident at most", f"{whole.peak / mega:,.0f} MiB"
    yield "added by a sample", f"{slope(whole.seen, count):,.0f} bytes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--train", default="pillow_bilinear_fp32")
    parser.add_argument("--deploy", default="opencv_fp32")
    parser.add_argument("--out", type=Path, default=Path("large-run"))
    parser.add_argument("--every", type=float, default=0.25, help="seconds between two looks")
    options = parser.parse_args()
    data = links(options.images, options.count, options.out / "images")
    whole, broken = options.out / "whole", options.out / "killed"
    stacks = ["--train", options.train, "--deploy", options.deploy, "--model", options.model]
    asked = [*stacks, "--data", str(data), "--quick", "--overwrite", "--out"]
    every = options.every
    first = watch([*asked, str(whole)], whole, None, every)
    cut = [
        watch([*asked, str(broken)], broken, options.count // 3, every),
        watch(["resume", str(broken)], broken, 2 * options.count // 3, every),
        watch(["resume", str(broken)], broken, None, every),
    ]
    print("| | |\n| --- | --- |")
    for name, value in rows(first, cut, options.count):
        print(f"| {name} | {value} |")
    differ = different(whole, broken)
    print(f"| records that differ | {', '.join(differ) or 'none'} |")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
