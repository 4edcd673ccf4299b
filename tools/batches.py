"""Which runtimes give a sample the same bits in batches: the tables of docs/batches.md.

    python tools/batches.py [MODEL.yaml DATA]

Every stack runs 64 samples of the model one by one and in batches; the outputs are compared bit by
bit. Without a model it is the built-in one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np

from simulator.contract.recipe import Boundary
from simulator.errors import UserError
from simulator.experiments.common import chosen
from simulator.experiments.session import Session, Variant
from simulator.pipeline.plan import Arm, plan

BATCHES = (4, 16, 64)
_TORCH = {
    "backend": "pytorch", "device": "cpu", "threads": 1, "mode": "eager",
    "graph_optimization_level": None,
    "memory_format": "contiguous", "exporter": {"backend": "onnx2torch"},
}  # fmt: skip
_GONE = {"graph_optimization_level": None}
_FP32 = {"storage": "fp32", "compute": "fp32"}
_DYNAMIC = {
    "storage": "int8", "compute": "int8",
    "quantizer": {
        "backend": "onnxruntime", "weights": "per_channel", "activations": "dynamic",
        "reduce_range": False,
    },
}  # fmt: skip


def _plain(backend: str, **more: object) -> list[str]:
    section = {"backend": backend, "device": "cpu", "threads": 1, **_GONE, **more}
    return [f"runtime={json.dumps(section)}", f"precision={json.dumps(_FP32)}"]


STACKS = {
    "onnxruntime FP32": ("pillow_fp32", []),
    "onnxruntime FP32, disable_all": (
        "pillow_fp32", ["runtime.graph_optimization_level=disable_all"],
    ),
    "onnxruntime INT8 (QDQ)": ("ort_int8", []),
    "onnxruntime INT8, dynamic": ("pillow_fp32", [f"precision={json.dumps(_DYNAMIC)}"]),
    "openvino FP32": ("pillow_fp32", _plain("openvino")),
    "openvino INT8 (QDQ)": ("openvino_int8", []),
    "pytorch FP32, eager": ("pillow_fp32", [f"runtime={json.dumps(_TORCH)}"]),
    "pytorch FP32, channels_last": (
        "pillow_fp32", [f"runtime={json.dumps({**_TORCH, 'memory_format': 'channels_last'})}"],
    ),
    "litert FP32, xnnpack": ("litert_fp32", []),
    "litert FP32, builtin": ("litert_fp32", ["runtime.kernels=builtin"]),
    "litert INT8, xnnpack": ("litert_int8", []),
    "mnn FP32": ("mnn_fp32", []),
    "tvm FP32": ("pillow_fp32", _plain("tvm")),
    "iree FP32": ("pillow_fp32", _plain("iree")),
}  # fmt: skip


def rows(session: Session, batches: tuple[int, ...], samples: int) -> Iterator[list[str]]:
    """Yield a row of the table for each runtime: its name, and a cell for each batch."""
    for name, (reference, changes) in STACKS.items():
        cells = []
        for size in batches:
            try:
                cells.append(_cell(session, reference, changes, size, samples))
            except UserError as error:
                cells.append(f"refused: {' '.join(str(error).split())[:160]}")
        yield [name, *cells]


def _cell(session: Session, reference: str, changes: list[str], size: int, samples: int) -> str:
    """Hold batches of one size against single samples."""
    kinds = {"one": changes, "many": [*changes, f"runtime.batch={size}"]}
    stacks = []
    for kind, own in kinds.items():
        made = chosen(reference, own)
        pair = {"train": made, "deploy": made}
        stacks.append(session.stack(Variant(kind, made, pair)))
    merged = plan({Arm(s.side): s.chain.until(Boundary.OUTPUTS) for s in stacks})
    opened = session.executor.open(merged)
    differ, most, largest = 0, 0.0, 0.0
    for item in islice(session.dataset.items, samples):
        one, many = opened.walk(session.executor.context(item)).answers()
        differ += one.digest != many.digest
        for key, array in one.outputs.items():
            most = max(most, float(np.abs(array - many.outputs[key]).max()))
            largest = max(largest, float(np.abs(array).max()))
    if not differ:
        return "bit-equal"
    return f"{differ} of {samples} differ, by at most {most / largest:.0e} of the largest"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?")
    parser.add_argument("data", nargs="?")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)))
    parser.add_argument("--only", default="", help="runtimes whose row begins so")
    given = parser.parse_args()
    batches = tuple(map(int, given.batches.split(",")))
    for name in [name for name in STACKS if not name.startswith(given.only)]:
        del STACKS[name]
    print(f"| runtime | {' | '.join(f'batch {size}' for size in batches)} |")
    print("| --- " * (len(batches) + 1) + "|")
    with Session.open(given.model, given.data, given.samples, 0, 1, None, None) as session:
        for row in rows(session, batches, len(session.dataset.items)):
            print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
