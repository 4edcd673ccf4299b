"""Where the time of a call goes: each nanosecond of a thread is counted once, for what it is in.

While samples run on several threads, these share the wall time of that phase: a thread's second is
``1 / workers`` of a second of it, and what no thread used is waiting. So everything adds up to the
wall time. It is always measured; a step costs about two microseconds.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Work(StrEnum):
    """Kinds of work, in the order in which they are shown."""

    STEPS = "libraries"
    REPEATS = "repeats"
    READING = "reading"
    WAITING = "waiting"
    ELSEWHERE = "elsewhere"
    START = "start-up"
    PREPARING = "preparing"
    MAKING = "making artifacts"
    OPENING = "opening"
    STATISTICS = "statistics"
    PICTURES = "pictures"
    WRITING = "writing"
    REPORT = "report"
    OWN = "own"


WORDS = {
    Work.STEPS: "the libraries' own work on samples, each step once",
    Work.REPEATS: "the libraries' work on samples that run twice, as a control",
    Work.READING: "reading samples",
    Work.WAITING: "cores without work: waiting for samples, memory or other processes",
    Work.ELSEWHERE: "samples in other processes or on other machines; their work is not told apart",
    Work.START: "Python, imports and the command line",
    Work.PREPARING: "model, data, profiles, manifest",
    Work.MAKING: "converting, calibrating and quantizing the model; the next run finds it made",
    Work.OPENING: "opening runtimes and libraries",
    Work.STATISTICS: "figures, tests and resamples",
    Work.PICTURES: "drawing pictures and sounds",
    Work.WRITING: "writing records, summary and manifest",
    Work.REPORT: "the report",
    Work.OWN: "our own work between the libraries'",
}


class Row(NamedTuple):
    """One kind of work.

    Attributes:
        work: its kind.
        stage: of a step; else empty.
        stacks: that a step belongs to: a stack's name, ``all``, a number of stacks, or ``aside``
            (controls and pictures); empty for other work.
    """

    work: Work
    stage: str = ""
    stacks: str = ""


Seconds = dict[Row, float]


@dataclass(frozen=True, slots=True)
class Mark:
    """The state of the ledger at one moment."""

    wall: float
    cpu: float
    rows: Seconds


class _Ledger:
    """The sums of this process, in nanoseconds.

    Attributes:
        alone: of the caller's thread, outside phases; other threads work beside it and add nothing.
        phase: of all threads in the phase that goes on; None outside.
        shared: of the phases that are over, in wall time.
        command: when a command began that has made no call yet; else None.
        first: whether no command began yet in this process.
        caller: the thread whose wall time is told.
        workers: of the last phase.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.alone: Counter[Row] = Counter()
        self.phase: Counter[Row] | None = None
        self.shared: Counter[Row] = Counter()
        self.command: Mark | None = None
        self.first = True
        self.caller = 0
        self.workers = 1

    def add(self, row: Row, ns: int) -> None:
        with self.lock:
            if self.phase is not None:
                self.phase[row] += ns
            elif threading.get_ident() == self.caller:
                self.alone[row] += ns


_ledger = _Ledger()


class _Thread(threading.local):
    """What this thread is doing: the time of inner work, by depth, and whose all of it is."""

    def __init__(self) -> None:
        self.inner: list[int] = []
        self.whole: Work | None = None


_thread = _Thread()


class spending:  # noqa: N801 - it is used as a function: with spending(Work.WRITING)
    """Count the time of a ``with`` block, less what is counted inside, for one kind of work.

    Args:
        row: the work.
        whole: count what is inside as this work, too.

    Attributes:
        left_out: nanoseconds of the block that are left to the block around it.
    """

    __slots__ = ("_outer", "_row", "_start", "_whole", "left_out")

    def __init__(self, row: Row | Work, whole: bool = False) -> None:
        self._row = row if isinstance(row, Row) else Row(row)
        self._whole, self.left_out = whole, 0

    def __enter__(self) -> spending:
        """Begin."""
        self._outer = _thread.whole
        if self._whole and self._outer is None:
            _thread.whole = self._row.work
        _thread.inner.append(0)
        self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *error: object) -> None:
        """End."""
        whole = time.perf_counter_ns() - self._start - max(self.left_out, 0)
        own = whole - _thread.inner.pop()
        _ledger.add(self._row if self._outer is None else Row(self._outer), max(own, 0))
        if _thread.inner:
            _thread.inner[-1] += whole
        _thread.whole = self._outer


@contextmanager
def phase(workers: int) -> Iterator[None]:
    """Share the wall time of a block among the threads that work in it.

    Args:
        workers: how many threads there are.
    """
    if _ledger.phase is not None:  # within another phase: its threads share that one's time
        yield
        return
    depth, before = len(_thread.inner), sum(_thread.inner[-1:])
    start = time.perf_counter_ns()
    with _ledger.lock:
        _ledger.phase, _ledger.workers = Counter(), workers
    try:
        yield
    finally:
        wall = time.perf_counter_ns() - start
        with _ledger.lock:
            found, _ledger.phase = _ledger.phase, None
            used, cores = sum(found.values()), wall * workers
            for row, ns in found.items():
                _ledger.shared[row] += round(wall * ns / max(used, cores, 1))
            _ledger.shared[Row(Work.WAITING)] += max(cores - used, 0) // max(workers, 1)
        if depth and len(_thread.inner) == depth:  # the block around it has none of this time
            _thread.inner[-1] = before + wall


@contextmanager
def gathering() -> Iterator[Counter[Row]]:
    """Count the nanoseconds of a block apart, to tell the process that it is done for."""
    found: Counter[Row] = Counter()
    with _ledger.lock:
        _ledger.phase = found
    try:
        yield found
    finally:
        with _ledger.lock:
            _ledger.phase = None


def count(found: Mapping[Row, int]) -> None:
    """Count nanoseconds that another process has spent for the phase that goes on."""
    for row, ns in found.items():
        _ledger.add(Row(*row), ns)


def command_began() -> Mark:
    """Return the state of the ledger when a command began: at first when its process began."""
    first, _ledger.first = _ledger.first, False
    now = time.perf_counter()
    found = Mark(now - _age(), 0.0, {}) if first else Mark(now, _cpu(), _rows())
    _ledger.command, _ledger.caller = found, threading.get_ident()
    return found


def mark() -> Mark:
    """Return the state of the ledger; for the first call of a command, when the command began."""
    command, _ledger.command = _ledger.command, None
    _ledger.caller = threading.get_ident()
    now, rows = time.perf_counter(), _rows()
    if command is None:
        return Mark(now, _cpu(), rows)
    known = sum(rows.values()) - sum(command.rows.values())
    _ledger.add(Row(Work.START), round(1e9 * max(now - command.wall - known, 0.0)))
    return command


def last_workers() -> int:
    """Return how many samples were in flight in the last phase."""
    return _ledger.workers


def since(begun: Mark) -> tuple[float, float, Seconds]:
    """Return what was spent since a moment.

    Returns:
        Wall seconds; seconds of processors, of this process and of those that it started and that
        have ended; and the wall seconds of every kind of work, which sum to the wall seconds.
    """
    wall, cpu = time.perf_counter() - begun.wall, _cpu() - begun.cpu
    rows = {row: ns - begun.rows.get(row, 0.0) for row, ns in _rows().items()}
    rows = {row: seconds for row, seconds in rows.items() if seconds > 0}
    rest = wall - sum(rows.values())
    own = Row(Work.OWN)
    rows[own] = rows.get(own, 0.0) + max(rest, 0.0)
    return wall, cpu, rows


def _rows() -> Seconds:
    with _ledger.lock:
        both = _ledger.alone + _ledger.shared
    return {row: ns / 1e9 for row, ns in both.items()}


def _cpu() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def _age() -> float:
    """Seconds since this process began; 0 where the system does not tell."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - began, 0.0)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
