"""Tables 7 and 8 of SysNoise: fine-tune on each option and on all of them, test on each option.

    python tools/mix_tables.py model.yaml TRAIN TEST OUT --epochs 2 --seeds 1
    python tools/mix_tables.py detector.yaml TRAIN TEST OUT --epochs 1 --augment ""

Each column of the suite is a table: a row for each option that the network is fine-tuned on, one
for the mix, and one for the network as it is; a column for each option that it is tested on; mean
and standard deviation (ddof = 1: that reproduces the paper's own rows). Figures are in percent,
top-1, and mAP of a detector. With several seeds each figure is its mean over them, and mean and
standard deviation have ± by how much they differ between seeds (ddof = 1). Below each table: by
how much the mix spreads less than each row, and how much better its mean is, with intervals of
95 % from a paired bootstrap over the test images. It goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from finished import of_same_settings

from simulator import sweep
from simulator.errors import RunError
from simulator.experiments.fine_tuning import Finetune, FinetuneOptions
from simulator.mitigation import MixedPreprocessing
from simulator.model.card import Card
from simulator.profile.suite import load_suite
from simulator.results.read import read_run
from simulator.tasks.detection.boxes import detections
from simulator.tasks.detection.metric import Ranking

MIX, AS_IS, RESAMPLES = "mix", "as it is", 2000
Figure = Callable[[np.ndarray], np.ndarray]
"""From (R, images), how often each image counts, to a figure of each, (R,), from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a network is fine-tuned on: an option of a column, all of them, or nothing."""

    column: str
    option: str
    folder: str

    def place(self, given: argparse.Namespace, seed: int) -> Path:
        """Return its folder; a network as it is has no seed."""
        return given.out / f"{self.folder}-{0 if self.option == AS_IS else seed}"

    def options(self, given: argparse.Namespace, seed: int) -> FinetuneOptions:
        """Return how it learns."""
        mixed = self.option == MIX
        return FinetuneOptions(
            model=given.model,
            data=given.train,
            out=self.place(given, seed),
            epochs=given.epochs,
            limit=given.limit,
            learning_rate=given.learning_rate,
            batch=given.batch,
            held_out=given.held_out,
            seed=seed,
            profile=load_suite(given.suite).spec.train,
            threads=given.threads,
            mix=given.suite,
            columns=(self.column,) if mixed else (),
            option=() if mixed else (f"{self.column}={self.option}",),
            augment=tuple(given.augment.split(",")) if given.augment else (),
            statistics=given.statistics,
            name=f"{self.folder}-{seed}",
        )


def main() -> None:
    """Read the command line, learn, test, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    for name in ("model", "train", "test", "out"):
        add(name, type=Path)
    add("--suite", default="sysnoise-mix")
    add("--epochs", type=int, default=2)
    add("--seeds", type=int, default=1)
    add("--learning-rate", type=float, default=0.05)
    add("--batch", type=int, default=128)
    add("--held-out", type=float, default=0.02)
    add("--threads", type=int, default=1)
    add("--augment", default="flip,shift:2")
    add("--statistics", default="learn")
    add("--limit", type=int, help="images to learn from")
    add("--test-limit", type=int, help="images to test on")
    add("--only", help="learn and test these rows alone: FOLDER,FOLDER")
    add("--columns", default="resize,decode")
    given = parser.parse_args()
    for seed in range(given.seeds):
        every: dict[str, Row] = {}
        for column in _columns(given):
            for row in rows(given, column):
                every.setdefault(row.folder, row)
        for row in every.values():
            place = row.place(given, seed)
            if row.option != AS_IS:
                summary = Finetune().run(row.options(given, seed))
                print(f"{place}: {100 * summary['accuracy']:.1f} %", file=sys.stderr, flush=True)
            tested(given, row, seed)
    for column in _columns(given):
        print(table(given, column), flush=True)


def _columns(given: argparse.Namespace) -> list[str]:
    return list(given.columns.split(","))


def rows(given: argparse.Namespace, column: str) -> Iterator[Row]:
    """Yield the rows of a table; the training stack's own is one folder for all tables."""
    wanted = given.only.split(",") if given.only else None
    yield from (row for row in _rows(given, column) if not wanted or row.folder in wanted)


def _rows(given: argparse.Namespace, column: str) -> Iterator[Row]:
    yield Row(column, AS_IS, "as-is")
    options = load_suite(given.suite).spec.columns[column]
    base = MixedPreprocessing(given.suite, model=given.model, columns=()).base
    for option in options:
        one = MixedPreprocessing(given.suite, model=given.model, columns=(), fixed={column: option})
        yield Row(column, option, "base" if one.base == base else f"{column}-{option}")
    yield Row(column, MIX, f"{column}-{MIX}")


def tested(given: argparse.Namespace, row: Row, seed: int) -> dict[tuple[str, str], Figure]:
    """Return the figure of a network for each option of the suite: one sweep."""
    place = row.place(given, seed)
    card = given.model if row.option == AS_IS else place / "model.yaml"
    runs = place.with_name(f"{place.name}-tested")
    name = Card(card).spec.name
    asked = {"data": given.test, "limit": given.test_limit}
    try:
        records = read_run(runs / name)[2].to_pylist()
    except RunError:  # there is none, or it was stopped
        options = asked | {"workers": given.threads}
        sweep(given.suite, models=[card], out=runs, overwrite=True, **options)
        records = read_run(runs / name)[2].to_pylist()
    suite = load_suite(given.suite).path
    of_same_settings(runs / name, suite=suite, model=card, **asked)
    found: dict[tuple[str, str], list[dict]] = {}
    for record in records:
        if record["skipped"] is None and "/" in record["side"]:
            found.setdefault(tuple(record["side"].split("/")), []).append(record)
    return {key: figure(card, given.test, rows) for key, rows in found.items()}


def figure(card: Path, data: Path, records: list[dict]) -> Figure:
    """Return the headline figure of one stack's records: top-1, or mAP."""
    task = Card(card).task
    if task.name == "classification":
        right = np.array([one["correct"] for one in records])
        return lambda counts: counts @ right / counts.sum(1)
    truths = {item.name: item.truth for item in task.load(data).items}
    known = [truths[one["sample"]] for one in records]
    return Ranking.of([detections(one) for one in records], known, task.network.classes).resampled


def resampled(found: list[Figure], images: int) -> np.ndarray:
    """Return (1 + R, figures) in percent: on all images, and on R resamples of them."""
    random = np.random.default_rng(0)
    drawn = [random.integers(images, size=images) for _ in range(RESAMPLES)]
    counts = np.array([np.ones(images, int), *(np.bincount(one, None, images) for one in drawn)])
    return 100 * np.stack([one(counts) for one in found], axis=1)


def table(given: argparse.Namespace, column: str) -> str:
    """Return a table in Markdown, and how the mix compares with each row."""
    every = list(rows(given, column))
    options = list(load_suite(given.suite).spec.columns[column])
    cells: dict[str, np.ndarray] = {}  # (seeds, 1 + R, options)
    for row in every:
        seeds = [tested(given, row, seed) for seed in range(given.seeds)]
        images = images_of(given, row)
        cells[row.option] = np.array(
            [resampled([one[column, name] for name in options], images) for one in seeds]
        )
    lines = [f"| trained on / tested on | {' | '.join(options)} | mean | std |"]
    lines.append("|---" * (len(options) + 3) + "|")
    for name, tops in cells.items():
        values = " | ".join(f"{top:.2f}" for top in tops[:, 0].mean(0))
        mean, std = figures(tops[:, 0])
        lines.append(f"| {name} | {values} | {over(mean, 2)} | {over(std, 3)} |")
    lines += ["", "| mix against | std | mean |", "|---|---|---|"]
    for name in cells if MIX in cells else ():
        if name != MIX:
            (spread, spread_ci), (gain, gain_ci) = compared(cells[MIX], cells[name])
            lines.append(
                f"| {name} | {spread:+.3f} ({spread_ci[0]:+.3f} to {spread_ci[1]:+.3f}) "
                f"| {gain:+.2f} ({gain_ci[0]:+.2f} to {gain_ci[1]:+.2f}) |"
            )
    return "\n".join([f"{column}, {images} images, {given.seeds} seeds", "", *lines, ""])


def images_of(given: argparse.Namespace, row: Row) -> int:
    """Return how many images a network was tested on."""
    runs = given.out / f"{row.folder}-0-tested"
    records = read_run(next(runs.iterdir()))[2].to_pydict()
    pairs = zip(records["side"], records["skipped"], strict=True)
    tested_on = [side for side, skipped in pairs if skipped is None]
    return tested_on.count(tested_on[0])


def figures(tops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (ddof = 1) over the options, (..., options) in %."""
    return tops.mean(-1), tops.std(-1, ddof=1)


def over(seeds: np.ndarray, digits: int) -> str:
    """Return the mean over the seeds, and by how much they differ where there are several."""
    apart = f" ± {seeds.std(ddof=1):.{digits}f}" if seeds.size > 1 and np.ptp(seeds) else ""
    return f"{seeds.mean():.{digits}f}{apart}"


def compared(mix: np.ndarray, one: np.ndarray) -> list[tuple[float, tuple[float, float]]]:
    """Return what the mix has more of std and of mean over the seeds, each with its interval.

    Args:
        mix: (seeds, 1 + R, options) of :func:`resampled`.
        one: likewise, of another row.
    """
    mean, spread = np.subtract(figures(mix), figures(one)).mean(1)
    return [(float(of[0]), tuple(np.percentile(of[1:], [2.5, 97.5]))) for of in (spread, mean)]


if __name__ == "__main__":
    main()
