"""A time limit for what cannot be interrupted: an inference, and other steps of a sample.

A call of a library ends when the library wants. So the limit is for a process that is there for
one command: :func:`armed` lets a thread look every second, and end the process where a call is too
long. Records are written as the run goes on, so that it can be continued.

A library that holds Python's global lock meanwhile holds up that thread, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE = 0.25
"""Seconds between two looks."""
_running: dict[int, tuple[float, str]] = {}


class _Told(threading.local):
    """What a thread computes: the sample, the stage and the stack."""

    what: tuple[str, str, str] | None = None

    def words(self) -> str:
        return "{}: {} of {}".format(*self.what) if self.what else "an inference"


_told = _Told()
_armed: list[float] = []


class limited:  # noqa: N801  used as a function
    """A context in which this thread makes one call that has a time limit.

    Args:
        what: for the message; by default what :func:`of_sample` was last told.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str = "") -> None:
        self._what = what

    def __enter__(self) -> None:
        """Begin to count."""
        if _armed:
            what = self._what or _told.words()
            _running[threading.get_ident()] = time.monotonic(), what

    def __exit__(self, *error: object) -> None:
        """Count no more."""
        _running.pop(threading.get_ident(), None)


def of_sample(sample: str, stage: str, stack: str) -> None:
    """Remember what this thread computes."""
    _told.what = sample, stage, stack


def limit() -> float:
    """Return the seconds that a call may take now; 0: any time."""
    return max(_armed, default=0.0)


@contextmanager
def armed(seconds: float, end: Callable[[str], None]) -> Iterator[None]:
    """Look after the calls of all threads meanwhile.

    Args:
        seconds: that a call may take; 0: any time.
        end: called with what takes longer; it ends the process.
    """
    done = threading.Event()

    def look() -> None:
        while not done.wait(PAUSE):
            now = time.monotonic()
            for begun, what in list(_running.values()):
                if now - begun > seconds:
                    end(what)
                    return

    if seconds:
        _armed.append(seconds)
        threading.Thread(target=look, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        done.set()
        _armed.clear()
        _running.clear()
