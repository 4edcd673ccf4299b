"""Time that does not belong to what is being measured."""

from __future__ import annotations

import threading

_local = threading.local()


def excluded() -> int:
    """Return the nanoseconds that this thread has excluded so far."""
    return getattr(_local, "ns", 0)


def exclude(ns: int) -> None:
    """Leave *ns* nanoseconds of this thread's time out of the latency being measured.

    A worker process excludes what it takes to reach it; a recording excludes the time of its
    own look-up less the latency that was recorded, which may be a negative number.
    """
    _local.ns = excluded() + ns
