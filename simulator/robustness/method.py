"""What made the numbers that a stack computes with, for tables by method and bit-width."""

from __future__ import annotations

import re
from typing import Any

from simulator.modalities.card import CardSpec
from simulator.profile.profile import Profile

FULL = "fp32"


def method_of(card: CardSpec, profile: Profile) -> dict[str, Any]:
    """Return ``method`` and ``bits`` of :class:`simulator.results.robustness.StackRobustness`.

    Args:
        card: of the model, which may be fine-tuned with few bits.
        profile: of the stack, whose precision may round more.
    """
    precision = getattr(profile.spec, "precision", None)
    if precision is None or (precision.storage == FULL and precision.quantizer is None):
        tuned = card.quantized
        if tuned is not None:
            return {"method": f"{tuned.method}, fine-tuned", "bits": tuned.bits}
        return {"method": FULL, "bits": 32}
    made = precision.quantizer
    if made is not None:
        return {"method": made.method if made.bits else made.backend, "bits": made.bits or 8}
    (bits,) = re.findall(r"\d+", precision.storage)
    method = precision.cast.backend if precision.cast else precision.storage
    return {"method": method, "bits": int(bits)}
