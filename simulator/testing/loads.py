"""Load generators: which samples they send and when, what they count, and how they end."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from simulator.contract import Load, LoadGenerator, Scenario, Served, Submit
from simulator.testing.subject import Failed, Subject, expect
from simulator.testing.values import one_line

QUERIES, SAMPLES = 64, 5
QPS = 4000.0
PATIENCE = 60.0
"""Seconds to wait for an event before a check fails; events take a few ms, and longer on a busy
machine."""
SERVICE = 0.002
"""Seconds that a slow system needs for a sample."""
RATE = 0.25
"""Allowed relative error of the rate of 400 arrivals: five standard deviations."""


class System:
    """A system under test that records the samples it receives.

    Args:
        takes: seconds per sample; samples run one after the other.
        holds: the number of samples to wait for before answering any; at most `PATIENCE` seconds.
        calls: how often it calls the callback of a sample.
    """

    def __init__(self, takes: float = 0.0, holds: int = 0, calls: int = 1) -> None:
        self.asked: list[int] = []
        self.most = 0
        self._takes, self._holds, self._calls = takes, holds, calls
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._full = threading.Event()
        self._answered = 0

    def submit(self, index: int, done: Callable[[], None]) -> None:
        """Queue a sample."""
        self.asked.append(index)
        self.most = max(self.most, len(self.asked) - self._answered)
        if len(self.asked) >= self._holds:
            self._full.set()
        self._waiting.put(done)

    @contextlib.contextmanager
    def working(self) -> Iterator[System]:
        """Answer from a separate thread."""
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._waiting.put(None)
            thread.join()

    def _work(self) -> None:
        while (done := self._waiting.get()) is not None:
            self._full.wait(PATIENCE)
            self._full.set()
            time.sleep(self._takes)
            self._answered += 1
            for _ in range(self._calls):
                done()


def asks_for_what_there_is(subject: Subject) -> None:
    """In every scenario enough samples are sent, and each index occurs."""
    for scenario in Scenario:
        with System().working() as system:
            run(subject, load(scenario), system.submit)
        got = len(system.asked)
        expect(got >= QUERIES, f"{scenario}: {QUERIES} samples expected, asked for {got}")
        kinds = sorted(set(system.asked))
        expect(
            kinds == list(range(SAMPLES)),
            f"{scenario}: indices 0 to {SAMPLES - 1} expected, got {kinds}",
        )


def single_stream_asks_one_at_a_time(subject: Subject) -> None:
    """SingleStream sends the next sample when the previous one is answered."""
    with System(takes=0.0003).working() as system:
        run(subject, load(Scenario.SINGLE_STREAM), system.submit)
    expect(system.most == 1, f"{system.most} samples were sent at once")


def answered_twice_counts_once(subject: Subject) -> None:
    """Calling a sample's callback twice does not answer the next sample."""
    most = []
    for calls in (1, 2):
        with System(takes=0.0003, calls=calls).working() as system:
            run(subject, load(Scenario.SINGLE_STREAM), system.submit)
        most.append(system.most)
    expect(most[1] <= most[0], f"{most[0]} at once expected, got {most[1]}")


def offline_and_server_do_not_wait(subject: Subject) -> None:
    """Offline and Server send all samples before any is answered."""
    for scenario in (Scenario.OFFLINE, Scenario.SERVER):
        with System(holds=QUERIES).working() as system:
            run(subject, load(scenario), system.submit)
        expect(
            system.most >= QUERIES,
            f"{scenario}: {QUERIES} samples expected before an answer, got {system.most}",
        )


def arrivals_have_their_rate(subject: Subject) -> None:
    """Samples of Server are scheduled at the requested rate."""
    with System().working() as system:
        served = run(subject, load(Scenario.SERVER, queries=400), system.submit)
    got = served.figures["result_scheduled_samples_per_sec"]
    expect(abs(got / QPS - 1) < RATE, f"{QPS:g} samples a second expected, scheduled {got:.0f}")


def waiting_counts(subject: Subject) -> None:
    """The latency of Server counts from when a sample was due, not from when its turn came."""
    with System(takes=SERVICE).working() as system:
        served = run(subject, load(Scenario.SERVER), system.submit)
    asked, rate = len(system.asked), served.figures["result_scheduled_samples_per_sec"]
    least = (
        asked * SERVICE - (asked - 1) / rate
    ) * 1e9  # of the last answer; sleeps are no shorter
    got = served.figures["result_max_latency_ns"]
    expect(got > 0.9 * least, f"a latency of {least / 1e6:.0f} ms expected, got {got / 1e6:.0f}")


def the_deadline_decides(subject: Subject) -> None:
    """Server is valid where the deadline is met, and says why it is not where it is missed."""
    for deadline_ns, valid in ((10**12, True), (1, False)):
        with System().working() as system:
            asked = load(Scenario.SERVER, deadline_ns=deadline_ns)
            served = run(subject, asked, system.submit)
        expect(
            served.valid is valid,
            f"a deadline of {deadline_ns} ns: valid {valid} expected, got {served.valid}",
        )
        expect(valid or served.why, "a missed deadline is not explained")


def the_same_seed_asks_the_same(subject: Subject) -> None:
    """Equal seeds send the same samples in the same order, and different seeds do not."""
    for scenario in (Scenario.SINGLE_STREAM, Scenario.SERVER):
        orders = []
        for seed in (1, 1, 2):
            with System().working() as system:
                run(subject, load(scenario, seed=seed), system.submit)
            orders.append(system.asked)
        expect(orders[0] == orders[1], f"{scenario}: one seed sends different samples")
        expect(orders[0] != orders[2], f"{scenario}: two seeds send the same samples")


def what_submit_raises_comes_out(subject: Subject) -> None:
    """An exception of submit ends the load and is raised; the next load works."""
    for scenario in Scenario:
        mine = RuntimeError("the system under test broke")
        outcome: queue.SimpleQueue[object] = queue.SimpleQueue()
        with System().working() as system:
            submit = partial(_breaks, system, mine)
            work = partial(_caught, outcome, partial(run, subject, load(scenario), submit))
            threading.Thread(target=work, daemon=True).start()
            try:
                got = outcome.get(timeout=PATIENCE)
            except queue.Empty:
                raise Failed(f"{scenario}: submit raised an exception, but it was lost") from None
        told = one_line(got) if isinstance(got, BaseException) else "a result"
        expect(got is mine, f"{scenario}: the exception of submit expected, got {told}")
        with System().working() as system:
            run(subject, load(scenario), system.submit)


def its_logs_stay(subject: Subject) -> None:
    """A missing folder is created and contains logs afterwards."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "not" / "there"
        with System().working() as system:
            subject.make().run(load(Scenario.OFFLINE), system.submit, folder)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        expect(size, "no log was left")


def nothing_is_printed(subject: Subject) -> None:
    """Neither Python nor native code writes to stdout, which belongs to the report."""
    with _stdout() as printed, System().working() as system:
        run(subject, load(Scenario.SERVER), system.submit)
    expect(not printed, f"printed: {' '.join(''.join(printed).split())[:100]}")


def load(scenario: Scenario, **changes: Any) -> Load:
    """Return a load that takes a fraction of a second."""
    usual = {"samples": SAMPLES, "queries": QUERIES, "seconds": 0, "seed": 1, "percentile": 0.5}
    if scenario is Scenario.SERVER:
        usual |= {"qps": QPS, "deadline_ns": 10**12}
    return Load(scenario, **{**usual, **changes})


def order(generator: LoadGenerator, seed: int, folder: Path) -> list[int]:
    """Return the order in which a load generator sends samples that are answered immediately."""
    asked = []

    def submit(index: int, done: Callable[[], None]) -> None:
        asked.append(index)
        done()

    generator.run(load(Scenario.SINGLE_STREAM, seed=seed), submit, folder)
    return asked


def run(subject: Subject, load: Load, submit: Submit) -> Served:
    """Put a system under load; the logs are dropped."""
    with tempfile.TemporaryDirectory() as folder:
        served: Served = subject.make().run(load, submit, Path(folder))
    return served


def _breaks(system: System, error: Exception, index: int, done: Callable[[], None]) -> None:
    if len(system.asked) == 2:
        raise error
    system.submit(index, done)


def _caught(outcome: queue.SimpleQueue[object], call: Callable[[], object]) -> None:
    try:
        outcome.put(call())
    except BaseException as error:
        outcome.put(error)


@contextlib.contextmanager
def _stdout() -> Iterator[list[str]]:
    """Collect everything written to stdout, by Python and by native code."""
    printed: list[str] = []
    words = io.StringIO()
    sys.stdout.flush()
    kept = os.dup(1)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            with contextlib.redirect_stdout(words):
                yield printed
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            printed += filter(None, (words.getvalue(), file.read()))
