"""Activations that the deployment stack's file rounds badly: clipped, or with too large a step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Finding
from simulator.diagnose.layers.case import Case, Rounding, percent, replaced, rounding_of
from simulator.diagnose.layers.errors import relative, rms
from simulator.diagnose.layers.weights import pair
from simulator.model.passes.graph import edit

INPUT = "an input"
"""How the name of a finding begins that is about the layer before; told where none other is."""
UNLIKE, LOST = 5.0, 0.05
"""Inputs of a Concat are unlike where the shared step costs one of them so many times the error of
another, and at least this share of its signal."""


def ranges(case: Case) -> Iterator[Finding]:
    """The rounding of the layer's output, or of an input of it, explains its error."""
    points = {point.tensor: point for point in case.deploy.graph.points.values()}
    if joined := list(_joined(case)):
        yield from joined
        return
    sides: list[tuple[str, Rounding | None, Array]] = [("", case.rounding, case.wanted)]
    sides += [
        (name, rounding_of(case.deploy.graph, points[name]), value)
        for name, value in case.fed.items()
        if name in points and name != case.own.tensor
    ]
    for name, known, values in sides:
        if known is None:
            continue
        whole = values.astype(np.float64)
        lost = relative(known(whole), whole)
        if lost < 0.5 * case.whole:
            continue
        clipped = relative(np.clip(whole, known.low, known.high), whole)
        outside = float(np.mean((whole < known.low) | (whole > known.high)))
        change, code = case.keep("its activations do not bear 8 bits")
        reach = f"{float(whole.min()):.4g} to {float(whole.max()):.4g}, on the first sample"
        what = f"its input {name!r}" if name else "its output"
        what = "the network's input" if case.own.operator == "Input" else what
        if name:
            yield case.finding(
                f"{INPUT} is rounded badly",
                f"{what} reaches from {reach}, the file's range from {known.low:.4g} to "
                f"{known.high:.4g} in steps of {known.step:.4g}; that alone is an error of "
                f"{percent(lost)} of this input",
            )
            return
        if case.own.operator == "Input":
            yield case.finding(
                f"it was calibrated on inputs from {known.low:.3g} to {known.high:.3g}, and gets "
                f"{float(whole.min()):.3g} to {float(whole.max()):.3g}",
                f"{what} has {percent(outside)} of its values outside of the file's range, which "
                f"has steps of {known.step:.4g}; the rounding alone is an error of {percent(lost)}",
                code="calibrate on what the training stack gives the network",
            )
        elif clipped >= 0.5 * lost:
            yield case.finding(
                "the calibrated range clips activations",
                f"{what} has {percent(outside)} of its values outside of the file's range "
                f"{known.low:.4g} to {known.high:.4g}; they reach from {reach}; the clipping alone "
                f"is an error of {percent(clipped)}, the layer's is {percent(case.whole)}",
                change=change,
                code="calibrate on samples that reach these values, and by their extremes; or "
                + code,
            )
        else:
            used = (float(whole.max()) - float(whole.min())) / known.step
            yield case.finding(
                "the step of the activations is too large",
                f"{what} reaches from {reach}, and is rounded in steps of {known.step:.4g}: "
                f"{used:.3g} of 255 steps are used; the rounding alone is an error of "
                f"{percent(lost)}, the layer's is {percent(case.whole)}",
                change=change,
                code=f"calibrate without rare extremes (percentile, entropy), or {code}",
            )
        return


def _joined(case: Case) -> Iterator[Finding]:
    """One scale for the inputs of a Concat whose ranges are unlike."""
    joins = [node for node in case.model.graph.node if node.op_type == "Concat"]
    known = case.rounding
    if len(joins) != 1 or known is None:
        return
    parts = {name: value.astype(np.float64) for name, value in case.fed.items() if value.size}
    lost = {name: relative(known(value), value) for name, value in parts.items()}
    if len(lost) < 2:
        return
    worst, best = max(lost, key=lambda n: lost[n]), min(lost, key=lambda n: lost[n])
    if lost[worst] < max(LOST, UNLIKE * lost[best]):
        return
    told = " and ".join(
        f"{name!r} reaches {float(np.abs(parts[name]).max()):.4g} (root mean square "
        f"{rms(parts[name]):.3g}) and loses {percent(lost[name])}"
        for name in (worst, best)
    )
    change, code = case.keep("one scale for tensors of unlike ranges")
    yield case.finding(
        "one scale for tensors of unlike ranges",
        f"its inputs share a step of {known.step:.4g}: {told} of its signal by that",
        change=change,
        code=f"{code}, or round the inputs by themselves and join them in floating point",
    )


def together(case: Case) -> Iterator[Finding]:
    """Without any rounding the error is gone, though no single one explains it."""
    back = {made: name for name, made in edit.rounded(case.model).items()}
    model = case.copy()
    for node in model.graph.node:
        node.input[:] = [back.get(name, name) for name in node.input]
    what, left = "activations", case.unrounded(model, rounds=False)
    both = pair(case)
    if not case.explained(left) and both is not None:
        replaced(model, both[1].input[1], both[2].astype(np.float32))
        what, left = "activations and weights", case.unrounded(model, rounds=False)
    if not back or not case.explained(left):
        return
    change, code = case.keep(f"its {what} do not bear 8 bits")
    yield case.finding(
        f"8 bits are too few for the {what}",
        f"without rounding its {what} the error goes from {percent(case.error)} to "
        f"{percent(left)}; no single rounding explains it",
        left=left,
        change=change,
        code=code,
    )
