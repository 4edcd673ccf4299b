"""One model through every runtime and precision that runs here; run by ``make bench``.

Every runtime gets the same tensors. Latencies are medians of interleaved calls on one thread and
are shown as ratios to ONNX Runtime FP32, in the same process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench import DATA

from simulator import machine
from simulator.contract.recipe import Apply, Boundary
from simulator.data.folder import Item
from simulator.errors import SampleError, UserError
from simulator.experiments.common import refuse_missing
from simulator.experiments.session import Session, Variant
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Stack
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.suite import load_suite

MODELS = Path(__file__).resolve().parents[2] / "shared" / "data" / "models"
BASE = "pillow_fp32"
ROUNDS, SLOW_MS, FEW = 40, 150.0, 8
ARITHMETIC = (
    "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
    "amx_fp16", "asimdhp", "asimddp", "bf16", "i8mm",
)  # fmt: skip
"""Flags on which FP16, BF16 and INT8 depend, of x86 and of ARM."""
SQUEEZENET = """\
schema: 1
name: squeezenet1.1-ceil
summary: SqueezeNet 1.1, max pools with ceil_mode (see shared/data/README.md)
task: classification
model: {model}
input: {{height: 227, width: 227, layout: NCHW, order: bgr, top: 255,
        mean: [104.0, 117.0, 123.0], std: [1.0, 1.0, 1.0]}}
geometry: {{kind: short_side_crop, short_side: 256}}
output: {{kind: probabilities}}
"""


@dataclass
class Row:
    """One runtime and precision."""

    name: str
    compute: str = ""
    images: int = 0
    worst: float = 0.0
    flips: int = 0
    ratio: float = 0.0
    problem: str = ""

    def cells(self) -> str:
        few = f" of {FEW}" if self.images == FEW else ""
        return (
            f"| {self.name} | {self.compute} | {self.worst:.2g} | {self.flips}{few} | "
            f"{self.ratio:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--suite", default="every-runtime")
    parser.add_argument("--out", type=Path, help="a Markdown file; default: the terminal")
    args = parser.parse_args()
    data = args.data if args.data.is_dir() else None
    parts = []
    for card in (None, *squeezenet(args.out)):
        with Session.open(card, data, args.images, 0, 1, None, None) as session:
            parts.append(table(session, measure(session, args.suite)))
            if card is None:
                parts.append(overhead(session))
    text = "\n".join([here(), *parts])
    if args.out:
        head = args.out.read_text().split("<!-- measured -->")[0]
        args.out.write_text(f"{head}<!-- measured -->\n\n{text}")
    print(text)


def here() -> str:
    """Say which processor's arithmetic the rows are of."""
    found = machine.processor()
    has = ", ".join(flag for flag in ARITHMETIC if flag in found["flags"])
    return f"Measured on: {found['model']} ({has or 'none of ' + ', '.join(ARITHMETIC)}).\n"


def squeezenet(out: Path | None) -> list[Path]:
    """The card of the max-pool classifier, where its file is."""
    model = MODELS / "squeezenet1.1_ceil_227.onnx"
    if not model.is_file():
        return []
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="bench-runtimes-"))
    (folder / model.name).symlink_to(model)
    card = folder / "card.yaml"
    card.write_text(SQUEEZENET.format(model=model.name))
    return [card]


def measure(session: Session, suite: str) -> list[Row]:
    """Run every option of a suite on the same tensors."""
    base = opened(session, "onnxruntime fp32", [])
    inputs = [
        one for item in session.dataset.items if (one := tensor(session, base, item)) is not None
    ]
    infer = inference(session, base)
    wanted = [output(infer, x) for x in inputs]
    rows = []
    for column, option, changes in load_suite(suite).options():
        name = f"{column} {option}"
        print(f"  {session.card.spec.name}: {name}", file=sys.stderr, flush=True)
        try:
            stack = opened(session, name, changes)
            rows.append(compared(session, name, stack, infer, inputs, wanted))
        except UserError as error:
            rows.append(Row(name, problem=str(error).splitlines()[0].rpartition("/")[2][:110]))
    return rows


def tensor(session: Session, stack: Stack, item: Item) -> Any:
    """The network's input of one image; None where it cannot go through."""
    opened = session.executor.open(plan({Arm("input"): stack.chain.until(Boundary.INPUT)}))
    try:
        return opened.walk(session.executor.context(item)).answers()[0]
    except SampleError:
        return None


def opened(session: Session, name: str, changes: Sequence[str]) -> Stack:
    profile = load(BASE, changes)
    own = profile, choose(profile)
    refuse_missing([own])
    (stack,) = session.stacks([Variant(name, own, {"train": own, "deploy": own})])
    return stack


def inference(session: Session, stack: Stack) -> Apply:
    recipe = next(one for one in stack.chain.recipes if one.stage == "infer")
    return recipe.open(session.builder.runtimes)


def output(infer: Apply, x: Any) -> Any:
    """The first output of an inference."""
    return next(iter(infer(x, None).outputs.values()))


def compared(
    session: Session, name: str, stack: Stack, infer: Apply, inputs: Sequence[Any], wanted: Any
) -> Row:
    """Differences on all inputs, or on a few where a call takes long; then the latency."""
    own = inference(session, stack)
    spent = timed(own, inputs[0])
    slow = spent > SLOW_MS
    count = FEW if slow else len(inputs)
    got = [output(own, x) for x in inputs[:count]]
    pairs = list(zip(got, wanted[:count], strict=True))
    ratios = [timed(own, x) / timed(infer, x) for x in inputs[: (3 if slow else ROUNDS)]]
    return Row(
        name,
        stack.effective.compute or "not told",
        count,
        max(float(np.abs(a - b).max()) for a, b in pairs),
        sum(int(a.argmax() != b.argmax()) for a, b in pairs),
        median(ratios),
    )


def timed(infer: Apply, x: Any) -> float:
    start = time.perf_counter_ns()
    infer(x, None)
    return (time.perf_counter_ns() - start) / 1e6


def overhead(session: Session) -> str:
    """Our adapter beside the bare call, as a share of the call."""
    import onnxruntime as ort

    base = opened(session, "onnxruntime fp32", [])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    bare_session = ort.InferenceSession(
        str(base.artifact.path), options, providers=["CPUExecutionProvider"]
    )
    x = np.zeros((1, 3, 224, 224), np.float32)
    name, own = bare_session.get_inputs()[0].name, inference(session, base)
    ours, bare = [], []
    for _ in range(300):
        ours.append(timed(own, x))
        start = time.perf_counter_ns()
        bare_session.run(None, {name: x})
        bare.append((time.perf_counter_ns() - start) / 1e6)
    gap = median(a - b for a, b in zip(ours, bare, strict=True))
    return (
        f"Our adapter takes {gap * 1000:.0f} µs more than the bare `session.run` of "
        f"{median(bare):.2f} ms: {gap / 5:.2%} of a 5 ms inference (target: below 2 %).\n"
    )


def table(session: Session, rows: Sequence[Row]) -> str:
    images = max((row.images for row in rows), default=0)
    missing: dict[str, list[str]] = {}
    for row in rows:
        if row.problem:
            missing.setdefault(row.problem, []).append(row.name)
    lines = [
        f"### {session.card.spec.name}",
        "",
        "| runtime and precision | effective compute | max abs Δ of the output "
        f"| flips of {images} | latency / ONNX Runtime FP32 |",
        "| --- | --- | --- | --- | --- |",
        *(row.cells() for row in rows if not row.problem),
        "",
        *(f"Not here: {', '.join(names)}: {why}.\n" for why, names in missing.items()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
