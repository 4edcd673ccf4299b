"""The file of an attack without the attack: what attacked answers are compared with.

A stack gets an attacked image resized by the reference and saved as PNG or JPEG. What that alone
changes is no attack's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.attacks.attack import Attack, Seen
from simulator.conditions.attacks.options import COMMON, Budget
from simulator.conditions.attacks.steps import LINF
from simulator.conditions.condition import Parameters
from simulator.errors import UserError

F32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Unattacked(Attack):
    """The way of an attacked file, with the clean pixels."""

    name = "unattacked"
    summary = "the clean image on the way of an attacked one"
    gradient: ClassVar[bool] = False
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, attack: Attack) -> Unattacked:
        """Return the baseline of an attack: its model, its resize, its file format."""
        common = {name: getattr(attack, name) for name in COMMON}
        return cls(Budget(LINF, "0", 0.0), **common, bound_to=attack.bound_to)

    @classmethod
    def parse(cls, parameters: str) -> Unattacked:
        """Refuse to be asked for: a robustness run has it beside its attacks."""
        raise UserError(
            "unattacked: measured beside attacks by simulate robustness, not by --under"
        )

    def parameters(self) -> Parameters:
        """Return the options that attacks have in common."""
        return {name: getattr(self, name) for name in COMMON}

    @property
    def text(self) -> str:
        """Its name in records."""
        return f"{self.name}{self.chosen.replace(',', ':', 1)}"

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Return the clean pixels."""
        return clean
