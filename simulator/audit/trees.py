"""Two results held against each other, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from simulator.results.json_text import JsonObject

_ROUNDING = 1e-6
"""How far libraries may round a figure differently."""


def differing(old: JsonObject, new: JsonObject, parts: Sequence[str] = ()) -> list[str]:
    """Return the figures, by their dotted paths, that are not the same in two results.

    Args:
        old: a result as its JSON has it.
        new: likewise; what one of them lacks is None.
        parts: the dotted paths of what is compared; by default all of it.
    """
    found = []
    for part in parts or ("",):
        keys = [key for key in part.split(".") if key]
        one, other = (dict(leaves(at(tree, *keys), part)) for tree in (old, new))
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


def at(tree: Any, *keys: str) -> Any:
    """Return a part of a result; None where there is none, whatever stands in its place."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every value of a result with its dotted path, but for those that are None."""
    if isinstance(node, Mapping):
        inner: Iterable[tuple[Any, Any]] = node.items()
    elif isinstance(node, list) and any(isinstance(one, Mapping | list) for one in node):
        inner = enumerate(node)
    else:
        if node is not None:
            yield path, node
        return
    for key, value in inner:
        yield from leaves(value, f"{path}.{key}".lstrip("."))
