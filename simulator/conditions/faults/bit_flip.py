"""A bit flip in memory: one bit of one weight of the file that the runtime opens is inverted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simulator.conditions.condition import WEIGHTS, Condition, Parameters
from simulator.contract.passes import Request
from simulator.errors import UserError
from simulator.model.passes.flip_weight_bit import NAME


@dataclass(frozen=True, eq=False)
class BitFlip(Condition):
    """Inverts one bit of one weight, after quantization; each trial draws another weight.

    Attributes:
        bit: its index in the stored type, from 0, the least significant one.
    """

    bit: int
    name = "flip"
    summary = "one bit of one stored weight is flipped"
    acts_on: ClassVar[str] = WEIGHTS
    has_chance: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ("30", "22")

    @classmethod
    def parse(cls, parameters: str) -> BitFlip:
        """Read the index of the bit.

        Raises:
            UserError: it is not a whole number.
        """
        if not parameters.isdigit():
            raise UserError(
                f"--under flip:{parameters}: flip:BIT expected, with BIT from 0, the least "
                "significant one; for example flip:30, the highest exponent bit of FP32"
            )
        return cls(int(parameters))

    def parameters(self) -> Parameters:
        """Return the index of the bit."""
        return {"bit": self.bit}

    def requests(self, trial: int) -> list[Request]:
        """Return the pass that inverts the bit."""
        return [Request(NAME, {"bit": self.bit, "condition": self.text, "trial": trial})]
