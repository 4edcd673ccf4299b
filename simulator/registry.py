"""Backends by entry point: names in metadata, code on demand."""

from __future__ import annotations

import importlib.metadata
from functools import cache

from simulator.contract import Backend
from simulator.errors import UserError, unknown

GROUP = "simulator.backends"


@cache
def entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """Return every backend's entry point by name, without importing any.

    Raises:
        UserError: two installed packages offer a backend of the same name.
    """
    found: dict[str, importlib.metadata.EntryPoint] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        known = found.get(point.name)
        if known is not None and known.value != point.value:
            raise UserError(
                f"two backends are called {point.name!r}: {known.value} and {point.value}; "
                "uninstall one of the packages that bring them"
            )
        found[point.name] = point
    return dict(sorted(found.items()))


@cache
def backend(name: str) -> Backend:
    """Import one backend's module; its library stays unimported.

    Raises:
        UserError: there is none of this name, or the entry point is not a Backend.
    """
    points = entry_points()
    if name not in points:
        raise UserError(unknown("backend", name, points))
    loaded = points[name].load()
    if not isinstance(loaded, Backend) or loaded.name != name:
        raise UserError(
            f"the entry point {name!r} ({points[name].value}) is not a Backend of that name; "
            "fix the package that brings it"
        )
    return loaded


def backends() -> list[Backend]:
    """Return every backend, by name."""
    return [backend(name) for name in entry_points()]
