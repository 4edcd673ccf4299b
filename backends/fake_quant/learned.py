"""DoReFa, PACT and LSQ as PyTorch modules, with the papers' gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from backends.fake_quant.formulas import Grid

SMALLEST = 1e-8


def passed(values: Tensor, rounded: Tensor) -> Tensor:
    """Return *rounded*, with the gradient of *values*: the straight-through estimator."""
    return values + (rounded - values).detach()


class Lsq(torch.nn.Module):
    """Rounds to a grid whose step is learned.

    The gradient of the step is round(v) - v inside, with v = x / s, and the end's code outside;
    it is scaled by 1 / sqrt(N Qp), with N the number of weights or of activations of one sample.

    Args:
        grid: to start from.
        per_sample: whether the first axis is that of samples, which N does not count.
    """

    def __init__(self, grid: Grid, per_sample: bool) -> None:
        super().__init__()
        self.step = torch.nn.Parameter(torch.from_numpy(np.array(grid.step, np.float32)))
        self._low, self._high, self._per_sample = grid.low, grid.high, per_sample

    def forward(self, values: Tensor) -> Tensor:
        """Round."""
        count = values[0].numel() if self._per_sample else values.numel() / self.step.numel()
        scale = (count * self._high) ** -0.5
        step = passed(self.step * scale, self.step)
        codes = torch.clamp(values / step, self._low, self._high)
        return passed(codes, codes.round()) * step

    def grid(self) -> Grid:
        """Return the current grid."""
        return Grid(self.step.detach().numpy().copy(), self._low, self._high)

    def keep_positive(self) -> None:
        """Undo a change of sign."""
        self.step.data.abs_().clamp_(min=SMALLEST)


class Pact(torch.nn.Module):
    """Clips at a learned alpha, then rounds; d alpha is 1 from alpha on, and 0 below.

    Activations of both signs are clipped at -alpha, too, where d alpha is -1.
    """

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.alpha = torch.nn.Parameter(torch.tensor(float(grid.step) * grid.high))
        self._low, self._high = grid.low, grid.high

    def forward(self, values: Tensor) -> Tensor:
        """Clip and round."""
        clipped = torch.where(values >= self.alpha, self.alpha, values)
        if self._low:
            clipped = torch.where(values <= -self.alpha, -self.alpha, clipped)
        else:
            clipped = clipped.clamp(min=0)
        step = self.alpha / self._high
        return passed(clipped, torch.clamp((clipped / step).round(), self._low, self._high) * step)

    def grid(self) -> Grid:
        """Return the current grid."""
        return Grid(np.array(self.alpha.item() / self._high, np.float32), self._low, self._high)

    def keep_positive(self) -> None:
        """Undo a change of sign."""
        self.alpha.data.abs_().clamp_(min=SMALLEST)


class DorefaActivation(torch.nn.Module):
    """Clips at the largest value of calibration and rounds; nothing is learned."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self._grid = grid

    def forward(self, values: Tensor) -> Tensor:
        """Clip and round."""
        step, low, high = float(self._grid.step), self._grid.low, self._grid.high
        clipped = values.clamp(low * step, high * step)
        return passed(clipped, (values / step).clamp(low, high).round() * step)

    def grid(self) -> Grid:
        """Return the grid."""
        return self._grid


class DorefaWeights(torch.nn.Module):
    """DoReFa's weights, times a constant; the gradient passes the rounding, not the tanh.

    Args:
        bits: 2 to 8.
        factor: the constant.
    """

    def __init__(self, bits: int, factor: float) -> None:
        super().__init__()
        self._levels, self._factor = 2**bits - 1, float(factor)

    def forward(self, weights: Tensor) -> Tensor:
        """Bend and round."""
        bent = torch.tanh(weights)
        shares = bent / (2 * bent.abs().max()) + 0.5
        rounded = passed(shares, (shares * self._levels).round() / self._levels)
        return (2 * rounded - 1) * self._factor


STEPS = (Lsq, Pact)
"""The modules whose steps are learned."""


def activation(method: str, grid: Grid) -> Any:
    """Return the module that rounds the input of a layer."""
    if method == "lsq":
        return Lsq(grid, per_sample=True)
    return Pact(grid) if method == "pact" else DorefaActivation(grid)
