"""Hide stacks drawn at random from the space, record them, and see whether they are identified.

  python tools/hidden_stacks.py --kind tensors --count 200 --model CARD --out FOLDER
  python tools/hidden_stacks.py --tables FOLDER...         the tables of docs/identify.md

Each stack is recorded in another process, on small probe images, and its result is one line of
FOLDER/results.jsonl: an interrupted call goes on where it was. ``exact``: the answer has the very
steps of the hidden stack. ``equal``: it has other steps, and the recorded bits on every image.
``listed_by_axis``: of each axis, the hidden option is among those that are named as equal; the
combination need not be.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hidden

from simulator.data.recording import load_recording
from simulator.experiments.session import Session
from simulator.identify import kit
from simulator.identify.run import ready, recorded_only, searched
from simulator.identify.space import Space, load_space, space

BASE = "pillow_fp32"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=("frames", "tensors", "outputs", "predictions"))
    parser.add_argument("--after", choices=("decode", "resize", "geometry"))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--model", help="a model card; default: the built-in model")
    parser.add_argument("--space", help="a document; default: all options that run here")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", nargs="+", type=Path)
    options = parser.parse_args()
    if options.tables:
        print(table([row for folder in options.tables for row in read(folder)]))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    data = options.out / "probes"
    if not data.exists():
        write_data(data, options.model)
    hide(options, data)


def write_data(data: Path, model: str | None) -> None:
    """Write the probes that are used."""
    from simulator.data import example
    from simulator.model.card import Card

    data.mkdir()
    card = Card(Path(model) if model else example.model_card())
    for probe in kit.all_probes(card.spec, small=True):
        (data / probe.name).write_bytes(probe.data)


def hide(options: argparse.Namespace, data: Path) -> None:
    """Record and identify each stack that has no result yet."""
    done = {row["seed"] for row in read(options.out)}
    seeds = [
        seed for seed in range(options.first, options.first + options.count) if seed not in done
    ]
    document = options.out / "space.yaml"
    with Session.open(options.model, data, None, 0, 1, None, None) as session:
        if not document.exists():
            whole = (
                load_space(options.space) if options.space
                else space(BASE, session.card, options.kind, options.after)
            )  # fmt: skip
            document.write_text(whole.document(), encoding="utf-8")
        board = multiprocessing.get_context("spawn").Pool(1)
        jobs = [
            (seed, options.model, data, document, options.kind, options.after, options.out)
            for seed in seeds
        ]
        for seed, picks in board.imap(recorded, jobs):
            row = identified(session, load_space(document), options, seed, picks)
            with (options.out / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(
                seed,
                row["result"],
                f"{row['cpu_seconds']:.0f} s of CPU",
                row["differs"],
                flush=True,
            )


_BOARD: dict[str, Any] = {}


def recorded(job: tuple[Any, ...]) -> tuple[int, dict[str, str]]:
    """In the other process: draw a stack and record it; one that cannot run is drawn again."""
    seed, model, data, document, kind, after, out = job
    if not _BOARD:
        _BOARD["session"] = Session.open(model, data, None, 0, 1, None, None)
        _BOARD["space"] = load_space(document)
    session, whole = _BOARD["session"], _BOARD["space"]
    for picks in hidden.draws(whole, session.card, seed):
        if hidden.record(session, whole.stack(picks), kind, out / str(seed), after):
            return seed, picks
    raise AssertionError("draws end never")


def identified(
    session: Session, whole: Space, options: argparse.Namespace, seed: int, picks: dict[str, str]
) -> dict[str, Any]:
    """Search the space for a recording, and compare the answer with what was hidden."""
    start, cpu = time.monotonic(), time.process_time()
    recording = load_recording(options.out / str(seed) / "recording.yaml")
    own, *_ = recorded_only(session, recording)
    found, trials, items = searched(own, *ready(own, recording, whole))
    truth = tuple(picks[axis] for axis in whole.axes)
    same = trials.key(found.best) == trials.key(truth)
    result = "exact" if same and found.exact else "equal" if found.exact else "wrong"
    pairs = zip(whole.axes, found.best, truth, strict=True)
    return {
        "seed": seed,
        "kind": options.kind if options.after is None else f"{options.kind} after {options.after}",
        "result": result,
        "listed_by_axis": all(
            pick in {point[at] for point in found.equal} for at, pick in enumerate(truth)
        ),
        "picks": picks,
        "differs": [] if same else [f"{a}: {b} for {c}" for a, b, c in pairs if b != c],
        "score": [found.score.equal, found.score.images, found.score.mean],
        "classes": len({trials.key(point) for point in found.equal}),
        "tried": trials.tried,
        "images": len(items),
        "seconds": time.monotonic() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the results so far."""
    file = folder / "results.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table, with Clopper-Pearson intervals."""
    lines = [
        "| recording | stacks | its very steps | among equal options, by axis | equal bits "
        "| median CPU |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        these = [row for row in rows if row["kind"] == kind]
        exact = [row["result"] == "exact" for row in these]
        named = [row["listed_by_axis"] for row in these]
        right = [row["result"] != "wrong" for row in these]
        middle = sorted(row["cpu_seconds"] for row in these)[len(these) // 2]
        shares = " | ".join(share(sum(one), len(these)) for one in (exact, named, right))
        lines.append(f"| {kind} | {len(these)} | {shares} | {middle:.0f} s |")
    return "\n".join(lines)


def share(count: int, of: int) -> str:
    """Return a share in percent, with its exact 95 % interval."""
    from scipy.stats import binomtest

    low, high = binomtest(count, of).proportion_ci(0.95, method="exact")
    return f"{count} ({100 * count / of:.1f} %, {100 * low:.1f} to {100 * high:.1f})"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
