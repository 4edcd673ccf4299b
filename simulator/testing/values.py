"""Values to try a field with, and values that it must refuse."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.contract import Above, Admits, AtLeast, File, Implied, KeepList, Pairs, Subset, Text

NOISE = np.random.default_rng(0).integers(0, 255, 600, np.uint8).tobytes()
"""What is no file of any kind."""


class CannotMake(Exception):
    """No backend here can make a model file; that is not a fault of the runtime that needs it."""


def values(admits: Admits) -> list[Any]:
    """Return the values of a field to try: all of a tuple, or a few if there are many."""
    admits = admits.admits if isinstance(admits, Implied) else admits
    match admits:
        case AtLeast(low) | Above(low):
            return [low, low + 1] if isinstance(admits, AtLeast) else [low + 0.01, low + 0.02]
        case Subset(names):
            return [[name] for name in names]
        case Pairs():
            return [{}]
        case KeepList():
            return [{"op_types": [], "nodes": [], "reason": ""}]
        case File():
            return []  # its example is the only one: the first that is tried
        case Text():
            raise CannotMake("its text is the user's own: there is nothing to try it with")
    return list(admits)


def outside(admits: Admits) -> Any:
    """Return a value that a field must refuse."""
    admits = admits.admits if isinstance(admits, Implied) else admits
    match admits:
        case AtLeast(low) | Above(low):
            return low - 1
        case Subset():
            return ["no such name"]
        case Pairs():
            return {"no such name": 1}
        case KeepList():
            return {"no such name": []}
        case Text() | File():
            return ""
    return "no such value"


def one_line(error: BaseException) -> str:
    """An exception as one line: its type, and the beginning of its message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
