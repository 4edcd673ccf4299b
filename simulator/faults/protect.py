"""A second stack whose activations are held within the range that they have without faults."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import onnx

from simulator.contract import Array, Runtime, Stage
from simulator.contract.recipe import Boundary
from simulator.data.folder import Item
from simulator.errors import SampleError, Unsupported
from simulator.experiments.session import Session
from simulator.model.onnxfile import load
from simulator.model.range_restriction import Ranges, activations, restrict
from simulator.model.store import Artifact, digest, entry
from simulator.pipeline.network import inference, with_engine
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Stack

By = Literal["clip", "min_max"]
MARK = "+range"
"""Added to the name of the protected stack."""
SAMPLES = 64
"""So many samples give the ranges at most."""
TIMED, ROUNDS = 8, 10


def inputs_of(
    session: Session, stack: Stack, items: Sequence[Item], most: int
) -> list[dict[str, Array]]:
    """Return what a stack's network gets for the first samples, by the runtime's names."""
    executor = session.executor
    opened = executor.open(plan({Arm(stack.side): stack.chain.until(Boundary.INPUT)}))
    infer = inference(stack)
    found: list[dict[str, Array]] = []
    for item in items[:most]:
        try:
            (value,) = opened.walk(executor.context(item)).answers()
        except SampleError:
            continue
        found.append(infer.feeds(value))
    return found


def protected(session: Session, stack: Stack, items: Sequence[Item], by: By) -> Stack:
    """Return the stack with a range restriction behind every layer.

    The ranges are those of up to 64 of the evaluated samples without faults.

    Raises:
        Unsupported: its artifact is no ONNX file in float.
    """
    choice = stack.choices[Stage.RUNTIME]
    maker: Any = choice.offer.make
    if stack.artifact.format != "onnx" or maker.takes != "onnx":
        raise Unsupported(f"{stack.side}: a range restriction is for ONNX files")
    feeds = inputs_of(session, stack, items, SAMPLES)
    used = [item.name for item in items[:SAMPLES]]
    key = digest([stack.artifact.key, by, used, [choice.identity()]])

    def make(folder: Path) -> None:
        ranges = _ranges(stack, feeds)
        restrict(stack.artifact.path, folder / "model.onnx", ranges.found, by)

    folder = entry("artifacts", session.card, key, make)
    artifact = Artifact(folder / "model.onnx", key, "onnx")
    return replace(with_engine(stack, artifact), side=f"{stack.side}{MARK}")


def _ranges(stack: Stack, feeds: Sequence[Mapping[str, Array]]) -> Ranges:
    """Run the artifact with its activations as outputs."""
    model = load(stack.artifact.path)
    tensors = activations(model)
    there = {value.name for value in model.graph.output}
    for name in dict.fromkeys(tensors.values()):
        if name not in there:
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    ranges = Ranges()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "tapped.onnx"
        onnx.save(model, str(place))
        with closing(stack.choices[Stage.RUNTIME].make(place)) as runtime:
            for feed in feeds:
                found = runtime.run(feed)
                ranges.add({layer: found[name] for layer, name in tensors.items()})
    return ranges


def slowdown(session: Session, stack: Stack, other: Stack, items: Sequence[Item]) -> float:
    """Return the time of an inference of another stack by that of the first, one thread each.

    The median over rounds; the two take turns.
    """
    feeds = inputs_of(session, stack, items, TIMED)
    pools = [
        session.builder.runtimes.of(one.choices[Stage.RUNTIME], one.artifact)
        for one in (stack, other)
    ]
    with pools[0]() as first, pools[1]() as second:
        ratios = [_time(second, feeds) / _time(first, feeds) for _ in range(ROUNDS + 1)]
    return statistics.median(ratios[1:])


def _time(runtime: Runtime, feeds: Sequence[Mapping[str, Array]]) -> float:
    start = time.perf_counter()
    for feed in feeds:
        runtime.run(feed)
    return time.perf_counter() - start
