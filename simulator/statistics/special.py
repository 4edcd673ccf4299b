"""``scipy.special``, imported when a function of it is first asked for: that takes 0.2 s."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    return getattr(special, name)
