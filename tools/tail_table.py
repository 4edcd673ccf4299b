"""Print the tables of docs/measured/tail-quality.md from a run of ``simulate tail``.

The first, second and fourth have the forms of Tables 2, 3 and 4 of arXiv 2212.13925.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator.results.read import read_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    _, summary, _ = read_run(parser.parse_args().run)
    divergences(summary)
    worst_cases(summary)
    qualities(summary)
    inferences(summary)


def divergences(summary) -> None:
    print("| stack | rounds, train and test | train | test | all latencies | median image |")
    print("| --- | --- | --- | --- | --- | --- |")
    for side, found in summary["tail"].items():
        if (split := found["split"]) is None:
            continue
        rjsd = split["rjsd"]
        train = "-" if rjsd["train"] is None else f"{rjsd['train']:.3f}"
        print(
            f"| {side} | {split['rounds']} and {split['rounds']} | {train} | {rjsd['test']:.3f} "
            f"| {rjsd['pooled']:.3f} | {rjsd['median']:.3f} |"
        )


def worst_cases(summary) -> None:
    """Worst rounds in points; here, as in the paper, delta is train - test."""
    heads = [f"p{p} {part}" for p in (99, 95, 90) for part in ("train", "test", "Δ")]
    print(f"\n| stack | {' | '.join(heads)} | origin |")
    print("| --- |" + " --- |" * (len(heads) + 1))
    for side, found in summary["tail"].items():
        cells = []
        for p in ("99", "95", "90") if found["split"] else ():
            one = found["split"]["thresholds"][p]
            if one is None:
                cells += ["-"] * 3
                continue
            train, test = (100 * one[part]["worst"] for part in ("train", "test"))
            cells += [f"{train:.2f}", f"{test:.2f}", f"{train - test:.2f}"]
        print(f"| {side} | {' | '.join(cells)} | {100 * found['quality']:.2f} |")


def qualities(summary) -> None:
    print("\n| stack | deadline | ms | train worst / mean / best | test worst / mean / best "
          "| Δ worst / mean / best | predicted worst (95 %) |")  # fmt: skip
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for side, found in summary["tail"].items():
        print(f"| {side} | none | - | {found['quality']:.2%} | | | |")
        for name, one in (found["split"] or {"thresholds": {}})["thresholds"].items():
            if one is None:
                continue
            label = name if name.endswith("ms") else f"p{name}"
            train, test = (
                " / ".join(f"{one[part][key]:.2%}" for key in ("worst", "mean", "best"))
                for part in ("train", "test")
            )
            delta = " / ".join(
                f"{100 * one['delta'][key]:+.2f}" for key in ("worst", "mean", "best")
            )
            low, high = one["forecast"]["ci95"]
            print(
                f"| {side} | {label} | {one['ms']:.2f} | {train} | {test} | {delta} "
                f"| {low:.2%} to {high:.2%} |"
            )


def inferences(summary) -> None:
    print("\n| stack | images | settled after | inferences | MLPerf, p99 | share |")
    print("| --- | --- | --- | --- | --- | --- |")
    for side, one in summary["convergence"].items():
        done = one["done_after"]
        needed = done * one["instances"] if done else one["inferences"]
        after = f"{done} rounds" if done else f"{one['settled']} after {one['rounds']} rounds"
        print(
            f"| {side} | {one['instances']} | {after} | {needed:,} | {one['mlperf']:,} "
            f"| {needed / one['mlperf']:.1%} |"
        )


if __name__ == "__main__":
    main()
