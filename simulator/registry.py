"""Backends, found by entry point and imported on demand, in this process or in a worker."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from simulator.contract import Backend, FrontEnd, Offer, Options, Runtime, Stage
from simulator.contract.injection import Injector
from simulator.contract.installing import install
from simulator.contract.model_format import MODEL_FORMATS
from simulator.contract.stage import STAGES
from simulator.entry_points import Table, of_group
from simulator.errors import MissingLibrary, UserError
from simulator.worker import environments
from simulator.worker.client import Worker
from simulator.worker.home import Home

SERVICES, REFERENCES = "simulator.services", "simulator.references"
BACKENDS = Table[Backend]("simulator.backends", "backend", lambda found: isinstance(found, Backend))
backend = BACKENDS.__getitem__
"""Imports one backend's module, but not its library."""


def backends() -> list[Backend]:
    """Return every backend that loads, by name."""
    found = []
    for name in BACKENDS.names:
        with suppress(UserError):
            found.append(backend(name))
    return found


def serving(stage: str) -> Iterator[Backend]:
    """Yield the backends that serve the engine itself in a stage, by name; no other is imported.

    An entry point of the group ``simulator.services`` says so; it is called ``STAGE.BACKEND``.
    """
    return _named(SERVICES, stage)


def reference(stage: str) -> Backend:
    """Return the backend with which the engine does a stage where all stacks get the same of it.

    An entry point of the group ``simulator.references`` says so, as :func:`serving` reads them.

    Raises:
        UserError: another package names a second one, or ours is not installed as it is now.
    """
    found = list(_named(REFERENCES, stage))
    if len(found) != 1:
        names = " and ".join(backend.name for backend in found)
        what = (
            f"not {names}; uninstall a package" if found else "and none is installed; install again"
        )
        raise UserError(f"the reference for {stage} is one backend, {what}")
    return found[0]


def _named(group: str, stage: str) -> Iterator[Backend]:
    """The backends of a group's entry points ``STAGE.BACKEND``, by name."""
    points = (point.name.rpartition(".") for point in of_group(group))
    return (backend(name) for of, _, name in sorted(points) if of == stage)


@contextmanager
def interrupted() -> Iterator[None]:
    """Stop every worker at once, even during a call; none starts again before this is left."""
    halted = list(_workers)
    for worker in halted:
        worker.halt()
    try:
        yield
    finally:
        for worker in halted:
            worker.go_on()


def home(name: str) -> Home | None:
    """Return where a backend runs; None if it runs in this process."""
    found = environments.installed(name)
    return Home(name, found.python, BACKENDS.points[name].value) if found else None


def is_apart(backend: Backend, offer: Offer) -> bool:
    """Return whether an implementation runs in a worker; see :func:`make`."""
    return _confines(offer) or home(backend.name) is not None


def versions(backend: Backend) -> dict[str, str | None]:
    """Return the versions of a backend's libraries where it runs; nothing is imported."""
    found = environments.installed(backend.name)
    if found:
        return found.versions
    return {library.distribution: library.version for library in backend.libraries}


def remedy(backend: Backend) -> str:
    """Return the command that installs a backend's libraries."""
    if backend.environment is not None:
        return f"simulate backends install {backend.name}"
    return install(backend.libraries[0].extra)


def check_installed(backend: Backend, use: str, command: str = "") -> None:
    """Make sure that the libraries of a backend are installed; none is imported.

    Args:
        backend: the backend.
        use: what needs it, begins the message.
        command: installs them; by default :func:`remedy`.

    Raises:
        MissingLibrary: one is not.
    """
    missing = [library.distribution for library in backend.libraries if library.version is None]
    if missing:
        names = ", ".join(missing)
        raise MissingLibrary(f"{use} {names}; try: {command or remedy(backend)}")


def require(backend: Backend) -> None:
    """Make sure that a backend can run: import its libraries, or start its worker.

    Raises:
        MissingLibrary: the message says what is missing and how to install it.
    """
    place = home(backend.name)
    if place:
        found = environments.check(place)
        if found.problem:
            raise MissingLibrary(f"{backend.name} in {place.python}: {found.problem}")
        if found.versions != versions(backend):  # it was updated since
            environments.keep(backend.name, environments.Installed(place.python, found.versions))
        return
    if backend.device is not None:
        backend.device()
    for library in backend.libraries:
        try:
            library.load()
        except MissingLibrary:
            if backend.environment is None:
                raise
            raise MissingLibrary(
                f"{backend.name} runs in a separate environment "
                f"({backend.environment.why}); try: {remedy(backend)}"
            ) from None


def make(backend: Backend, offer: Offer, *arguments: Any) -> Any:
    """Build an implementation, here or in the backend's worker; its options come last.

    What reads programs of PyTorch runs in a worker that is confined: they may hold code.
    """
    place = home(backend.name)
    if _confines(offer):
        return _apart(backend, offer, *arguments)
    if place is None:
        return offer.make(*arguments)
    return _remote(_worker(place), backend, offer, *arguments)


def _apart(backend: Backend, offer: Offer, *arguments: Any) -> Any:
    from simulator.worker.apart import ConfinedExporter, ConfinedGradients

    number = backend.of(offer.stage).index(offer)
    if offer.stage == Stage.EXPORT:
        return ConfinedExporter(partial(_hired, backend), number, offer, *arguments)
    worker = _worker(_confined(backend))
    if offer.stage == Stage.GRADIENT:
        return ConfinedGradients(worker, number, offer, *arguments)
    return _remote(worker, backend, offer, *arguments)


def injector(backend: Backend, offer: Offer, artifact: Path, options: Options) -> Injector:
    """Open what puts faults into a runtime's artifact, here or in a worker; see :func:`make`.

    Raises:
        Unsupported: nothing reaches this runtime or this artifact; the message says why.
    """
    kind: type[Injector] = offer.make.injector()
    if not _reads_code(offer):
        return kind(artifact, options)
    from simulator.worker.injected import ConfinedInjector

    number = backend.of(offer.stage).index(offer)
    return ConfinedInjector(_worker(_confined(backend)), number, offer, artifact, options)


def _remote(worker: Worker, backend: Backend, offer: Offer, *arguments: Any) -> Any:
    from simulator.worker import remote

    number = backend.of(offer.stage).index(offer)
    return remote.make(worker, STAGES[offer.stage], number, offer.make, *arguments)


def compile(backend: Backend, offer: Offer, source: Path, folder: Path, options: Options) -> None:
    """Let a runtime write its compiled form, in this process or in a worker; see :func:`make`."""
    place = home(backend.name)
    number = backend.of(offer.stage).index(offer)
    if _reads_code(offer):
        with _hired(backend, folder) as worker:
            worker.call("compile", offer.stage, number, source, folder, options)
    elif place is None:
        offer.make.compile(source, folder, options)
    else:
        _worker(place).call("compile", offer.stage, number, source, folder, options)


def compile_identity(backend: Backend, offer: Offer) -> Any:
    """Return what a runtime's compiled form depends on in the environment where it runs."""
    place = home(backend.name)
    if place is None:
        return offer.make.compile_identity()
    number = backend.of(offer.stage).index(offer)
    return _worker(place).call("compile_identity", offer.stage, number)


def takers(format: str) -> list[str]:
    """Return the backends whose runtimes take a format of model files."""
    return [backend.name for backend in backends()
            if any(offer.make.takes == format for offer in backend.of(Stage.RUNTIME))]  # fmt: skip


def readers(format: str) -> list[str]:
    """Return the backends whose decoders read a format of files."""
    return [backend.name for backend in backends()
            if any(format in offer.make.reads for offer in backend.of(Stage.DECODE))]  # fmt: skip


def openers(format: str) -> list[str]:
    """Return the backends whose runtimes open a finished file of a format."""
    return [backend.name for backend in backends()
            if any(opens(offer, format) for offer in backend.of(Stage.RUNTIME))]  # fmt: skip


def opens(offer: Offer, format: str) -> bool:
    """Whether a runtime opens finished model files of a format; a recording opens none."""
    return issubclass(offer.make, Runtime) and format in offer.make.opens()


def hire(backend: Backend, seconds: float | None = None) -> Worker:
    """Return a new worker where the backend runs, for samples that may kill it.

    It is started again as often as it dies, until :func:`dismiss`.

    Args:
        backend: the backend.
        seconds: how long a call may take; by default as for every worker.
    """
    here = Home(backend.name, sys.executable, BACKENDS.points[backend.name].value)
    place = home(backend.name) or here
    worker = Worker(place, f"the decoder of {backend.name}", patience=None, seconds=seconds)
    _workers.append(worker)
    return worker


def hire_own(backend: Backend, offer: Offer, options: Options) -> Worker:
    """Return a new worker for one implementation that runs apart, until :func:`dismiss`.

    Its class says in which Python, and how long a call may take, see
    :class:`simulator.contract.FrontEnd`.
    """
    kind: type[FrontEnd] = offer.make
    python = kind.python(options) or sys.executable
    place = Home(backend.name, python, BACKENDS.points[backend.name].value)
    called = kind.called(options) + (f" in {python}" if python != sys.executable else "")
    worker = Worker(place, called, patience=None, seconds=kind.seconds(options))
    _workers.append(worker)
    return worker


def dismiss(worker: Worker) -> None:
    """End a worker for good."""
    worker.stop()
    _workers.remove(worker)


@contextmanager
def _hired(backend: Backend, folder: Path) -> Iterator[Worker]:
    """Give a confined worker that may write to a folder, and end it after the context.

    In :func:`keeping` it does not end before that does.
    """
    place = _confined(backend, folder)
    if _kept and place in _kept[-1]:
        yield _kept[-1][place]
        return
    worker = Worker(place)
    _workers.append(worker)
    if _kept:
        _kept[-1][place] = worker
    try:
        yield worker
    finally:
        if not _kept:
            dismiss(worker)


@contextmanager
def keeping() -> Iterator[None]:
    """Let one worker of a backend make many files in one folder, which are all our own."""
    _kept.append({})
    try:
        yield
    finally:
        for worker in _kept.pop().values():
            dismiss(worker)


def _reads_code(offer: Offer) -> bool:
    takes = getattr(offer.make, "takes", "")
    return takes in MODEL_FORMATS and MODEL_FORMATS[takes].runs_code


def _confines(offer: Offer) -> bool:
    """Whether an implementation runs in a confined worker: it reads files that may hold code."""
    return _reads_code(offer) and getattr(offer.make, "compiled_by", None) is None


def _confined(backend: Backend, *writes: Path) -> Home:
    """Return where a backend reads files that may hold code."""
    place = home(backend.name)
    python = place.python if place else sys.executable
    folders = tuple(os.path.abspath(path) for path in writes)
    return Home(backend.name, python, BACKENDS.points[backend.name].value, folders)


_workers: list[Worker] = []
_kept: list[dict[Home, Worker]] = []


@cache
def _worker(place: Home) -> Worker:
    worker = Worker(place)
    _workers.append(worker)
    return worker


@atexit.register
def _stop() -> None:
    for worker in _workers:
        worker.stop()
