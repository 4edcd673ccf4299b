"""Time to leave out of a latency measurement."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_local = threading.local()


def excluded() -> int:
    """Return the nanoseconds that this thread has excluded so far."""
    return getattr(_local, "ns", 0)


def exclude(ns: int) -> None:
    """Leave *ns* nanoseconds of this thread's time out of the measured latency.

    For a worker process this is the time to reach it. For a recording it is the time of the
    look-up minus the recorded latency, which may be negative.
    """
    _local.ns = excluded() + ns


def move(stage: str, ns: int) -> None:
    """Count *ns* nanoseconds of this thread's step as another stage's."""
    moved = getattr(_local, "moved", {})
    _local.moved = {**moved, stage: moved.get(stage, 0) + ns}


def moved() -> dict[str, int]:
    """Return what this thread has moved to other stages since the last call."""
    found: dict[str, int] = getattr(_local, "moved", {})
    _local.moved = {}
    return found


@contextmanager
def excluding() -> Iterator[None]:
    """Leave out what this thread does meanwhile."""
    start = time.perf_counter_ns()
    try:
        yield
    finally:
        exclude(time.perf_counter_ns() - start)
