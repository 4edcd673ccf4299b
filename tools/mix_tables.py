"""Tables 7 and 8 of SysNoise: fine-tune on each option and on all of them, test on each option.

    python tools/mix_tables.py model.yaml TRAIN TEST OUT --epochs 2 --seeds 1

Each column of the suite is a table: a row for each option that the network is fine-tuned on, and
one for the mix; a column for each option that it is tested on; mean and standard deviation (ddof = 1:
that reproduces the paper's own rows). Accuracies are in percent, means over the seeds. Below each
table: by how much the mix spreads less than each row, and how much better its mean is, with
intervals of 95 % from a paired bootstrap over the test images. It goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
    add("--limit", type=int)
    add("--columns", default="resize,decode")
    given = parser.parse_args()
    for seed in range(given.seeds):
        for row in dict.fromkeys(row for column in _columns(given) for row in rows(given, column)):
            place = given.out / f"{row.folder}-{seed}"
            settings = row.settings(given, seed)
            summary = finetune(given.model, given.train, place, settings, limit=given.limit)
            print(f"{place}: {100 * summary['accuracy']:.1f} %", file=sys.stderr, flush=True)
    for column in _columns(given):
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


def right(given: argparse.Namespace, row: Row, seed: int, column: str) -> np.ndarray:
    """Return (options, images) whether a network is right, from its sweep."""
    place = given.out / f"{row.folder}-{seed}"
    runs = place.with_name(f"{place.name}-tested")
    if not (runs / "summary.json").exists():
        sweep(given.suite, models=[place / "model.yaml"], data=given.test, out=runs, resume=None)
    records = read_run(runs).records
    raise NotImplementedError(records, column)


if __name__ == "__main__":
    main()
