"""A bit flip in memory: one bit of one weight of the file that the runtime opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from simulator.conditions.condition import WEIGHTS, Condition
from simulator.contract.passes import Request
from simulator.errors import UserError
from simulator.model.passes.flip_weight_bit import NAME


@dataclass(frozen=True, eq=False)
class BitFlip(Condition):
    """One bit of one weight is the other way round, after quantization; each trial another weight.

    Attributes:
        bit: from 0, the least significant one of the stored type.
    """

    bit: int
    name = "flip"
    summary = "one bit of one stored weight is flipped"
    acts_on: ClassVar[str] = WEIGHTS
    has_chance: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ("30", "22")

    @classmethod
    def parse(cls, parameters: str) -> BitFlip:
        """Read the bit."""
        if not parameters.isdigit():
            raise UserError(
                f"--under flip:{parameters}: flip:BIT expected, with BIT from 0, the least "
                "significant one; for example flip:30, the highest exponent bit of FP32"
            )
        return cls(int(parameters))

    def parameters(self) -> dict[str, Any]:
        """Return the bit."""
        return {"bit": self.bit}

    def requests(self, trial: int) -> list[Request]:
        """Return the one pass."""
        return [Request(NAME, {"bit": self.bit, "condition": self.text, "trial": trial})]
