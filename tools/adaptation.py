"""SysNoise's Table 6 on networks that train here: accuracy with and without test-time adaptation.

    python tools/adaptation.py MODEL.yaml [MODEL.yaml ...] DATA OUT --limit 1000
    python tools/adaptation.py MODEL.yaml DATA OUT --limit 1000 --only "TENT, 64" "BN, 64"
    python tools/adaptation.py MODEL.yaml DATA OUT --cost

Every row is a `simulate sweep` of the columns decode, resize and color, with --set for the row's
adaptation; rows that OUT already has are read. Batch-norm adaptation is left out where a model has
no BatchNormalization. It prints two tables in Markdown: the clean accuracy, mean (worst) of what
decode, resize and color change, in points against the row's own clean accuracy, and the clean
accuracy and the mean over all options less those of the first row; then the paper's form, against
the clean accuracy without adaptation, with each column less the same column without adaptation.
Differences have a 95 % interval and p of a paired t-test over images. With --cost it prints the
processor time of a sample instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml
from finished import of_same_settings
from scipy import stats

from simulator import registry, sweep
from simulator.contract import Adapter, Stage
from simulator.errors import ModelError
from simulator.model.card import Card
from simulator.model.card import load as load_card
from simulator.model.onnxfile import check
from simulator.profile.implementations import implementation
from simulator.report.words import moved

DECODE = ("ffmpeg", "dali-ifast", "turbojpeg-plain")
RESIZE = ("pil-nearest", "pil-bicubic", "opencv-nearest", "opencv-bilinear")
COLUMNS = ("decode", "resize", "color")
RUNTIME = (
    "{backend: pytorch, device: cpu, threads: 1, graph_optimization_level: null, mode: eager, "
    "memory_format: contiguous, exporter: {backend: onnx2torch}, adaptation: %s}"
)
ORDER = "order: shuffled, seed: 0"
ADAM = "optimizer: adam, learning_rate: 0.001"
SGD = "optimizer: sgd, learning_rate: 0.00025"


@dataclass(frozen=True, slots=True)
class Row:
    """A sweep's summary, and by stack (images,) whether each answer is right."""

    summary: Any
    correct: dict[str, Any]

    def mean(self, column: str) -> Any:
        """Return (images,): the share of the column's stacks that are right."""
        own = [right for stack, right in self.correct.items() if stack.startswith(f"{column}/")]
        return np.mean(own, axis=0)


def tent(batch: int, how: str = ADAM, reset: str = "never", steps: int = 1) -> str:
    """Return the section of a TENT that is the authors' but for these values."""
    own = f"batch: {batch}, steps: {steps}, {how}, reset: {reset}"
    return f"{{backend: onnx2torch, method: tent, {own}, {ORDER}}}"


def norm(batch: int) -> str:
    """Return the section of batch-norm adaptation."""
    return f"{{backend: onnx2torch, method: batch_norm, batch: {batch}, {ORDER}}}"


ROWS = {
    "none": None,
    "TENT, 64": tent(64),
    "BN, 64": norm(64),
    "TENT, 200": tent(200),
    "BN, 200": norm(200),
    "TENT, 16": tent(16),
    "BN, 16": norm(16),
    "TENT (SGD), 64": tent(64, SGD),
    "TENT, 64, episodic, 3 steps": tent(64, reset="batch", steps=3),
    "BN, 1": norm(1),
}


def main() -> None:
    """Read the command line, run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--under", help="a condition that every stack is under")
    parser.add_argument("--cost", action="store_true", help="print processor times")
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=list(ROWS))
    options = parser.parse_args()
    if options.cost:
        print("\n".join(line for model in options.models for line in costs(load_card(model))))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    suite = options.out / "suite.yaml"
    suite.write_text(yaml.safe_dump(columns(), sort_keys=False))
    papers = []
    for model in options.models:
        base = row("none", model, suite, options)
        for name in dict.fromkeys(["none", *options.only]):
            try:
                found = base if name == "none" else row(name, model, suite, options)
            except ModelError as error:
                print(f"{model}: {name} is left out: {error}", file=sys.stderr)
                continue
            word = f"{load_card(model).spec.name}, {name}" if len(options.models) > 1 else name
            print(line(word, found, base), flush=True)
            papers.append(paper(word, found, base))
    print("", *papers, sep="\n")


def columns() -> dict[str, Any]:
    """Return the suite: three columns of sysnoise, with options that change pixels."""
    found: dict[str, Any] = yaml.safe_load(Path("suites/sysnoise.yaml").read_text())
    kept = {name: found["columns"][name] for name in COLUMNS}
    kept["decode"] = {name: kept["decode"][name] for name in DECODE}
    kept["resize"] = {name: kept["resize"][name] for name in RESIZE}
    found |= {"columns": kept, "name": "adaptation", "train": "pillow_bilinear_fp32"}
    found.pop("combined")
    return found


def row(name: str, model: Path, suite: Path, options: argparse.Namespace) -> Row:
    """Return the row of a model and an adaptation."""
    section = ROWS[name]
    word = "".join(one if one.isalnum() else "_" for one in f"{name} {options.under or ''}".strip())
    out = options.out / load_card(model).spec.name / word
    overrides = [f"train.runtime={RUNTIME % section}"] if section else []
    asked = {"data": options.data, "limit": options.limit, "under": options.under}
    if not list(out.rglob("summary.json")):
        sweep(
            str(suite),
            overrides=overrides,
            models=[model],
            out=out,
            overwrite=True,
            **asked,
        )
    (place,) = out.rglob("summary.json")
    of_same_settings(place.parent, model=model, overrides=overrides, **asked)
    return Row(json.loads(place.read_text()), right(place.parent))


def right(folder: Path) -> dict[str, Any]:
    """Return (images,) of 0 and 1 by stack; the first stack is the training stack."""
    records = pq.read_table(folder / "records.parquet").select(["side", "sample", "correct"])
    by: dict[str, dict[str, bool]] = {}
    for side, sample, correct in zip(*(column.to_pylist() for column in records), strict=True):
        by.setdefault(side, {})[sample] = bool(correct)
    return {
        side: np.array([own[sample] for sample in sorted(own)], float) for side, own in by.items()
    }


def costs(card: Card) -> list[str]:
    """Return rows of milliseconds of processor time for a sample, the median of 15 batches."""
    (feed,) = card.feeds
    rows = []
    for size in (16, 64, 200):
        given = np.random.default_rng(0).normal(size=(size, *feed.shape[1:])).astype(np.float32)
        found = []
        for name in ("BN, 64", "TENT, 64"):
            text = yaml.safe_load(str(ROWS[name])) | {"threads": 1, "batch": size}
            text.pop("backend")
            made = implementation(Stage.ADAPT, registry.backend("onnx2torch"), text).make()
            (output,) = check(card).outputs
            made.open(card.model, given, output)
            found.append(f"{spent(made, given) / size:.2f}")
        rows.append(f"| {size} | {' | '.join(found)} |")
    return rows


def spent(adapter: Adapter, batch: Any) -> float:
    """Return milliseconds of processor time for a batch."""
    times = []
    for _ in range(15):
        start = time.process_time()
        adapter.answer(batch)
        times.append(1000 * (time.process_time() - start))
    return float(np.median(times))


def line(name: str, found: Row, base: Row) -> str:
    """Return a row of the first table, in Markdown."""
    cells = [cell(found, column, 0.0) for column in COLUMNS]
    more = ["", ""]
    if found is not base:
        (one, *several), (other, *many) = found.correct.values(), base.correct.values()
        gained = np.mean(several, axis=0) - np.mean(many, axis=0)
        more = [interval(100 * (one - other)), interval(100 * gained)]
    return f"| {' | '.join([name, format(100 * found.summary['top1'], '.2f'), *cells, *more])} |"


def paper(name: str, found: Row, base: Row) -> str:
    """Return a row in the paper's form: against the clean accuracy without adaptation."""
    cost = base.summary["top1"] - found.summary["top1"]
    cells = [cell(found, column, cost) for column in COLUMNS]
    less = [
        "" if found is base else interval(100 * (found.mean(column) - base.mean(column)))
        for column in COLUMNS
    ]
    return f"| {' | '.join([name, format(100 * base.summary['top1'], '.2f'), *cells, *less])} |"


def cell(found: Row, column: str, cost: float) -> str:
    """Return mean (worst) of a column, in points."""
    one = found.summary["columns"][column]
    return f"{moved(one['mean_drop'] + cost)} ({moved(one['max_drop'] + cost)})"


def interval(found: Any) -> str:
    """Return the mean of paired differences with its 95 % interval and p."""
    mean, error = found.mean(), stats.sem(found)
    if not error:
        return f"{mean:+.2f}"
    low, high = stats.t.interval(0.95, len(found) - 1, mean, error)
    p = stats.ttest_1samp(found, 0).pvalue
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f}), p {p:.2g}"


if __name__ == "__main__":
    main()
