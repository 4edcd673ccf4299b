"""Repetition: the same every time, from several threads, and without growing."""

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
WINDOWS = 5
"""Parts of the calls in which growth is measured."""
LEAK = 8 * 2**10
"""Bytes a call; the results of the jobs are 16-32 KiB, so keeping one a call is found."""


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
    """Four threads at once get what one alone gets."""
    at = work(subject)
    jobs = at.jobs() * (1 if subject.slow else 6)
    with at.open() as made, ThreadPoolExecutor(THREADS) as pool:
        want = [digest(at.fresh(made, job)) for job in jobs]
        got = list(pool.map(lambda job: digest(at.fresh(made, job)), jobs))
    wrong = sum(a != b for a, b in zip(got, want, strict=True))
    expect(not wrong, f"{wrong} of {len(jobs)} results differ when {THREADS} threads share it")


def nothing_leaks(subject: Subject) -> str | None:
    """A thousand calls do not make the process grow, after a hundred to warm up.

    Offers of one implementation share its code: the first stands for all.
    """
    if subject.offer.make in subject.workshop.tight:
        return "seen with another offer of the same implementation"
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
    steady = median(grown)  # a cache fills once, other threads let go once; a leak goes on
    expect(
        steady < LEAK,
        f"the process grows by {steady / 2**10:.0f} KiB a call over {calls} calls, and goes on",
    )
    subject.workshop.tight.add(subject.offer.make)
    return None


@contextmanager
def _only_new_garbage() -> Iterator[None]:
    """Let collections pass over what is there already: in a large process it takes a while."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _settled() -> int:
    """Bytes in memory without garbage, and without what the allocator keeps for later."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library
    if trim is not None:
        trim(0)
    return resident()


def resident() -> int:
    """Bytes of this process in memory; its largest so far where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
