"""``simulate quantize``: fine-tune a network with rounded weights and activations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.command.options import Progress
from simulator.experiments.tuning import Course, Tuning
from simulator.model.card import Card


@dataclass(frozen=True, slots=True)
class Settings(Course):
    """What is learned, and how.

    Attributes:
        method: ``dorefa``, ``pact`` or ``lsq``.
        bits: of weights and activations; the first and the last layer have 8.
        weights: ``per_tensor``, or for LSQ ``per_channel``.
    """

    method: str
    bits: int
    weights: str = "per_tensor"


def quantize(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    settings: Settings,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fine-tune a classifier; a second call with the same arguments goes on after the last epoch.

    The folder gets an ONNX file whose nodes round in floating point, a model card, and
    ``summary.json``.

    Args:
        model: the model card of the FP32 network.
        data: labelled samples: a folder or a data card.
        out: the folder.
        settings: what is learned.
        limit: take a random subset of this many samples.
        progress: is told what happens.

    Returns:
        The summary: settings, epochs, ``accuracy`` on the samples held out (from 0 to 1),
        ``nc_below``, and ``converged``.

    Raises:
        UserError: the model, the data or the settings do not fit, or the folder is of another
            call.
    """
    work = _Rounding(Card(Path(model)), Path(data), settings, limit)
    return work.run(Path(out), progress or Progress())


class _Rounding(Tuning):
    """Weights and activations of a few bits."""

    settings: Settings
    mark = "bits"

    def fields(self) -> dict[str, Any]:
        """Return method and bits."""
        return {name: getattr(self.settings, name) for name in ("method", "bits", "weights")}

    def described(self, accuracy: float) -> dict[str, Any]:
        """Return a name and a summary with method and bits."""
        method, bits = self.settings.method, self.settings.bits
        words = f"{method} with {bits} bits, {self.settings.epochs} epochs"
        return {
            "name": f"{self.card.spec.name}_{self.recipe()}",
            "summary": f"{words}, simulated in FP32; {100 * accuracy:.1f} % of those held out",
            "quantized": {"method": method, "bits": bits},
        }

    def recipe(self) -> str:
        """Return the method with its bits."""
        return f"{self.settings.method}_w{self.settings.bits}a{self.settings.bits}"
