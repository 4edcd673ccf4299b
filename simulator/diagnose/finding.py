"""What a diagnosis finds: one named difference, with its evidence and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Part(StrEnum):
    """The parts of a stack, in the order in which a sample goes through them."""

    FRONT_END = "front end"
    NETWORK = "network"
    POSTPROCESS = "postprocessing"


class Certainty(StrEnum):
    """How well a finding explains what was seen, best first."""

    EXACT = "exact"
    """The bits are equal once it is undone."""
    ROUNDING = "rounding"
    """The values differ by rounding once it is undone; :attr:`Finding.left` says by how much."""
    NEAREST = "nearest"
    """It explains a part; :attr:`Finding.left` says what remains."""
    NONE = "none"
    """No name was found: it says what the difference looks like."""

    @property
    def sure(self) -> bool:
        """Whether nothing but rounding remains."""
        return self in (Certainty.EXACT, Certainty.ROUNDING)


@dataclass(frozen=True, slots=True)
class Finding:
    """One named difference of the deployment stack from the training stack.

    Attributes:
        part: where it is.
        name: what engineers call it: "channels are swapped".
        evidence: sentences with the figures that show it.
        certainty: how well it explains what was seen.
        left: the largest difference that remains, in the unit that *evidence* names; None where
            nothing was left to compare.
        change: fields of the deployment profile, by dotted key, that undo it; empty where no field
            of a profile can.
        code: the same as a line of the deployment's own code, in words; empty where *change* says
            it.
    """

    part: Part
    name: str
    evidence: tuple[str, ...]
    certainty: Certainty
    left: float | None = None
    change: Mapping[str, object] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of inputs with its name, before it is known how well all names explain them.

    Attributes:
        name: what it is called.
        code: what to write in code, in words.
        change: fields of a profile that undo it, by dotted key.
        evidence: sentences that show it.
        left: levels of a pixel that it leaves at most, where that is known of it alone.
        figures: whether the name has figures only, for want of one that people use.
    """

    name: str
    code: str = ""
    change: Mapping[str, object] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    left: float | None = None
    figures: bool = False

    def finding(self, certainty: Certainty, left: float | None, *told: str) -> Finding:
        """Return it as a finding, with further evidence; *left* is what all names leave."""
        evidence = (*self.evidence, *told)
        part = Part.FRONT_END
        return Finding(part, self.name, evidence, certainty, left, self.change, self.code)
