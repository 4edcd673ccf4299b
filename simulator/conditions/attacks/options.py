"""How an attack is written: ``NORM,BUDGET`` and then options, ``NAME=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.conditions.attacks.steps import LINF, NORMS
from simulator.conditions.attacks.view import FILTERS

SAVED = ("png", "jpeg100", "float")
FLOAT = SAVED[-1]
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)(?:/(\d+(?:\.\d+)?))?")


@dataclass(frozen=True, slots=True)
class Budget:
    """How far an attack may move an image.

    Attributes:
        norm: ``linf``, ``l2`` or ``l1``, over all pixels and channels in [0, 1].
        text: as it was written, for example ``8/255``.
        size: its value.
    """

    norm: str
    text: str
    size: float

    @classmethod
    def read(cls, norm: str, text: str) -> Budget | None:
        """Return a budget; None where it is no positive number, or above 1 for ``linf``."""
        found = _BUDGET.fullmatch(text)
        if norm not in NORMS or found is None or not float(found[2] or 1):
            return None
        size = float(found[1]) / float(found[2] or 1)
        fits = 0 < size <= 1 if norm == LINF else 0 < size < np.inf
        return cls(norm, text, size) if fits else None


@dataclass(frozen=True, slots=True)
class Option:
    """One option of an attack, as written: ``NAME=VALUE``.

    Attributes:
        usual: its value where it is left out.
        read: gives the value of a text, or raises ValueError.
        words: what a message says behind ``NAME=``.
    """

    usual: int | str
    read: Callable[[str], int | str]
    words: str

    @classmethod
    def count(cls, usual: int, most: int) -> Option:
        """Return the option for a whole number from 1."""

        def read(text: str) -> int:
            if not text.isdecimal() or not 0 < int(text) <= most:
                raise ValueError(text)
            return int(text)

        return cls(usual, read, f"{usual}")

    @classmethod
    def word(cls, *known: str) -> Option:
        """Return the option for one of some words; the first is the usual one."""

        def read(text: str) -> str:
            if text not in known:
                raise ValueError(text)
            return text

        return cls(known[0], read, f" {' or '.join(known)}")


EACH = "each"
"""In place of a profile: every stack is attacked by itself."""
COMMON = {
    "on": Option("", str, f"PROFILE (whose network is attacked; {EACH}: every stack's own)"),
    "resize": Option.word(*FILTERS),
    "saved": Option.word(*SAVED),
}
"""The options of every attack."""


def read(
    parameters: str, known: Mapping[str, Option], *, norms: bool
) -> tuple[Budget, dict[str, Any]]:
    """Read ``NORM,BUDGET,NAME=VALUE``, or without a norm ``BUDGET,NAME=VALUE``.

    Raises:
        ValueError: the norm, the budget or an option is wrong, or an option comes twice.
    """
    parts, first = parameters.split(","), 2 if norms else 1
    given = [part.partition("=") for part in parts[first:]]
    named = {name: text for name, _, text in given}
    budget = Budget.read(parts[0] if norms else LINF, ",".join(parts[first - 1 : first]))
    if budget is None or len(named) < len(given) or not set(named) <= set(known):
        raise ValueError(parameters)
    return budget, {name: known[name].read(text) for name, text in named.items()}


def expected(name: str, known: Mapping[str, Option], *, norms: bool) -> str:
    """Say how an attack is written."""
    form, what = "BUDGET", "above 0 and at most 1"
    if norms:
        form = "NORM,BUDGET"
        what = f"NORM {', '.join(NORMS)} and BUDGET above 0, for linf at most 1"
    example = f"{name}:{'linf,' if norms else ''}8/255"
    options = ", ".join(f"{one}={option.words}" for one, option in known.items())
    return f"{name}:{form} expected, {what}, for example {example}; then {options}"
