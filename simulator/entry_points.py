"""Open tables: plugins of one kind, found by entry point. Listing them imports nothing.

Each kind of plugin has a table: backends, stages, modalities, conditions, tasks, data formats,
graph passes, executors, report sections. Our own are listed there like those of other packages.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property, lru_cache
from typing import Any, Generic, TypeVar, cast

from simulator.errors import UserError, one_line, unknown

T = TypeVar("T")
OURS = "pipeline-simulator"


def of_group(group: str) -> importlib.metadata.EntryPoints:
    """Return the entry points of a group, of every installed package; they are read once."""
    return _installed(tuple(sys.path)).select(group=group)


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> importlib.metadata.EntryPoints:
    return cast(importlib.metadata.EntryPoints, importlib.metadata.entry_points())


def package_of(point: importlib.metadata.EntryPoint) -> str:
    """Return the name and version of the package that provides an entry point."""
    return _named(point.dist) if point.dist else ""


@cache
def _named(dist: importlib.metadata.Distribution) -> str:
    """Return the name and version of a package, whose metadata take long to parse."""
    metadata = dist.metadata
    return f"{metadata['Name']} {metadata['Version']}"


class Table(Generic[T]):
    """The entry points of one group.

    Args:
        group: the entry point group, for example ``simulator.conditions``.
        what: the kind in the singular, for messages.
        is_one: whether an object is of this kind.
    """

    def __init__(self, group: str, what: str, is_one: Callable[[Any], bool]) -> None:
        self.group, self.what, self._is_one = group, what, is_one
        self._loaded: dict[str, T] = {}

    @cached_property
    def points(self) -> dict[str, importlib.metadata.EntryPoint]:
        """Return every entry point by name, sorted.

        Raises:
            UserError: two installed packages use the same name.
        """
        found: dict[str, importlib.metadata.EntryPoint] = {}
        for point in of_group(self.group):
            known = found.get(point.name)
            if known is not None and known.value != point.value:
                raise UserError(
                    f"two {self.what}s are called {point.name!r}: {known.value} and "
                    f"{point.value}; uninstall one of the packages that bring them"
                )
            found[point.name] = point
        return dict(sorted(found.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        return tuple(self.points)

    def require(self, name: str) -> None:
        """Refuse a name that is not in the table.

        Raises:
            UserError: it is not; the message suggests the most similar name.
        """
        if name not in self.points:
            raise UserError(unknown(self.what, name, self.points))

    def __contains__(self, name: object) -> bool:
        return name in self.points

    def __getitem__(self, name: str) -> T:
        """Import the plugin of this name.

        Raises:
            UserError: there is none of this name, or its package does not load.
        """
        if name not in self._loaded:
            self.require(name)
            self._loaded[name] = self._load(self.points[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[T]:
        """Import every plugin in the table, in the order of their names.

        Raises:
            UserError: one of them does not load.
        """
        return (self[name] for name in self.points)

    def package(self, name: str) -> str:
        """Return the name and version of the package that provides a plugin."""
        return package_of(self.points[name])

    def is_ours(self, name: str) -> bool:
        """Whether a plugin comes with this program, not with another package."""
        return self.package(name).partition(" ")[0] == OURS

    def forget(self) -> None:
        """Forget which packages are installed; for tests that install one."""
        self.__dict__.pop("points", None)
        self._loaded.clear()

    def _load(self, point: importlib.metadata.EntryPoint) -> T:
        try:
            loaded = point.load()
        except Exception as error:  # the package's code may raise anything
            raise UserError(
                f"the {self.what} {point.name!r} ({point.value}) does not load: "
                f"{one_line(error)}; fix or uninstall the package that brings it"
            ) from error
        own = getattr(loaded, "name", point.name)
        if not self._is_one(loaded) or own != point.name:
            article = "an" if self.what[0] in "aeiou" else "a"
            raise UserError(
                f"the entry point {point.name!r} ({point.value}) is not {article} {self.what} of "
                "that name; fix the package that brings it"
            )
        found: T = loaded
        return found
