"""Run folders of the timed jobs, of latencies that a test has made up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from made_results import manifest, report

from simulator.contract.stage import timed_steps
from simulator.latency import figures
from simulator.latency import tail_figures as tail
from simulator.latency.inputs import Inputs, influence
from simulator.latency.times import NEVER, Times
from simulator.results.json_text import finite
from simulator.results.times import to_map

MS = 1_000_000


class Share:
    """A metric: the share of samples that are right and not late."""

    def __init__(self, right: Sequence[bool]) -> None:
        self._right = np.array(right, float)
        self.whole = float(self._right.mean())

    def of(self, late):
        return (~late * self._right).mean(axis=1)

    def each(self, late):
        return {"top1": self.of(late)}


def ms(*rounds: Sequence[float | None], stages: Mapping[str, float] | None = None) -> Times:
    """Rounds in ms, None where no answer came; *stages* are shares of the total."""
    total = np.array([[NEVER if t is None else round(t * MS) for t in one] for one in rounds])
    parts = stages or {"infer": 1.0}
    split = {name: np.where(total == NEVER, -1, total * part) for name, part in parts.items()}
    return Times(total, {name: values.astype(np.int64) for name, values in split.items()})


def run(
    folder: Path,
    times: Mapping[str, Times],
    sizes: Sequence[tuple[int, int]] | None = None,
    names: Sequence[str] | None = None,
    right: Mapping[str, Sequence[bool]] | None = None,
    deadlines: Sequence[float] = (),
    **changed: Any,
) -> Path:
    """Write a finished run.

    Args:
        folder: where.
        times: of each stack.
        sizes: columns and rows of each sample.
        names: of the samples.
        right: which answers are right, for a run of ``simulate tail``.
        deadlines: in ms.
        changed: of the summary.
    """
    n = next(iter(times.values())).total.shape[1]
    names = names or [f"{at:05d}.jpg" for at in range(n)]
    sizes = sizes or [(500, 375)] * n
    folder.mkdir(parents=True)
    widths, heights = zip(*sizes, strict=True)
    inputs = Inputs(names, {"width": widths, "height": heights, "bytes": [1] * n})
    summary = _summary(times, inputs) | changed
    if right is not None:
        judges = {side: Share(one) for side, one in right.items()}
        summary["tail"], why = tail.tail(times, judges, list(deadlines), 0, 20)
        summary |= {
            "command": "tail",
            "better": tail.better({side: one.curve for side, one in summary["tail"].items()}),
            "convergence": tail.convergence(times),
        }  # fmt: skip
        summary["missing"] |= why
    columns = {"sample": names, "width": [w for w, _ in sizes], "height": [h for _, h in sizes]}
    pq.write_table(pa.table(columns), folder / "samples.parquet")
    records = {"sample": names, "side": ["train"] * n, "skipped": pa.nulls(n, pa.string())}
    pq.write_table(pa.table(records), folder / "records.parquet")
    pq.write_table(latencies(times, names), folder / "latencies.parquet")
    for name, content in (
        ("summary", summary),
        ("manifest", manifest(summary["command"], times, names)),
    ):
        text = json.dumps(finite(content), ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def latencies(times: Mapping[str, Times], names: Sequence[str]) -> pa.Table:
    """A row per round, stack and sample."""
    rows = []
    for side, one in times.items():
        r, n = one.total.shape
        columns: dict[str, Any] = {
            "round": np.repeat(np.arange(r, dtype=np.int32), n),
            "sample": list(names) * r,
            "side": [side] * (r * n),
        }
        steps = timed_steps()
        ns = [one.stages.get(step, np.full((r, n), -1)).ravel() for step in steps]
        columns["ns"] = to_map(np.stack(ns, axis=1), steps)
        total = one.total.ravel()
        columns["total_ns"] = pa.array(total, pa.int64(), mask=total == NEVER)
        rows.append(pa.table(columns))
    return pa.concat_tables(rows)


def _summary(times: Mapping[str, Times], inputs: Inputs) -> dict[str, Any]:
    return report({
        "command": "latency",
        "scenario": "SingleStream",
        "task": "classification",
        "metric": "top1",
        "model": "colors",
        "samples": len(inputs.names),
        "skipped": 0,
        "skipped_samples": [],
        "workers": 2,
        "protocol": {"warm_up": 16, "turn": 32, "interleaved": list(times)},
        "ratio": figures.ratios(times),
        "conditions": None,
        "stacks": {
            side: {
                "profile": f"{side}_fp32",
                "overrides": [],
                "effective": {"compute": "fp32"},
                "times": "recorded" if one.source else "measured",
                "source": one.source or None,
                "rounds": one.rounds,
                "queries": int(one.total.size),
                "failed": one.failed,
            }
            for side, one in times.items()
        },
        "machine": {
            "cpu": "a processor", "cores": 2, "usable_cores": [0, 1], "platform": "Linux",
        },
        "latency_ms": figures.table(times),
        "percentiles": figures.percentiles(times),
        "spread": figures.spread(times),
        "inputs": influence(times, inputs),
        "missing": figures.missing(times),
        "warnings": [],
    })  # fmt: skip
