"""Whether the file or the runtime is to blame: the layer once more in ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from simulator import registry
from simulator.contract import Stage
from simulator.diagnose.finding import Finding
from simulator.diagnose.layers.case import Case, percent
from simulator.model.passes.graph import edit
from simulator.model.probe import saturates
from simulator.pipeline.network import Network
from simulator.profile.implementations import implementation

EVALUATOR = "onnx_reference"
"""The backend that runs each operator as ONNX defines it, in floating point between roundings."""
SLOW = 2**16
"""Elements of a Resize for which the evaluator takes many seconds."""
_VARIANTS: dict[str, dict[str, tuple[object, ...]]] = {
    "Resize": {
        "coordinate_transformation_mode": (
            "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
        ),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        "cubic_coeff_a": (-0.75, -0.5),
    },
    "AveragePool": {"count_include_pad": (0, 1), "ceil_mode": (0, 1)},
    "MaxPool": {"ceil_mode": (0, 1)},
}  # fmt: skip
"""What runtimes are known to do in place of what a file says."""


def kernel(case: Case) -> Iterator[Finding]:
    """The runtime computes the layer otherwise than its own file says."""
    other, who = _other(case)
    if other is None:
        return
    left = case.tried(case.model, other)
    if not case.explained(left) or not np.isfinite(left):
        return
    runtime = case.deploy.name
    told = (
        f"the same file has an error of {percent(left)} in {who}, and of {percent(case.error)} in "
        f"{runtime}"
    )
    if any(node.op_type == "DequantizeLinear" for node in case.model.graph.node) and saturates(
        case.deploy.choice
    ):
        yield case.finding(
            "INT8 sums saturate on this processor",
            f"{told}; two products of 8 bits are summed in 16 bits here, which a probe of "
            f"{runtime} shows (no VNNI)",
            left=left,
            change=case.quantizer(reduce_range=True),
            code="round the weights to 7 bits, or run on a processor with VNNI",
        )
        return
    for name, words in _otherwise(case, other):
        yield case.finding(name, f"{told}; {words}", left=left)
        return
    yield case.finding(
        f"{runtime} computes a layer otherwise than the file says", told, left=left,
        change={}, code=f"report {case.layer} to the makers of {runtime}",
    )  # fmt: skip


def _other(case: Case) -> tuple[Network | None, str]:
    """Return what else runs the layer, in words too; None where it would take long.

    Between roundings only ONNX's own evaluator computes in floating point for sure. It is slow.
    """
    peer, graph = case.peer, case.deploy.graph
    rounds = any(node.op_type == "DequantizeLinear" for node in case.model.graph.node)
    if peer is not None and peer.name != case.deploy.name and not rounds:
        return Network(graph, peer.choice, peer.exporter), peer.name
    slow = any(node.op_type == "Resize" for node in case.model.graph.node)
    if slow and case.wanted.size > SLOW:
        return None, ""
    choice = implementation(
        Stage.RUNTIME, registry.backend(EVALUATOR), {"storage": "fp32", "compute": "fp32"}
    )
    return Network(graph, choice, None), "ONNX's own evaluator, operator by operator"


def _otherwise(case: Case, other: Network) -> Iterator[tuple[str, str]]:
    """Yield the attributes with which another runtime gives what this one gives."""
    for kind, options in _VARIANTS.items():
        found = edit.nodes_of(case.model, kind)
        for values in product(*options.values()) if found else ():
            model, asked = case.copy(), dict(zip(options, values, strict=True))
            for node in edit.nodes_of(model, kind):
                edit.set_attributes(node, **asked)
            try:
                given = case.run(edit.inferred(model), other)
            except Exception:  # it may lack a variant
                continue
            if given.shape == case.given.shape and np.allclose(given, case.given, 1e-4, 1e-6):
                words = ", ".join(f"{name} {value}" for name, value in asked.items())
                yield (
                    f"{case.deploy.name} computes {kind} in another way",
                    f"it gives what {words} would give",
                )
