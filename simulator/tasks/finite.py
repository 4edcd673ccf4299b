"""Numbers that no model may give: NaN, infinities, probabilities of 7."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simulator.contract import Array
from simulator.errors import ModelError, NotFinite


def check_finite(values: Array, where: str = "") -> None:
    """Refuse NaN and infinities.

    Args:
        values: of any shape, numbers.
        where: follows the message, for example `` in output 'boxes'``.

    Raises:
        NotFinite: there is one.
    """
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "an infinity"
        raise NotFinite(f"the model gave {what}{where}")


def output_of(outputs: Mapping[str, Array], name: str | None) -> tuple[str, Array]:
    """Return an output with its name; None asks for the first one.

    Raises:
        ModelError: the model gave none of that name.
    """
    name = name or next(iter(outputs))
    if name not in outputs:
        raise ModelError(f"the model gave no output {name!r}")
    return name, outputs[name]


def outside(values: Array, slack: float) -> str:
    """Return the range of what should be probabilities, empty where all are.

    Args:
        values: of any shape, finite numbers.
        slack: how far one may leave [0, 1], as a step of a quantized output does.
    """
    if not values.size:
        return ""
    low, high = float(values.min()), float(values.max())
    return f"{low:.3g} to {high:.3g}" if low < -slack or high > 1 + slack else ""


def check_probabilities(values: Array, where: str = "") -> None:
    """Refuse numbers that a card calls probabilities, and that are none.

    One may leave [0, 1] by a hundredth: a step of an 8-bit output is 0.004.

    Args:
        values: of any shape, finite numbers.
        where: begins the message.

    Raises:
        ModelError: there is one.
    """
    if got := outside(values, 0.01):
        raise ModelError(
            f"{where}the model card says probabilities, but the model gave {got}; "
            "if these are logits, say so in the card"
        )
