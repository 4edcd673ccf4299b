"""Faults per second in the built-in network; run by ``make bench``.

The injectors against PyTorch's forward hooks and in-place weights on the same network, converted by
onnx2torch. Elements are drawn uniformly; all sides run on one thread, interleaved, and are measured
in its CPU time, so that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

import bench
import numpy as np
import onnx

from backends.intel.openvino_runtime import OpenVinoRuntime
from backends.ort.quantizer import OrtQuantizer
from backends.ort.runtime import OrtRuntime
from backends.pytorch_converters import onnx2torch, plain, registered, torch
from simulator.contract import BitFault, Injector, Runtime, Site, Suffix, Target

SHAPE = (1, 3, 224, 224)
OPTIONS = {
    "device": "cpu", "provider": "cpu", "io_binding": False, "threads": 1,
    "graph_optimization_level": "all", "storage": "fp32", "compute": "fp32",
}  # fmt: skip
QUANTIZER = {
    "weights": "per_channel", "activations": "uint8", "symmetric": False, "reduce_range": False,
    "target": "cpu",
    "operators": "all", "bias_correction": False, "method": "minmax",
    "keep": {"op_types": [], "nodes": [], "reason": ""},
}  # fmt: skip
BIT, CAMPAIGN, MINUTES, CORES, FASTER = 3, 10_000, 30, 2, 3
Fault = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=100, help="for each side and target")
    args = parser.parse_args()
    from simulator.data import example

    model = example.model_card().parent / "model.onnx"
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        integers = Path(folder) / "int8.onnx"
        OrtQuantizer(QUANTIZER).quantize(model, integers, iter([{"input": x}] * 2))
        sides = {
            "ONNX Runtime FP32": opened(OrtRuntime, model),
            "ONNX Runtime INT8": opened(OrtRuntime, integers, storage="int8", compute="int8"),
            "OpenVINO FP32": opened(OpenVinoRuntime, model),
        }
        rows, seconds = [], {}
        for target in (Target.WEIGHTS, Target.NEURONS):
            faults = {"PyTorch": hooked(model, x, target)}
            for name, injector in sides.items():
                faults[name] = injected(injector, x, target, args.faults, stack)
            spent = measured(faults, args.faults)
            seconds[target] = spent
            rows += [rated(f"{name}, {target}", spent[name], spent["PyTorch"]) for name in sides]
    rows += campaigns(sides, seconds)
    bench.show(rows, f"{args.faults} faults of every kind, one thread")


def opened(runtime: type[Runtime], model: Path, **changes: str) -> Injector:
    return runtime.injector()(model, {**OPTIONS, **changes})


def injected(
    injector: Injector, x: Any, target: Target, count: int, stack: ExitStack
) -> Iterator[Fault]:
    """Yield faults in an injector; a site is opened once, outside of what is measured."""
    trace, sites = injector.trace({"input": x}), of(injector.sites, target)
    opened: dict[Site, Suffix] = {}
    for place, index in drawn([site.elements for site in sites], count):
        site = sites[place]
        if site not in opened:
            opened[site] = stack.enter_context(injector.at(site))
            opened[site].run(trace)
        yield lambda own=opened[site], index=index: own.run(trace, [BitFault(index, BIT)])


def of(sites: Sequence[Site], target: Target) -> list[Site]:
    return [site for site in sites if site.target is target]


def drawn(sizes: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Yield tensors and elements, uniformly over all elements."""
    ends, rng = np.cumsum(sizes), np.random.default_rng(1)
    for one in np.sort(rng.integers(ends[-1], size=count)):
        place = int(np.searchsorted(ends, one, side="right"))
        yield place, int(one - ends[place] + sizes[place])


def hooked(path: Path, x: Any, target: Target) -> Iterator[Fault]:
    """Yield faults in PyTorch without end: a hook on a layer's output, or a weight in place."""
    registered()
    torch.set_num_threads(1)
    module = onnx2torch.convert(plain(onnx.load(path))).eval()
    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    layers = [one for one in module.modules() if isinstance(one, kinds)]
    sizes: list[int] = []
    watches = [
        one.register_forward_hook(lambda layer, given, made: sizes.append(made.numel()))
        for one in layers
    ]
    image = torch.from_numpy(x)
    with torch.inference_mode():
        module(image)
    for watch in watches:
        watch.remove()
    if target is Target.WEIGHTS:
        sizes = [one.weight.numel() for one in layers]

    def flip(values: Any, index: int) -> None:
        values.view(-1).view(torch.int32)[index] ^= 1 << BIT

    def neuron(layer: Any, index: int) -> None:
        handle = layer.register_forward_hook(lambda own, given, made: flip(made, index))
        module(image)
        handle.remove()

    def weight(layer: Any, index: int) -> None:
        flip(layer.weight.data, index)
        module(image)
        flip(layer.weight.data, index)

    act = weight if target is Target.WEIGHTS else neuron

    def run(layer: Any, index: int) -> None:
        with torch.inference_mode():
            act(layer, index)

    for place, index in drawn(sizes, 10_000):
        yield lambda layer=layers[place], index=index: run(layer, index)


def measured(sides: dict[str, Iterator[Fault]], count: int) -> dict[str, float]:
    """Return seconds of one thread for a fault of each side."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(count):
        for name, faults in sides.items():
            fault = next(faults)
            start = time.process_time()
            fault()
            spent[name].append(time.process_time() - start)
    return {name: fmean(times) for name, times in spent.items()}


def rated(what: str, own: float, other: float) -> tuple[str, ...]:
    note = f"{1 / own:.0f} against {1 / other:.0f} faults a second"
    return bench.row(f"{what}: time / PyTorch hooks", own / other, 1 / FASTER, note)


def campaigns(
    sides: dict[str, Injector], seconds: dict[Target, dict[str, float]]
) -> Iterator[tuple[str, ...]]:
    """Tell how long the longest campaign takes on two cores, with opening every site."""
    for name, injector in sides.items():
        target = max(seconds, key=lambda one: seconds[one][name])
        start = time.process_time()
        for site in of(injector.sites, target):
            injector.at(site).close()
        opening = time.process_time() - start
        minutes = (CAMPAIGN * seconds[target][name] + opening) / 60 / CORES
        note = f"{target}; {opening:.0f} s of it open every site once"
        yield bench.row(f"{name}: {CAMPAIGN:,} faults, minutes", minutes, MINUTES, note)


if __name__ == "__main__":
    main()
