"""Keep a library's own log off our stdout and stderr."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType

from simulator.contract import Library


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop warnings, and what Python or native code writes to stdout and stderr.

    It holds for the whole process, so keep it short, and use it where models are made or
    opened, not where they run.
    """
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
        for fd, copy in kept:
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nowhere)


class QuietLibrary(Library):
    """A library that talks while it is imported."""

    def load(self) -> ModuleType:
        """Import the module without a word."""
        with quiet():
            return super().load()
