"""Proxies for implementations that run in a worker, for any stage."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from simulator.contract import Effective, StageSpec
from simulator.errors import Unsupported
from simulator.worker.client import Stale, Worker


def make(worker: Worker, spec: StageSpec, number: int, real: type[Any], *arguments: Any) -> Any:
    """Build an implementation in a worker.

    The result is a proxy, an instance of the stage's base class. Class attributes are copied from
    the real class. Every public method and property calls the worker, which also runs the checks
    of the base class. Attributes set by the constructor are fetched immediately, so an error in
    the constructor is raised here.

    Args:
        worker: the worker of the backend.
        spec: the stage.
        number: the index of the offer among the backend's offers for that stage.
        real: the implementation's class.
        arguments: the constructor's arguments; its options last.

    Raises:
        Unsupported: the stage cannot run in a worker.
    """
    if spec.base is None:
        raise Unsupported(f"{spec.name} cannot run in a separate environment")
    remote = Implementation(worker, spec.name, number, *arguments)
    played: Any = object.__new__(_player(spec, real))
    played.options, played._remote = arguments[-1], remote
    for name in _set_by_constructor(spec.base, real):
        setattr(played, name, remote.call(name))
    return played


class Implementation:
    """One implementation in a worker; it is built again after the worker was restarted.

    The worker drops it when it is closed here, or not used any more.
    """

    def __init__(self, worker: Worker, *arguments: Any) -> None:
        self.worker, self._arguments = worker, arguments
        self._closed = False
        self._made: tuple[int, int] | None = None
        self._making = threading.Lock()

    def call(self, name: str, *arguments: Any, of_sample: bool = False) -> Any:
        """Call a public method, or read a public attribute; see :meth:`Worker.call`."""
        if self._closed:
            raise ValueError("it was closed; open it again to use it")
        while True:
            with self._making:
                made = self._made = self._made or self._make()
            try:
                return self.worker.call(name, *arguments, of=made, of_sample=of_sample)
            except Stale:
                with self._making:
                    if self._made == made:
                        self._made = None

    def close(self) -> None:
        """Close it, unless its worker has ended."""
        self._closed = True
        with self._making:
            made, self._made = self._made, None
        if made is not None:
            self._unused.detach()
            with suppress(Stale):
                self.worker.call("close", of=made)

    def _make(self) -> tuple[int, int]:
        made: tuple[int, int] = self.worker.call("make", *self._arguments)
        self._unused = weakref.finalize(self, self.worker.forget, made)
        self._unused.atexit = False
        return made


def _player(spec: StageSpec, real: type[Any]) -> type[Any]:
    """Return the class of the proxy for an implementation."""
    assert spec.base is not None
    members: dict[str, object] = {}
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
    """Return a function that reads an attribute in the worker."""
    return lambda self: self._remote.call(name)


def _method(name: str, method: Callable[..., Any], of_sample: bool) -> Callable[..., Any]:
    """Return a method that calls its counterpart in the worker."""
    signature = inspect.signature(method)

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            arguments = signature.bind(self, *arguments, **named).args[1:]
        found = self._remote.call(name, *arguments, of_sample=of_sample)
        if isinstance(found, Effective):
            worker = self._remote.worker
            told = {"worker": worker.home.python}
            if worker.home.writes is not None:
                told["confined"] = worker.call("confinement")
            return replace(found, details={**found.details, **told})
        return found

    return call


def _members(base: type[Any]) -> Iterator[tuple[str, Any]]:
    names = {name for kind in base.__mro__[:-1] for name in vars(kind)}
    for name in sorted(names):
        if not name.startswith("__"):
            yield name, inspect.getattr_static(base, name)


def _said(base: type[Any]) -> set[str]:
    """Return the public attributes, other than methods, that a class has or declares."""
    declared = {name for kind in base.__mro__ for name in vars(kind).get("__annotations__", {})}
    has = {
        name
        for name, member in _members(base)
        if not (callable(member) or isinstance(member, (property, classmethod, staticmethod)))
    }
    return {name for name in declared | has if not name.startswith("_")}


def _set_by_constructor(base: type[Any], real: type[Any]) -> list[str]:
    """Return the public attributes that a class declares and only its instances have."""
    return sorted(name for name in _said(base) if not hasattr(real, name))
