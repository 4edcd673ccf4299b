"""The implementations of any stage, played by a worker."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from simulator.contract import Effective, StageSpec
from simulator.errors import Unsupported
from simulator.worker.client import Stale, Worker


def make(worker: Worker, spec: StageSpec, number: int, real: type[Any], *arguments: Any) -> Any:
    """Build an implementation in a worker.

    What plays it here is an instance of the stage's base class: what the real class says of itself
    is copied, every public method and property is asked of the worker, which makes the checks of
    the base class too. What the constructor sets is fetched at once, and so it is known at once
    whether it can be built.

    Args:
        worker: where.
        spec: the stage.
        number: which of the backend's offers for that stage.
        real: the implementation's class.
        arguments: what the implementation is built from; its options last.

    Raises:
        Unsupported: the stage cannot be played by a worker.
    """
    if spec.base is None:
        raise Unsupported(f"{spec.name} cannot run in an environment of its own")
    remote = _Remote(worker, spec.name, number, *arguments)
    played: Any = object.__new__(_player(spec, real))
    played.options, played._remote = arguments[-1], remote
    for name in _set_by_constructor(spec.base, real):
        setattr(played, name, remote.call(name))
    return played


class _Remote:
    """One implementation in a worker; made again when the worker had to be started anew."""

    def __init__(self, worker: Worker, *arguments: Any) -> None:
        self.worker, self._arguments = worker, arguments
        self._closed = False
        self._made: tuple[int, int] | None = None
        self._making = threading.Lock()

    def call(self, name: str, *arguments: Any, of_sample: bool = False) -> Any:
        if self._closed:
            raise ValueError("it was closed; open it again to use it")
        while True:
            with self._making:
                made = self._made = self._made or self.worker.call("make", *self._arguments)
            try:
                return self.worker.call(name, *arguments, of=made, of_sample=of_sample)
            except Stale:
                with self._making:
                    if self._made == made:
                        self._made = None

    def close(self) -> None:
        """Close it where it still is; a worker that died has closed it."""
        self._closed = True
        if self._made is not None:
            with suppress(Stale):
                self.worker.call("close", of=self._made)


def _player(spec: StageSpec, real: type[Any]) -> type[Any]:
    """The class of what plays an implementation here."""
    assert spec.base is not None
    members: dict[str, Any] = {}
    for name, member in _members(spec.base):
        if isinstance(member, property):
            members[name] = property(_getter(name))
        elif name == "close":
            members[name] = lambda self: self._remote.close()
        elif inspect.isfunction(member):
            if not name.startswith("_"):
                members[name] = _method(name, member, name in spec.calls)
            elif getattr(member, "__isabstractmethod__", False):
                members[name] = None  # the worker's to call
    members |= {name: getattr(real, name) for name in _said(spec.base) if hasattr(real, name)}
    return type(f"Remote{real.__name__}", (spec.base,), members)


def _getter(name: str) -> Callable[[Any], Any]:
    """What asks the worker for an attribute."""
    return lambda self: self._remote.call(name)


def _method(name: str, method: Callable[..., Any], of_sample: bool) -> Callable[..., Any]:
    """A method that is called in the worker."""
    signature = inspect.signature(method)

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            arguments = signature.bind(self, *arguments, **named).args[1:]
        found = self._remote.call(name, *arguments, of_sample=of_sample)
        if isinstance(found, Effective):
            home = self._remote.worker.home
            return replace(found, details={**found.details, "worker": home.python})
        return found

    return call


def _members(base: type[Any]) -> Iterator[tuple[str, Any]]:
    names = {name for kind in base.__mro__[:-1] for name in vars(kind)}
    for name in sorted(names):
        if not name.startswith("__"):
            yield name, inspect.getattr_static(base, name)


def _said(base: type[Any]) -> set[str]:
    """The public attributes that a class has or declares, and that are no methods."""
    declared = {name for kind in base.__mro__ for name in vars(kind).get("__annotations__", {})}
    has = {
        name
        for name, member in _members(base)
        if not (callable(member) or isinstance(member, (property, classmethod, staticmethod)))
    }
    return {name for name in declared | has if not name.startswith("_")}


def _set_by_constructor(base: type[Any], real: type[Any]) -> list[str]:
    """The public attributes that a class declares, and that only an instance has."""
    return sorted(name for name in _said(base) if not hasattr(real, name))
