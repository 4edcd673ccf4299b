"""The worker's side: builds implementations of one backend and calls them, one at a time."""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from simulator.contract import Backend
from simulator.errors import SampleError, SimulatorError, one_line
from simulator.worker.codec import Memory, Message, decode, encode
from simulator.worker.home import IN_FORCE, Checked, first_to_go


def main() -> None:
    """Serve requests until the socket is closed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", help="MODULE:NAME of a Backend")
    parser.add_argument("--fds", required=True, help="three file descriptors, see simulator.worker")
    options = parser.parse_args()
    first_to_go()
    module, _, name = options.backend.partition(":")
    backend: Backend = getattr(importlib.import_module(module), name)
    serve(backend, *map(int, options.fds.split(",")))


def check(backend: Backend) -> Checked:
    """Load a backend's libraries and look for its device."""
    versions = {lib.distribution: lib.version for lib in backend.libraries}
    device, device_missing = None, False
    try:
        for library in backend.libraries:
            if not library.present:
                library.load()  # says what is missing
        if backend.device is not None:
            device_missing = True
            device = backend.device()
            device_missing = False
        for library in backend.libraries:
            module = library.load()
            own = library.version or getattr(module, "__version__", None)
            versions[library.distribution] = own
    except SimulatorError as error:
        return Checked(versions, device, device_missing, str(error))
    return Checked(versions, device)


def serve(backend: Backend, link: int, theirs: int, ours: int) -> None:
    """Answer requests, one line each."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    incoming, outgoing = Memory(theirs), Memory(ours)
    made: dict[int, Any] = {}
    numbers, mine = itertools.count(), os.getpid()
    with suppress(ConnectionError), socket.socket(fileno=link) as out, out.makefile("rb") as lines:
        for line in lines:
            request = decode(line, incoming)
            start = time.perf_counter_ns()
            try:
                for number in request["gone"]:
                    _close(made.pop(number, None))
                value = _answer(backend, made, numbers, request)
            except Exception as error:  # the client reports whatever the library raises
                value = error
            if os.getpid() != mine:  # a fork of the library's, or of a user's, that came back
                os._exit(0)
            out.sendall(_encoded(value, start, outgoing))
    sys.stdout.flush()
    _end()


def _encoded(value: Any, start: int, outgoing: Memory) -> bytes:
    if not isinstance(value, Exception):
        try:
            return encode({"value": value, "ns": time.perf_counter_ns() - start}, outgoing)
        except Exception as error:  # of what cannot be sent
            value = error
    return encode({"error": _kind(value), "message": one_line(value)}, outgoing)


def _end_with(parent: int) -> None:
    """End this process when its parent has exited, even during a call."""
    while os.getppid() == parent:
        time.sleep(1)
    _end()


def _end() -> None:
    """End this process and what it has started; wait for no library's threads or destructors."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _answer(
    backend: Backend, made: dict[int, Any], numbers: Iterator[int], request: Message
) -> Any:
    name, arguments = request["call"], request["args"]
    own: dict[str, Callable[[], Any]] = {
        "check": partial(check, backend),
        "confinement": partial(os.environ.get, IN_FORCE, ""),
        "held": partial(len, made),
    }
    if name in own:
        return own[name]()
    if name in ("make", "compile", "compile_identity"):
        stage, number, *rest = arguments
        stage, _, part = stage.partition(".")
        implementation = backend.of(stage)[number].make
        if part:  # what puts faults into a runtime
            from simulator.worker.injected import Served

            implementation = partial(Served, implementation.injector())
        if name != "make":
            return getattr(implementation, name)(*rest)
        number = next(numbers)
        made[number] = implementation(*rest)
        return number
    if name == "close":
        return _close(made.pop(request["of"]))
    found = getattr(made[request["of"]], name)
    return found(*arguments) if callable(found) else found


def _close(implementation: Any) -> None:
    if close := getattr(implementation, "close", None):
        close()


def _kind(error: Exception) -> str:
    for known in (SampleError, ValueError):
        if isinstance(error, known):
            return known.__name__
    return type(error).__name__ if isinstance(error, SimulatorError) else "ModelError"


if __name__ == "__main__":
    main()
