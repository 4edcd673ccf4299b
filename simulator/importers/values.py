"""Checks for values of other tools' documents. Each returns the checked value.

A check raises ValueError with a message that follows ``FILE:LINE: KEY=VALUE: ``.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

Object = dict[str, Any]
"""A mapping of a document of another tool."""
LARGEST = 10**12
PIXELS = 16384
_SHOWN = 100
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, on the scale 0-1."""


def show(value: object) -> str:
    """Return a value in one short printable line."""
    if isinstance(value, str):
        said = value
    else:
        try:
            said = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):  # a date, or nested too deeply
            said = reprlib.repr(value)
    return plain(said if len(said) <= _SHOWN else f"{said[:_SHOWN]}...")


def plain(text: str) -> str:
    """Return text without line breaks and control characters, for a message or a comment."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def keys_by_reason(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the reason for which each key is ignored, from the keys of each reason in one text."""
    return {key: reason for reason, keys in reasons.items() for key in keys.split()}


def boolean(value: Any) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false expected")
    return value


def text(value: Any) -> str:
    """Take text."""
    if not isinstance(value, str):
        raise ValueError("text expected")
    return value


def pixels(value: Any) -> int:
    """Check the height or width of an image, in pixels."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= PIXELS:
        raise ValueError(f"a number of pixels expected, 1 to {PIXELS}")
    return value


def sides(value: Any) -> tuple[int, int]:
    """Check two numbers of pixels as they stand, or one for both."""
    both = value if isinstance(value, list) else [value]
    if len(both) not in (1, 2):
        raise ValueError("one number of pixels, or two, expected")
    return pixels(both[0]), pixels(both[-1])


def whole(value: Any) -> int:
    """Take a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        raise ValueError("a whole number expected")
    return value


def number(value: Any) -> Fraction:
    """Check a number; return it exactly as its decimal digits say, without binary rounding."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number expected")
    return decimal(repr(value))


def decimal(written: str) -> Fraction:
    """Parse a number from its decimal digits."""
    try:
        taken = Decimal(written.strip())
    except InvalidOperation:
        raise ValueError("a number expected") from None
    if not taken.is_finite() or abs(taken) > LARGEST or 0 < abs(taken) < Decimal(1) / LARGEST:
        raise ValueError("a number between 1e-12 and 1e12 expected")
    return Fraction(taken)


def above_zero(value: Any) -> Fraction:
    """Take a number greater than 0."""
    taken = number(value)
    if taken <= 0:
        raise ValueError("a number above 0 expected")
    return taken


def factor(value: Any) -> Fraction:
    """Check a factor of pixels; the float nearest to n/255 is returned as exactly n/255."""
    return neat(above_zero(value))


def neat(factor: Fraction) -> Fraction:
    """Return exactly n/255 for the float that is nearest to it."""
    inverse = (1 / factor).limit_denominator(10)
    return 1 / inverse if inverse and float(1 / inverse) == float(factor) else factor


def exact(value: float) -> Fraction:
    """Return the shortest decimal number that is this float32."""
    return Fraction(f"{value:.8g}")


def reciprocal(factor: Fraction) -> Fraction:
    """Return the fewest digits whose float32 has this reciprocal: tools write 1 / scale."""
    inverse = 1 / factor
    with np.errstate(over="ignore"):
        for digits in range(1, 10):
            short = f"{float(inverse):.{digits}g}"
            if np.float32(1) / np.float32(short) == np.float32(float(factor)):
                return Fraction(short)
    return inverse


def three(value: Any) -> list[Fraction]:
    """Check three numbers, one per channel; a single number is used for all three."""
    if isinstance(value, int | float):
        return [number(value)] * 3
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError("three numbers expected, one per channel: a profile's images are in color")
    return [number(one) for one in value]


def three_above_zero(value: Any) -> list[Fraction]:
    """Take three numbers greater than 0."""
    return all_above_zero(three(value))


def all_above_zero(numbers: list[Fraction]) -> list[Fraction]:
    """Check that divisors are greater than 0."""
    if min(numbers) <= 0:
        raise ValueError("numbers above 0 expected: pixels are divided by them")
    return numbers


def mapping(value: Any) -> Object:
    """Take a mapping of keys to values."""
    if not isinstance(value, dict):
        raise ValueError("a mapping of keys to values expected")
    return value


def mappings(value: Any) -> list[Object]:
    """Take a list of mappings that is not empty."""
    if not isinstance(value, list) or not value or not all(isinstance(v, dict) for v in value):
        raise ValueError("a list of mappings expected")
    return value


def texts(value: Any) -> list[str]:
    """Take a list of texts."""
    if not isinstance(value, list):
        raise ValueError("a list of texts expected")
    return [text(one) for one in value]
