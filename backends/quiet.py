"""Keep a library's own log off our stdout and stderr."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType

from simulator.contract import Library

_one = threading.RLock()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings, and everything that Python or native code writes to stdout and stderr.

    It affects the whole process and locks out other threads. So keep it short, and use it where
    models are converted or opened, not where they run.
    """
    with _one, _silenced():
        yield


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(fd, os.dup(fd)) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    words = io.StringIO()
    try:
        for fd, _ in kept:
            os.dup2(nowhere, fd)
        with (
            contextlib.redirect_stdout(words),
            contextlib.redirect_stderr(words),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        ctypes.CDLL(None).fflush(None)  # flush C's buffers
        for fd, copy in kept:
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nowhere)


class QuietLibrary(Library):
    """A library that prints while it is imported."""

    def load(self) -> ModuleType:
        """Import the module without output."""
        if self._loaded is not None:
            return self._loaded
        with quiet():
            return super().load()
