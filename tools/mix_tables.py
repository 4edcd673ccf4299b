"""Tables 7 and 8 of SysNoise: fine-tune on each option and on all of them, test on each option.

    python tools/mix_tables.py model.yaml TRAIN TEST OUT --epochs 2 --seeds 1

Each column of the suite is a table: a row for each option that the network is fine-tuned on, and
one for the mix; a column for each option that it is tested on; mean and standard deviation (ddof =
1: that reproduces the paper's own rows). Accuracies are in percent, means over the seeds. Below
each table: by how much the mix spreads less than each row, and how much better its mean is, with
intervals of 95 % from a paired bootstrap over the test images. It goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from finished import of_same_settings

from simulator.errors import RunError
from simulator.experiments.sweep import sweep
from simulator.mitigation import MixedPreprocessing
from simulator.mitigation.finetune import Settings, finetune
from simulator.profile.suite import load_suite
from simulator.results.read import read_run

MIX, RESAMPLES = "mix", 2000


@dataclass(frozen=True, slots=True)
class Row:
    """What a network is fine-tuned on: an option of a column, or all of them."""

    column: str
    option: str
    folder: str

    def settings(self, given: argparse.Namespace, seed: int) -> Settings:
        """Return how it learns."""
        mixed = self.option == MIX
        return Settings(
            epochs=given.epochs,
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
    add("--only", help="learn and test these rows alone, and print no table: FOLDER,FOLDER")
    add("--columns", default="resize,decode")
    given = parser.parse_args()
    for seed in range(given.seeds):
        every: dict[str, Row] = {}
        for column in _columns(given):
            for row in rows(given, column):
                every.setdefault(row.folder, row)
        for row in every.values():
            if given.only and row.folder not in given.only.split(","):
                continue
            place = given.out / f"{row.folder}-{seed}"
            settings = row.settings(given, seed)
            summary = finetune(given.model, given.train, place, settings, limit=given.limit)
            print(f"{place}: {100 * summary['accuracy']:.1f} %", file=sys.stderr, flush=True)
            tested(given, row, seed)
    for column in () if given.only else _columns(given):
        print(table(given, column), flush=True)


def _columns(given: argparse.Namespace) -> list[str]:
    return list(given.columns.split(","))


def rows(given: argparse.Namespace, column: str) -> Iterator[Row]:
    """Yield the rows of a table; the training stack's own is one folder for all tables."""
    options = load_suite(given.suite).spec.columns[column]
    base = MixedPreprocessing(given.suite, model=given.model, columns=()).base
    for option in options:
        one = MixedPreprocessing(given.suite, model=given.model, columns=(), fixed={column: option})
        yield Row(column, option, "base" if one.base == base else f"{column}-{option}")
    yield Row(column, MIX, f"{column}-{MIX}")


def tested(given: argparse.Namespace, row: Row, seed: int) -> dict[tuple[str, str], np.ndarray]:
    """Return for each option of the suite, (images,), whether a network is right: one sweep."""
    place = given.out / f"{row.folder}-{seed}"
    runs = place.with_name(f"{place.name}-tested")
    asked = {"data": given.test, "limit": given.test_limit}
    try:
        records = read_run(runs / place.name)[2].to_pydict()
    except RunError:  # there is none, or it was stopped
        options = asked | {"workers": given.threads}
        sweep(given.suite, models=[place / "model.yaml"], out=runs, overwrite=True, **options)
        records = read_run(runs / place.name)[2].to_pydict()
    suite = load_suite(given.suite).path
    of_same_settings(runs / place.name, suite=suite, model=place / "model.yaml", **asked)
    found: dict[tuple[str, str], list[bool]] = {}
    for side, right, skipped in zip(
        records["side"], records["correct"], records["skipped"], strict=True
    ):
        if skipped is None and "/" in side:
            found.setdefault(tuple(side.split("/")), []).append(right)
    return {key: np.array(values) for key, values in found.items()}


def table(given: argparse.Namespace, column: str) -> str:
    """Return a table in Markdown, and how the mix compares with each row."""
    every = list(rows(given, column))
    options = list(load_suite(given.suite).spec.columns[column])
    cells: dict[str, np.ndarray] = {}  # (seeds, options, images)
    for row in every:
        of_seeds = [tested(given, row, seed) for seed in range(given.seeds)]
        cells[row.option] = np.array([[one[column, name] for name in options] for one in of_seeds])
    lines = [f"| trained on / tested on | {' | '.join(options)} | mean | std |"]
    lines.append("|---" * (len(options) + 3) + "|")
    for name, right in cells.items():
        tops = 100 * right.mean((0, 2))
        values = " | ".join(f"{top:.2f}" for top in tops)
        mean, std = figures(right)
        lines.append(f"| {name} | {values} | {mean:.2f} | {std:.3f} |")
    lines += ["", "| mix against | std | mean |", "|---|---|---|"]
    for name in options:
        (spread, spread_ci), (gain, gain_ci) = compared(cells[MIX], cells[name])
        lines.append(
            f"| {name} | {spread:+.3f} ({spread_ci[0]:+.3f} to {spread_ci[1]:+.3f}) "
            f"| {gain:+.2f} ({gain_ci[0]:+.2f} to {gain_ci[1]:+.2f}) |"
        )
    images = cells[MIX].shape[2]
    return "\n".join([f"{column}, {images} images, {given.seeds} seeds", "", *lines, ""])


def figures(right: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation (ddof = 1) over the options, of the mean over the seeds, in %."""
    tops = 100 * right.mean((0, 2))
    return float(tops.mean()), float(tops.std(ddof=1))


def compared(mix: np.ndarray, one: np.ndarray) -> list[tuple[float, tuple[float, float]]]:
    """Return what the mix has more of std and of mean, each with its interval."""
    random, count = np.random.default_rng(0), mix.shape[2]
    drawn = np.array([
        np.subtract(figures(mix[..., index]), figures(one[..., index]))
        for index in (random.integers(count, size=count) for _ in range(RESAMPLES))
    ])  # fmt: skip
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    whole = np.subtract(figures(mix), figures(one))
    return [(float(whole[at]), (float(low[at]), float(high[at]))) for at in (1, 0)]


if __name__ == "__main__":
    main()
