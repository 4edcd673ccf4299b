"""Print train option x test option from runs of ``simulate sweep``: docs/measured/training.md.

    python tools/decoder_table.py RUNS

Each run is of a network called OPTION-SEED, on a suite with the one column ``decode``. The first
table has the form of Table 9 of SysNoise (arXiv 2307.00280): accuracy in percent, the mean over
seeds and its standard deviation; mean and standard deviation (n - 1) over the test options. The
second one has what each row has more than the first, with 95 % intervals of a bootstrap over
images, paired.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa

from simulator.results.read import read_run

Right = dict[str, np.ndarray]
"""By test option, whether each answer is right: (N,) bool, in the order of the samples."""
RESAMPLES = 2000


def answers(records: pa.Table) -> Right:
    """Read what a network answered on each option."""
    found: dict[str, dict[str, bool]] = {}
    for row in records.to_pylist():
        column, _, option = row["side"].partition("/")
        if column == "decode":
            found.setdefault(option, {})[row["sample"]] = row["correct"]
    names = sorted(next(iter(found.values())))
    return {option: np.array([right[name] for name in names]) for option, right in found.items()}


def read(runs: list[Path]) -> dict[str, list[Right]]:
    """Return the answers of every seed, by train option."""
    found: dict[str, list[Right]] = {}
    for run in runs:
        _, summary, records = read_run(run)
        found.setdefault(summary["model"].rpartition("-")[0], []).append(answers(records))
    return found


def deviation(values: list[float]) -> float:
    """The standard deviation of a sample; 0 of one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def table(found: dict[str, list[Right]], tests: list[str]) -> None:
    """Print accuracy by train and test option."""
    print(f"| train \\ test | {' | '.join(tests)} | mean | std | seeds |")
    print("| --- " * (len(tests) + 4) + "|")
    for name, seeds in found.items():
        by_seed = [[100 * float(one[test].mean()) for one in seeds] for test in tests]
        row = [float(np.mean(values)) for values in by_seed]
        cells = [f"{np.mean(values):.2f} ± {deviation(values):.2f}" for values in by_seed]
        told = f"{np.mean(row):.2f} | {deviation(row):.2f} | {len(seeds)}"
        print(f"| {name} | {' | '.join(cells)} | {told} |")


def gains(found: dict[str, list[Right]], tests: list[str]) -> None:
    """Print the points that each train option has more than the first."""
    first, *others = found
    random = np.random.default_rng(0)
    print(f"| more than {first} | {' | '.join(tests)} |")
    print("| --- " * (len(tests) + 1) + "|")
    for name in others:
        cells = []
        for test in tests:
            own, base = (np.mean([one[test] for one in found[of]], axis=0) for of in (name, first))
            draws = random.integers(len(own), size=(RESAMPLES, len(own)))
            low, high = np.percentile(100 * (own - base)[draws].mean(axis=1), [2.5, 97.5])
            cells.append(f"{100 * (own - base).mean():+.2f} ({low:+.2f} to {high:+.2f})")
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    found = read(parser.parse_args().runs)
    tests = list(next(iter(found.values()))[0])
    table(found, tests)
    print()
    gains(found, tests)


if __name__ == "__main__":
    main()
