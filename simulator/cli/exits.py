"""How a command ends: its exit code, and lines about what went wrong."""

from __future__ import annotations

import re
import sys

from simulator.errors import shortened

PASS, GATE_FAILED, USER_ERROR, BUG = 0, 1, 2, 3
_LONG = re.compile(r"\S{300,}")
"""A word that nobody reads to its end."""


def tell_error(line: str) -> None:
    """Print a line about what the user can mend."""
    short = _LONG.sub(lambda word: shortened(word[0]), line)
    print(f"error: {short}", file=sys.stderr, flush=True)
