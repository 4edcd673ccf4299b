"""MLPerf's own load generator, LoadGen: its scenarios, scheduled in C++, and its logs."""

from __future__ import annotations

import atexit
import ctypes
import json
import math
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import (
    Backend,
    Library,
    Load,
    LoadGenerator,
    Offer,
    RunError,
    Scenario,
    Served,
    Stage,
    Submit,
    Unsupported,
)

loadgen = Library("mlperf_loadgen", distribution="mlcommons-loadgen", extra="loadgen")

GRACE = 1.0
"""Seconds to wait for the end of an abandoned test, and again at exit."""

HEARING = 0.2
"""Seconds between checks for Ctrl-C: a signal received by another thread does not wake this one."""

SETTLED = 0.1
"""Seconds until LoadGen has written all log entries; it looks every 10 ms.

A thread that ends earlier, after more than 1024 answers, crashes LoadGen: FinishReadingEntries
(logging.cc) adds an entry to the thread's log, which is then destroyed. See also
https://github.com/mlcommons/inference/issues/440.
"""

_busy = threading.Lock()


class LoadGen(LoadGenerator):
    """Runs ``StartTestWithLogSettings`` in mode PerformanceOnly.

    LoadGen has one log per process, so one test runs at a time. An ``audit.config`` in the working
    directory, which would silently override settings, is not read.
    """

    def _run(self, load: Load, submit: Submit, folder: Path) -> Served:
        loadgen.load()
        if not _busy.acquire(blocking=False):
            raise Unsupported(
                "LoadGen runs one test at a time, and an abandoned test is still "
                "running; start a new process"
            )
        _Test(load, submit, folder).run()
        return _served(folder)


class _Test:
    """One test in its own thread, because the C++ code ignores Ctrl-C and cannot be stopped.

    An abandoned test continues, but each of its samples is answered immediately. This ends
    SingleStream and Offline; Server still waits for the last arrival.

    Args:
        load: how many samples to send, and how fast.
        submit: receives each sample.
        folder: for the logs.
    """

    def __init__(self, load: Load, submit: Submit, folder: Path) -> None:
        self._load = load
        self._submit = submit
        self._folder = folder
        self._asked: dict[int, None] = {}  # each is removed once, by the first answer
        self._telling: set[int] = set()  # the threads that may be giving an answer to LoadGen
        self._given_up = self._exiting = False
        self._error: BaseException | None = None
        self._decided, self._over, self._harmless = (threading.Event() for _ in range(3))

    def run(self) -> None:
        """Wait for the end of the test, or for an error or Ctrl-C."""
        atexit.register(self._exit)
        threading.Thread(target=self._test, name="LoadGen", daemon=True).start()
        try:
            while not self._decided.wait(HEARING):
                pass
            if self._error is not None:
                raise self._error
        except BaseException:
            self._give_up()
            raise

    def _test(self) -> None:
        try:
            sut = loadgen.ConstructFastSUT(self._issue, lambda: None)
            count = self._load.samples
            qsl = loadgen.ConstructQSL(count, count, lambda _: None, lambda _: None)
            try:
                loadgen.StartTestWithLogSettings(
                    sut, qsl, _settings(self._load), _logs(self._load, self._folder), ""
                )
            finally:
                loadgen.DestroyQSL(qsl)
                loadgen.DestroySUT(sut)
        except BaseException as error:  # raised again in the caller's thread
            self._fail(error)
        finally:
            atexit.unregister(self._exit)
            _busy.release()
            for event in (self._over, self._harmless, self._decided):
                event.set()

    def _issue(self, ids: Sequence[int], indices: Sequence[int]) -> None:
        """Receive samples from LoadGen; an exception here would end the process."""
        for number, index in zip(ids, indices, strict=True):
            if self._exiting:
                self._harmless.set()
                threading.Event().wait()  # forever: Python is shutting down and must not run
            self._asked[number] = None
            if self._given_up:
                self._answer(number)
                continue
            try:
                self._submit(index, partial(self._answer, number))
            except BaseException as error:
                self._fail(error)
                self._answer(number)

    def _answer(self, *numbers: int) -> None:
        self._telling.add(threading.get_ident())
        left = [number for number in numbers if self._asked.pop(number, self) is None]
        if left:
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(n, 0, 0) for n in left])
        self._telling.discard(threading.get_ident())

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._given_up = True
        self._decided.set()

    def _give_up(self) -> None:
        self._given_up = True
        self._answer(*list(self._asked))
        self._over.wait(GRACE)

    def _exit(self) -> None:
        """Let the process end while LoadGen's threads run.

        At shutdown Python ends threads that enter it, which crashes C++ code, and LoadGen's static
        logger crashes when its thread is gone. So we wait for running answers and for LoadGen's
        next request, which gets no answer, and skip the C++ clean-up.
        """
        self._given_up = self._exiting = True
        self._asked.clear()  # later answers do not reach C++
        self._harmless.wait(GRACE)
        until = time.monotonic() + GRACE
        while self._telling and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(SETTLED)
        libc = ctypes.CDLL(None)
        if not self._over.is_set() and hasattr(libc, "on_exit"):  # only in the GNU C library
            libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)


def _settings(load: Load) -> Any:
    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, load.scenario)
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_query_count = load.queries
    settings.min_duration_ms = math.ceil(1000 * load.seconds)
    seeds = np.random.SeedSequence(load.seed).generate_state(3).tolist()
    settings.qsl_rng_seed, settings.sample_index_rng_seed, settings.schedule_rng_seed = seeds
    if load.scenario is Scenario.SERVER:
        settings.server_target_qps = load.qps
        settings.server_target_latency_ns = load.deadline_ns
        settings.server_target_latency_percentile = load.percentile
    elif load.scenario is Scenario.SINGLE_STREAM:
        settings.single_stream_target_latency_percentile = load.percentile
        if load.qps is not None:
            settings.single_stream_expected_latency_ns = max(1, round(1e9 / load.qps))
    elif load.qps is not None:
        settings.offline_expected_qps = load.qps
    return settings


def _logs(load: Load, folder: Path) -> Any:
    logs = loadgen.LogSettings()
    logs.log_output.outdir = str(folder)
    logs.log_output.copy_summary_to_stdout = logs.log_output.copy_detail_to_stdout = False
    logs.enable_trace = load.trace
    return logs


def _served(folder: Path) -> Served:
    """Read LoadGen's results from its detailed log."""
    file = folder / "mlperf_log_detail.txt"
    found: dict[str, Any] = {}
    why = []
    for entry in _entries(file):
        found[entry["key"]] = entry["value"]
        if entry["metadata"]["is_error"]:
            why.append(str(entry["value"]))
    if "result_validity" not in found:
        raise RunError(f"{file}: LoadGen left no result; {'; '.join(why) or 'no reason given'}")
    why.append(found.get("result_invalid_reason", ""))
    if not found["early_stopping_met"]:
        why += found["early_stopping_result"].split(" * ")
    figures = {
        key: value
        for key, value in found.items()
        if key.startswith(("result_", "early_stopping_"))
        and not (key.startswith("early_stopping_latency") and not value)  # 0: not estimated
    }
    return Served(
        valid=found["result_validity"] == "VALID",
        why=tuple(line for words in why if (line := " ".join(words.split()))),
        figures=figures,
        version=found["loadgen_version"],
    )


def _entries(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the log entries with results or errors."""
    wanted = ('"key": "result_', '"key": "early_', '"key": "loadgen_version', '"is_error": true')
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if any(words in line for words in wanted):
            yield json.loads(line.removeprefix(":::MLLOG "))


BACKEND = Backend(
    name="loadgen",
    summary="MLPerf LoadGen: SingleStream, Offline and Server",
    library=loadgen,
    offers=(
        Offer(
            Stage.LOAD,
            {},
            LoadGen,
            source="https://github.com/mlcommons/inference/tree/master/loadgen",
        ),
    ),
)
