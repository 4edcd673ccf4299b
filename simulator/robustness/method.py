"""What made the numbers that a stack computes with, for tables by method and bit-width."""

from __future__ import annotations

import re

from simulator.contract.description import TUNED
from simulator.modalities.card import CardSpec
from simulator.profile.artifact import own_file
from simulator.profile.profile import Profile

FULL = "fp32"


def fine_tuned(profile: Profile) -> tuple[str, int] | None:
    """Return method and bits of a profile's own file, if ``simulate quantize`` wrote it."""
    if not getattr(getattr(profile.spec, "precision", None), "artifact", None):
        return None
    own = own_file(profile)
    method, _, bits = (own.description.metadata.get(TUNED, "") if own else "").partition(" ")
    return (f"{method}, fine-tuned", int(bits)) if bits.isdecimal() else None


def method_of(card: CardSpec, profile: Profile) -> tuple[str, int]:
    """Return what made the numbers, and their bits.

    Args:
        card: of the model, which may be fine-tuned with few bits.
        profile: of the stack, whose precision may round more.
    """
    if own := fine_tuned(profile):
        return own
    precision = getattr(profile.spec, "precision", None)
    if precision is None or (precision.storage == FULL and precision.quantizer is None):
        tuned = card.quantized
        if tuned is not None:
            return f"{tuned.method}, fine-tuned", tuned.bits
        return FULL, 32
    made = precision.quantizer
    if made is not None:
        return made.method if made.bits else made.backend, made.bits or 8
    (bits,) = re.findall(r"\d+", precision.storage)
    method = precision.cast.backend if precision.cast else precision.storage
    return method, int(bits)
