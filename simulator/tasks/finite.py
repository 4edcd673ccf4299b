"""NaN and infinities in what a model gives; every task refuses them here."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array
from simulator.errors import NotFinite


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
