"""``simulate quantize``: fine-tune a network with rounded weights and activations."""

from __future__ import annotations

from pathlib import Path

from simulator.command.experiment import Command
from simulator.experiments.fine_tuning import QuantizeOptions
from simulator.experiments.tuning import MODEL, Tuning, TuningSummary
from simulator.model.card import Card
from simulator.profile.derived import derived


def quantize(command: Command[QuantizeOptions], asked: QuantizeOptions) -> TuningSummary:
    """Fine-tune a classifier whose weights and activations are rounded."""
    return _Rounding(command, Card(Path(asked.model)), asked).run()


class _Rounding(Tuning):
    """Weights and activations of a few bits."""

    settings: QuantizeOptions
    mark = "bits"

    def fields(self) -> dict[str, object]:
        """Return method and bits."""
        return {name: getattr(self.settings, name) for name in ("method", "bits", "weights")}

    def described(self, accuracy: float) -> dict[str, object]:
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

    def stack_of_it(self) -> tuple[str, str]:
        """Return the stack that opens the new file, for runs beside others of the old card."""
        name = f"{self.recipe()}_tuned"
        words = f"Fine-tuned by {self.settings.method} with {self.settings.bits} bits"
        own = {"precision": {"artifact": MODEL}}
        return f"{name}.yaml", derived(self.stack_name, {}, own, name, words)
