"""Accuracy Checker's numbers: one, a list, text with commas, or the name of a data set.

Sources, of open_model_zoo's ``accuracy_checker``: ``preprocessor/normalization.py`` (its table of
standard deviations holds the means, and is applied as it stands), ``utils.py``
(``string_to_tuple``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import values

_TABLES = {
    "imagenet": ("104.00698793", "116.66876762", "122.67891434"),
    "cifar10": ("125.307", "122.961", "113.8575"),
}
"""``PRECOMPUTED_MEANS``, and, letter by letter, ``PRECOMPUTED_STDS``."""


def level(value: Any) -> int:
    """Check a gray level: one number, or three equal ones."""
    levels = set(_numbers(value))
    one = levels.pop()
    if levels or one.denominator != 1 or not 0 <= one <= 255:
        raise ValueError("one gray level from 0 to 255 expected; a profile pads with gray")
    return int(one)


def _numbers(value: Any) -> list[Fraction]:
    """Return three numbers from one number, a list, or text with commas and optional brackets."""
    if isinstance(value, str):
        parts = value.strip().strip("()[]").split(",")
        found = [values.decimal(part) for part in parts if part.strip()]
    else:
        found = [values.number(v) for v in (value if isinstance(value, list) else [value])]
    if len(found) not in (1, 3):
        raise ValueError("one number or three expected")
    return found * (3 // len(found))


def channels(value: Any) -> list[Fraction]:
    """Check numbers for the three channels, or the name of a table."""
    if isinstance(value, str) and value in _TABLES:
        return [values.decimal(one) for one in _TABLES[value]]
    return _numbers(value)


def divisors(value: Any) -> list[Fraction]:
    """Take numbers above 0."""
    found = channels(value)
    if min(found) <= 0:
        raise ValueError("numbers above 0 expected: pixels are divided by them")
    return found
