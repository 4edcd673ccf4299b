"""The steps that calibration finds: the result after training, and the start of fine-tuning."""

from __future__ import annotations

import numpy as np

from backends.fake_quant.formulas import Grid, clip_codes, first_step, least_error_step, lsq_codes
from backends.fake_quant.observed import Observed
from simulator.contract import Array, Options


def activation_grid(options: Options, seen: Observed, bits: int) -> Grid:
    """Return the grid of an activation, with one step, a float32 scalar.

    Args:
        options: of the quantizer.
        seen: the activation on the calibration samples.
        bits: 2 to 8.
    """
    method = options["method"]
    if method == "lsq":
        low, high = lsq_codes(bits, seen.signed)
        step = first_step(np.array([[seen.mean]]), high)
    else:
        low, high = clip_codes(bits, seen.signed)
        step = np.array([[seen.most / high]], np.float32)
    if method == "pact" or options.get("step") == "least_error":
        step = least_error_step(seen.values, step, low, high)
    return Grid(step[0, 0], low, high)


def weight_grid(options: Options, weights: Array, axis: int, bits: int) -> Grid:
    """Return LSQ's grid of weights; its steps multiply the weights by broadcasting.

    Args:
        options: of the quantizer: ``weights`` and ``step``.
        weights: float32, of two dimensions or more.
        axis: that of output channels.
        bits: 2 to 8.
    """
    rows = np.moveaxis(weights, axis, 0)
    whole = options["weights"] == "per_tensor"
    table = rows.reshape(1 if whole else len(rows), -1)
    low, high = lsq_codes(bits, signed=True)
    step = first_step(np.abs(table).mean(1, keepdims=True, dtype=np.float64), high)
    if options["step"] == "least_error":
        step = least_error_step(table, step, low, high)
    shape = [1] * weights.ndim
    shape[axis] = len(table)
    return Grid(step.reshape(shape), low, high)
