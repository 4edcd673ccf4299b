"""Two results held against each other, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

_ROUNDING = 1e-6
"""How far libraries may round a figure differently."""


def differing(
    old: Mapping[str, Any], new: Mapping[str, Any], parts: Sequence[str] = ()
) -> list[str]:
    """Return the figures, by their dotted paths, that are not the same in two results.

    Args:
        old: a result as its JSON has it.
        new: likewise; what one of them lacks is None.
        parts: the dotted paths of what is compared; by default all of it.
    """
    found = []
    for part in parts or ("",):
        one, other = (_leaves(_at(tree, part), part) for tree in (old, new))
        found += [
            path
            for path in sorted(one.keys() | other.keys())
            if not close(one.get(path), other.get(path))
        ]
    return found


def close(one: Any, other: Any) -> bool:
    """Return whether two figures, or lists of them, are the same but for rounding."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(map(close, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return bool(one == other)


def _at(tree: Any, part: str) -> Any:
    for key in filter(None, part.split(".")):
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def _leaves(node: Any, path: str) -> dict[str, Any]:
    if not isinstance(node, Mapping):
        return {path: node}
    return {
        leaf: value
        for key, inner in node.items()
        for leaf, value in _leaves(inner, f"{path}.{key}".strip(".")).items()
    }
