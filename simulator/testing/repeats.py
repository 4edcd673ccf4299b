"""Repeated calls: same results, also from several threads, and no memory leaks."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from simulator.testing.subject import Subject, expect
from simulator.testing.work import digest, work

RUNS, SLOW_RUNS = 20, 3
CALLS, SLOW_CALLS = 1000, 20
THREADS = 4
SWITCH = 5e-6
"""Seconds after which a thread of Python gives way, while threads share an instance."""
WINDOWS = 5
"""The number of parts of the calls in which memory growth is measured."""
LEAK = 8 * 2**10
"""Bytes per call. Results have 16-32 KiB, so keeping one result per call is detected."""


def the_same_every_time(subject: Subject) -> str | None:
    """Twenty runs, and one of another instance, give the same bits."""
    at, runs = work(subject), SLOW_RUNS if subject.slow else RUNS
    job = at.jobs()[0]
    with at.open() as made:
        found = [digest(at.fresh(made, job)) for _ in range(runs)]
    with at.open() as another:
        found.append(digest(at.fresh(another, job)))
    kinds = len(set(found))
    expect(kinds == 1, f"{kinds} different results in {runs} runs and one of another instance")
    return f"{runs} runs: slow" if subject.slow else None


def threads_see_the_same(subject: Subject) -> None:
    """Four threads at once get the same results as one."""
    at = work(subject)
    jobs = at.jobs() * (1 if subject.slow else 6)
    with at.open() as made, ThreadPoolExecutor(THREADS) as pool, _switching_often():
        want = [digest(at.fresh(made, job)) for job in jobs]
        got = list(pool.map(lambda job: digest(at.fresh(made, job)), jobs))
    wrong = sum(a != b for a, b in zip(got, want, strict=True))
    expect(not wrong, f"{wrong} of {len(jobs)} results differ when {THREADS} threads share it")


@contextmanager
def _switching_often() -> Iterator[None]:
    """Let another thread run every few microseconds, so that threads meet in short calls too."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def nothing_leaks(subject: Subject) -> str | None:
    """A thousand calls do not make the process grow, after a hundred to warm up.

    Offers of one implementation share its code, so only the first is tested.
    """
    if subject.offer.make in subject.workshop.tight:
        return "tested with another offer of the same implementation"
    at, calls = work(subject), SLOW_CALLS if subject.slow else CALLS
    jobs, seen, span = at.jobs(), [], calls // WINDOWS
    with at.open() as made, _only_new_garbage():
        for number in range(calls // 10 + calls):
            if number >= calls // 10 and (number - calls // 10) % span == 0:
                seen.append(_settled())
            at.fresh(made, jobs[number % len(jobs)])
        seen.append(_settled())
    if subject.slow:
        return f"{calls} calls, too few to tell: slow"
    grown = [(after - before) / span for before, after in pairwise(seen)]
    steady = median(grown)  # a cache fills once; a leak continues
    expect(
        steady < LEAK,
        f"the process grows by {steady / 2**10:.0f} KiB per call over {calls} calls, without end",
    )
    subject.workshop.tight.add(subject.offer.make)
    return None


@contextmanager
def _only_new_garbage() -> Iterator[None]:
    """Exclude existing objects from garbage collection, which is slow in a large process."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _settled() -> int:
    """Return the bytes in memory, without garbage and without memory cached by the allocator."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only in the GNU C library
    if trim is not None:
        trim(0)
    return resident()


def resident() -> int:
    """Return the resident bytes of this process; its peak if the system reports nothing else."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
