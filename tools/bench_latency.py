"""What measuring costs, and how fast its statistics are; run by ``make bench``.

Timings that are compared are interleaved (A B A B ...); a figure is the median of the ratios.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import bench
import numpy as np

SHAPE = [1, 3, 224, 224]
INFERENCE_NS = 5_000_000
"""Of the target: less than 1 % of an inference of 5 ms."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--quick", action="store_true", help="300 calls, 1,000 instances")
    args = parser.parse_args()
    calls = 300 if args.quick else args.calls
    instances = 1_000 if args.quick else 5_000
    rows = [*overhead(calls), *statistics(instances, 50)]
    bench.show(rows, f"{calls:,} calls; {instances:,} instances, 50 rounds")


def overhead(calls: int) -> list[tuple[str, ...]]:
    """Hold what is recorded as ``infer`` against the bare call of the same session.

    The model does next to nothing, so that the difference is not lost in the noise of a real one.
    """
    from simulator.contract.recipe import Chain, Context
    from simulator.pipeline.inference import Infer
    from simulator.pipeline.plan import Arm, plan
    from simulator.pipeline.runtimes import RuntimePool
    from simulator.pipeline.walk import Opened

    tensor = np.ones(SHAPE, np.float32)
    feeds = {"x": tensor}
    with tempfile.TemporaryDirectory() as folder, RuntimePool() as runtimes:
        choice, artifact = _model(Path(folder))
        step = Infer(choice, artifact, {"": "x"}, {"y": "y"})
        opened = Opened(plan({Arm("bench"): Chain((step,))}), runtimes)
        (path,), sample = opened.plan.paths, Context("bench", tensor, None)
        with runtimes.of(choice, artifact)() as runtime:
            session = runtime._session
        bare, recorded, around = [], [], []
        for _ in range(calls):
            start = time.perf_counter_ns()
            session.run(["y"], feeds)
            bare.append(time.perf_counter_ns() - start)
            start = time.perf_counter_ns()
            recorded.append(opened.walk(sample).times(path)["infer"])
            around.append(time.perf_counter_ns() - start)
    extra = [one - other for one, other in zip(recorded, bare, strict=True)]
    whole = [one - other for one, other in zip(around, bare, strict=True)]
    share = 100 * median(extra) / INFERENCE_NS
    return [
        bench.row("recorded beyond the bare call, % of 5 ms", share, 1, f"{calls:,} pairs"),
        bench.row("... in us", median(extra) / 1e3, 0, f"bare: {median(bare) / 1e3:.1f} us"),
        bench.row(
            "not recorded (digest, clock), us", median(whole) / 1e3, 0, "beyond the bare call"
        ),
    ]


def _model(folder: Path):
    """The smallest model with the input of an image network, and the runtime of a profile."""
    import onnx
    from onnx import TensorProto, helper

    from simulator.contract import Stage
    from simulator.model.artifact import Artifact
    from simulator.profile.implementations import choose
    from simulator.profile.load import load

    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["y"])],
        "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "pool.onnx")
    choice = choose(load("pillow_fp32"))[Stage.RUNTIME]
    return choice, Artifact(folder / "pool.onnx", "bench", "onnx")


def statistics(instances: int, rounds: int) -> list[tuple[str, ...]]:
    """Time a refit with a full window against SciPy's densities on as many points."""
    from scipy.stats import gaussian_kde

    from simulator.latency.stopping import Rule, Stopping
    from simulator.statistics.density import fit

    times = np.random.default_rng(0).normal(5e6, 2e5, (rounds + 5, instances))
    stopping = Stopping(Rule(), instances)
    stopping.add(times[:rounds])
    start = time.perf_counter()
    stopping.add(times)
    refit = time.perf_counter() - start
    fitted = fit(times[:rounds])
    points = fitted.grid()
    start = time.perf_counter()
    ours = fitted.density(points)
    mine = time.perf_counter() - start
    start = time.perf_counter()
    theirs = np.stack(
        [gaussian_kde(times[:rounds, i])(points[:, i]) for i in range(instances)], axis=1
    )
    loop = time.perf_counter() - start
    apart = float(np.abs(ours / theirs - 1)[theirs > 1e-12].max())
    note = f"{instances:,} instances x {rounds} rounds"
    return [
        bench.row("a refit of Algorithm 1 against five fits, s", refit, 10, note),
        bench.row("densities / gaussian_kde in a loop", mine / loop, 0, f"differ by {apart:.0e}"),
    ]


if __name__ == "__main__":
    main()
