"""Put faults in neurons in again with plain forward hooks of PyTorch, and compare the answers.

  python tools/check_faults.py RUN --model CARD --data DATA

A third of the rows of each FP32 stack in ONNX Runtime or PyTorch, drawn at random: the model's
ONNX file as onnx2torch converts it, a hook on the module that makes the hit value, one bit changed
in its output. Nothing of the injectors is used. Where ONNX Runtime has fused an activation with a
layer, the hook is on the activation; the graph that it writes says so.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pyarrow.parquet as pq

from backends.pytorch_converters import onnx2torch, plain, registered, torch
from simulator.contract import Stage
from simulator.contract.recipe import Boundary
from simulator.experiments.common import load_stacks, pair_for
from simulator.experiments.session import Session, Variant
from simulator.faults.experiment import Faults, FaultsOptions
from simulator.pipeline.inference import Answer, Infer
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Stack
from simulator.results.read import read_run
from simulator.tasks.impact import decoded
from simulator.tasks.task import Task

SHARE, SEED, RUNTIMES = 3, 7, ("onnxruntime", "pytorch")
NEAR = {"rtol": 1e-3, "atol": 0.05}
"""How near numbers of ONNX Runtime and PyTorch are; boxes in pixels."""
Row = Mapping[str, Any]


class Hooked:
    """The network in PyTorch.

    Args:
        path: of the ONNX file.
    """

    def __init__(self, path: Path) -> None:
        registered()
        torch.set_num_threads(1)
        model = onnx.load(path)
        self.outputs = [one.name for one in model.graph.output]
        nodes = list(model.graph.node)
        self._layers = {node.name: f"node_{at}" for at, node in enumerate(nodes)}
        self._makers = {node.output[0]: f"node_{at}" for at, node in enumerate(nodes)}
        self._made = fused(path)
        self._modules = dict(onnx2torch.convert(plain(model)).eval().named_modules())

    def run(self, value: Any, row: Row, behind: bool) -> tuple[dict[str, Any], bool]:
        """Return the outputs with a fault, and whether all values between modules are finite.

        Args:
            value: what the network gets.
            row: of the fault.
            behind: the activation that ONNX Runtime fused with the layer.
        """
        layer = row["layer"][0]
        hit = self._modules[self._makers[self._made[layer]] if behind else self._layers[layer]]
        finite = True

        def flip(module: Any, given: Any, made: Any) -> Any:
            changed = made.clone(memory_format=torch.contiguous_format)
            bits = changed.numpy().reshape(-1).view(np.uint32)
            for index, bit in zip(row["index"], row["bit"], strict=True):
                bits[index] ^= np.uint32(1) << np.uint32(bit)
            return changed

        def watch(module: Any, given: Any, made: Any) -> None:
            nonlocal finite
            if module is not hit and isinstance(made, torch.Tensor):
                finite &= bool(torch.isfinite(made).all())

        leaves = [one for one in self._modules.values() if not list(one.children())]
        handles = [hit.register_forward_hook(flip)]
        handles += [one.register_forward_hook(watch) for one in leaves]
        with torch.inference_mode():
            found = self._modules[""](torch.from_numpy(value.copy()))
        for handle in handles:
            handle.remove()
        every = found if isinstance(found, tuple | list) else [found]
        return {n: one.numpy() for n, one in zip(self.outputs, every, strict=True)}, finite


def fused(path: Path) -> dict[str, str]:
    """Return the output of each node of the graph that ONNX Runtime writes at ``extended``."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(Path(folder) / "written.onnx")
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(path), options)
        written = onnx.load(options.optimized_model_filepath)
    return {node.name: node.output[0] for node in written.graph.node}


def compared(task: Task, row: Row, record: Row) -> str:
    """Return how equal the answer of a row and one made here are, but for comparisons."""
    columns = [one.name for one in task.columns if one.name in record]
    if all(row[name] == record[name] for name in columns):
        return "equal to the last bit"
    return "near" if all(near(row[name], record[name]) for name in columns) else "different"


def near(one: Any, other: Any) -> bool:
    """Return whether numbers are near; words are equal."""
    try:
        first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    except (TypeError, ValueError):
        return bool(one == other)
    return first.shape == second.shape and bool(np.allclose(first, second, **NEAR, equal_nan=True))


def checked(session: Session, stack: Stack, rows: Sequence[Row], hooked: Hooked) -> Iterator[str]:
    """Yield what came of each row."""
    infer, answer = stack.chain.recipes[-2:]
    assert isinstance(infer, Infer)
    assert isinstance(answer, Answer)
    behind = stack.artifact.format == "onnx"
    first = session.executor.open(plan({Arm(stack.side): stack.chain.until(Boundary.INPUT)}))
    items = {one.name: one for one in session.dataset.items}
    task = session.card.task
    with session.builder.runtimes.of(infer.choice, infer.artifact)() as runtime:
        names = [port.name for port in runtime.outputs]
    for row in rows:
        context = session.executor.context(items[row["sample"]])
        (value,) = first.walk(context).answers()
        outputs, finite = hooked.run(value, row, behind)
        own = dict(zip(names, outputs.values(), strict=True))
        named = {name: own[port] for name, port in infer.outputs.items()}
        found = decoded(task, named, answer.settings, answer.placing(context.source))
        if row["due"]:
            seen = not finite or found.due is not None
            yield "detected: " + ("seen here too" if seen else "nothing seen here")
        elif found.due is not None:
            yield "detected here alone"
        else:
            truth = task.opened(context.truth, context.source)
            yield compared(task, row, task.record(found.prediction, truth))


def _is_in_one_layer(row: Row) -> bool:
    """Whether all bits of a fault are in neurons of the same layer."""
    return set(row["target"]) == {"neurons"} and len(set(row["layer"])) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--model", help="the card, where it has been moved since")
    parser.add_argument("--data", help="likewise")
    given = parser.parse_args()
    manifest, _, _ = read_run(given.run)
    asked = FaultsOptions(**Faults().again(manifest["request"]["arguments"]))
    model, data = given.model or asked.model, given.data or asked.data
    sides = load_stacks(asked.profiles, asked.train, asked.deploy, asked.overrides)
    rows = pq.read_table(given.run / "faults.parquet").to_pylist()
    every = [row for row in rows if row["skipped"] is None and _is_in_one_layer(row)]
    with Session.open(model, data, asked.limit, asked.seed, 1, None, None) as session:
        hooked = Hooked(session.card.model)
        for side, chosen in sides.items():
            rows = [
                row for row in every if row["stack"] == side and set(row["storage"]) == {"float32"}
            ]
            stack = session.stack(Variant(side, chosen, pair_for(sides, chosen)))
            if not rows or stack.choices[Stage.RUNTIME].backend.name not in (
                "onnxruntime",
                "pytorch",
            ):
                continue
            draw = np.random.default_rng(SEED).choice(len(rows), len(rows) // SHARE, replace=False)
            found = Counter(checked(session, stack, [rows[at] for at in sorted(draw)], hooked))
            told = ", ".join(f"{count} {what}" for what, count in found.most_common())
            print(f"{given.run.name}, {side}: {len(draw)} of {len(rows)} rows: {told}", flush=True)


if __name__ == "__main__":
    main()
