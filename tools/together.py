"""What k samples in one inference cost against k alone: the table of docs/batches.md.

    python tools/together.py 16 minilm/model.onnx squeezenet1.1_ceil_227.onnx

The number is the length of a dimension without a size: of a text's tokens, a sound's frames. Inputs
are noise, one thread, processor time. Networks of images are measured in the file with a free batch
that ``runtime.batch: {dynamic: N}`` opens.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx

from simulator.contract import Array, Runtime, Stage
from simulator.experiments.common import chosen
from simulator.model.onnxfile import load
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.batch import with_batch

ROWS = (2, 4, 8)
LEAST, MOST, SECONDS = 5, 25, 2.5
"""Rounds of a cell, and when it has enough of them."""
TOKENS = 20_000
"""No vocabulary here is smaller."""
OPENVINO = {"backend": "openvino", "device": "cpu", "threads": 1, "graph_optimization_level": None}
RUNTIMES = {"onnxruntime": [], "openvino": [f"runtime={json.dumps(OPENVINO)}"]}


def pinned(model: onnx.ModelProto, length: int) -> onnx.ModelProto:
    """Give every free dimension of the inputs a size: 1 for the batch, else *length*."""
    for value in edit.inputs_of(model):
        for at, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.dim_value:
                dim.Clear()
                dim.dim_value = length if at else 1
    return model


def sample(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, Array]:
    """Return noise; where inputs are whole numbers, tokens without padding."""
    feeds: dict[str, Array] = {}
    for value in edit.inputs_of(model):
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = rng.normal(0, 1, shape).astype(np.float32)
        elif "mask" in value.name:
            feeds[value.name] = np.ones(shape, np.int64)
        else:
            feeds[value.name] = rng.integers(5, TOKENS, shape)
    return feeds


def cell(one: Runtime, many: Runtime, singles: list[dict[str, Array]]) -> str:
    """Return the cost of a row of a batch as a share of a single's, and whether bits stay."""
    batch = {name: np.concatenate([each[name] for each in singles]) for name in singles[0]}
    alone, whole = [one.run(each) for each in singles], many.run(batch)
    equal = all(np.array_equal(np.concatenate([a[n] for a in alone]), whole[n]) for n in whole)
    ratios: list[float] = []
    begun = time.monotonic()
    while len(ratios) < LEAST or (len(ratios) < MOST and time.monotonic() - begun < SECONDS):
        start = time.process_time_ns()
        for each in singles:
            one.run(each)
        between = time.process_time_ns()
        many.run(batch)
        ratios.append((time.process_time_ns() - between) / (between - start))
    return f"{np.median(ratios):.2f}{'' if equal else ', other bits'}"


def rows(path: Path, length: int, folder: Path) -> Iterator[list[str]]:
    """Yield a row of the table for each runtime."""
    file, model = path, pinned(load(path), length)
    if len(edit.inputs_of(model)) == 1:
        file = folder / "free.onnx"
        onnx.save(with_batch(model, None), str(file))
    rng = np.random.default_rng(0)
    singles = [sample(model, rng) for _ in range(max(ROWS))]
    for name, changes in RUNTIMES.items():
        make = chosen("pillow_fp32", changes)[1][Stage.RUNTIME].make
        with closing(make(path)) as one, closing(make(file)) as many:
            cells = [cell(one, many, singles[:count]) for count in ROWS]
            yield [f"{path.parent.name}/{path.name}", name, *cells]


def main() -> int:
    """Print the table."""
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        print(__doc__)
        return 2
    print(f"| network | runtime | {' | '.join(f'{count} rows' for count in ROWS)} |")
    print("| --- " * (len(ROWS) + 2) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:]:
            for row in rows(Path(name), int(sys.argv[1]), Path(folder)):
                print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
