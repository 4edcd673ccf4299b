"""MLPerf LoadGen itself: our figures are its figures, and it lets go of the process."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from backends.mlcommons_loadgen import BACKEND
from simulator.contract import Load, Scenario, Stage
from simulator.statistics.percentiles import PERCENTILES, early_stopping, percentile
from simulator.testing.loads import System

LOGS = {
    "mlperf_log_accuracy.json",
    "mlperf_log_detail.txt",
    "mlperf_log_summary.txt",
    "mlperf_log_trace.json",
}


def generator():
    (offer,) = BACKEND.of(Stage.LOAD)
    return offer.make({})


def load(scenario, queries, **fields):
    usual = {"samples": 50, "seconds": 0, "seed": 3}
    if scenario is Scenario.SERVER:
        usual["deadline_ns"] = 10**9
    return Load(scenario, queries=queries, **{**usual, **fields})


def latencies(folder):
    """What LoadGen saw of each query, in ns, in the order of asking."""
    trace = (folder / "mlperf_log_trace.json").read_text()
    seen = re.findall(r'"sample_seq":(\d+),.*"complete_ns":(\d+)', trace)
    return np.array([int(ns) for _, ns in sorted((int(seq), ns) for seq, ns in seen)])


@pytest.fixture(scope="module")
def single_stream(tmp_path_factory):
    """7000 queries of 0 to 0.1 ms, and now and then one of 0.3 ms."""
    folder = tmp_path_factory.mktemp("logs")
    draw = random.Random(0)

    def submit(index, done):
        until = time.perf_counter() + (3e-4 if draw.random() < 0.02 else draw.random() * 1e-4)
        while time.perf_counter() < until:
            pass
        done()

    asked = load(Scenario.SINGLE_STREAM, 7000, percentile=0.9, trace=True)
    return generator().run(asked, submit, folder), folder


def test_our_percentiles_are_loadgens(single_stream):
    served, folder = single_stream
    ns = latencies(folder)

    assert len(ns) == served.figures["result_query_count"] == 7000
    assert {p: percentile(ns, p) for p in PERCENTILES} == {
        p: served.figures[f"result_{100 * p:.2f}_percentile_latency_ns"] for p in PERCENTILES
    }


def test_our_early_stopping_is_loadgens(single_stream):
    served, folder = single_stream
    ns = latencies(folder)
    told = served.figures["early_stopping_latency_ss"], served.figures["early_stopping_latency_ms"]

    assert (early_stopping(ns, 0.9), early_stopping(ns, 0.99)) == told
    summary = (folder / "mlperf_log_summary.txt").read_text()
    assert f"Early stopping 90.0th percentile estimate: {early_stopping(ns, 0.9)}\n" in summary
    discarded = int(re.search(r"Would discard (\d+) highest", summary)[1])
    assert np.sort(ns)[6999 - discarded] == early_stopping(ns, 0.9)


def test_the_extremes_and_the_mean_are_loadgens(single_stream):
    served, folder = single_stream
    ns = latencies(folder)

    assert [int(ns.min()), int(ns.max()), int(ns.sum()) // 7000] == [
        served.figures[f"result_{name}_latency_ns"] for name in ("min", "max", "mean")
    ]


def test_a_run_keeps_logs_verdict_and_version(single_stream):
    served, folder = single_stream

    assert (served.valid, served.why) == (True, ())
    assert served.version.startswith("6.0.17 ")
    assert {file.name for file in folder.iterdir()} == LOGS


def test_what_cannot_be_estimated_is_left_out(tmp_path):
    asked = load(Scenario.SINGLE_STREAM, 30, percentile=0.9)

    served = generator().run(asked, lambda index, done: done(), tmp_path / "größe")

    assert not served.valid
    assert "Need to process at least 64 queries for early stopping." in served.why
    assert not [key for key in served.figures if key.startswith("early_stopping_latency")]
    assert {file.name for file in (tmp_path / "größe").iterdir()} == LOGS


def test_an_expectation_that_is_too_low_is_told(tmp_path):
    asked = load(Scenario.SINGLE_STREAM, 70, seconds=5, qps=20, percentile=0.9)

    served = generator().run(asked, lambda index, done: done(), tmp_path)

    assert not served.valid
    assert served.why[0].startswith("Ending early: Ran out of generated queries")


def test_the_queue_of_an_overloaded_server_grows(tmp_path):
    """Twice as many arrive as 2 ms each allow: 200 take 0.4 s and arrive within about 0.2 s."""
    with System(takes=0.002).working() as system:
        asked = load(Scenario.SERVER, 200, qps=1000, deadline_ns=20_000_000, trace=True)
        served = generator().run(asked, system.submit, tmp_path)

    ns = latencies(tmp_path)
    quarters = ns.reshape(4, 50).mean(axis=1)
    assert (np.diff(quarters) > 0).all(), quarters
    assert served.figures["result_max_latency_ns"] == ns.max()
    assert served.figures["result_overlatency_query_count"] == (ns > 20_000_000).sum()
    assert (served.valid, served.why[0]) == (False, "Reduce target QPS to improve latency.")


def test_offline_throughput_is_what_the_system_saw(tmp_path):
    """Its clock runs from before the first sample until after the last answer, and no longer."""
    times = []
    with System(takes=0.001).working() as system:

        def submit(index, done):
            times.append(time.perf_counter())
            system.submit(index, lambda: (times.append(time.perf_counter()), done()))

        start = time.perf_counter()
        served = generator().run(load(Scenario.OFFLINE, 200), submit, tmp_path)
        whole = time.perf_counter() - start

    assert len(system.asked) == 200
    assert max(times) - min(times) >= 0.2
    took = 200 / served.figures["result_samples_per_second"]
    assert max(times) - min(times) <= took <= whole


def test_seconds_are_filled(tmp_path):
    """Of 0.2 s and 400 a second LoadGen makes 1.1 x 80 samples (test_settings_internal.cc)."""
    with System().working() as system:
        generator().run(load(Scenario.OFFLINE, 1, seconds=0.2, qps=400), system.submit, tmp_path)

    assert len(system.asked) == 88


def test_a_file_in_the_working_directory_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit.config").write_text("*.SingleStream.min_query_count = 200\n")

    with System().working() as system:
        generator().run(load(Scenario.SINGLE_STREAM, 70), system.submit, tmp_path / "logs")

    assert len(system.asked) == 70


CHILD = """
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell's child is deaf
from backends.mlcommons_loadgen import BACKEND
from simulator.contract import Load, Scenario, Unsupported

load_generator = BACKEND.offers[0].make({})
folder = pathlib.Path(sys.argv[1])
scenario = Scenario(sys.argv[2])
qps = 500 if scenario is Scenario.SERVER else 5
asked = Load(scenario, 5, 1000, 600, 1, qps=qps, deadline_ns=1)
first = True

def submit(index, done):
    global first
    if first and sys.argv[3] == "raise":
        raise KeyboardInterrupt
    if first:
        print("asked", flush=True)
    first = False

try:
    load_generator.run(asked, submit, folder)
except KeyboardInterrupt:
    print("ended")
try:
    served = load_generator.run(Load(Scenario.OFFLINE, 5, 9, 0, 1), lambda i, done: done(), folder)
    print(served.valid)
except Unsupported as error:
    print(error)
if sys.argv[4] == "exit":
    sys.exit(3)
raise KeyboardInterrupt
"""
BUSY = (
    "LoadGen runs one test at a time, and an abandoned test is still running; start a new process"
)


@pytest.mark.parametrize(
    ("scenario", "how", "end", "left"),
    [
        ("SingleStream", "interrupt", "exit", "True"),
        ("Offline", "interrupt", "exit", "True"),
        ("Server", "interrupt", "exit", BUSY),
        ("Server", "interrupt", "die", BUSY),
        ("Server", "raise", "exit", BUSY),
    ],
)
def test_ten_minutes_end_at_once(tmp_path, scenario, how, end, left):
    """Nothing is answered, and still the process ends, as it wants to and without a crash."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), scenario, how, end]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        if how == "interrupt":
            assert process.stdout.readline() == "asked\n"
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=600)
        finally:
            process.kill()

    assert out.splitlines() == ["ended", left]
    if end == "exit":
        assert (process.returncode, err) == (3, "")
    else:
        assert process.returncode == -signal.SIGINT
        assert err.endswith("KeyboardInterrupt\n")


LEAVES = """
import pathlib, queue, sys, threading, time
from backends.mlcommons_loadgen import BACKEND
from simulator.contract import Load, Scenario

load_generator, waiting = BACKEND.offers[0].make({}), queue.Queue()
asked = Load(Scenario(sys.argv[2]), 5, 100_000, 600, 1, qps=500, deadline_ns=1)
started = threading.Event()

def submit(index, done):
    waiting.put(done)
    started.set()

def answer():
    while True:
        waiting.get()()

threading.Thread(target=answer, daemon=True).start()
arguments = (asked, submit, pathlib.Path(sys.argv[1]))
threading.Thread(target=load_generator.run, args=arguments, daemon=True).start()
started.wait()
sys.exit(5)
"""


@pytest.mark.parametrize("scenario", Scenario)
def test_a_process_may_end_under_load(tmp_path, scenario):
    """LoadGen's threads are in C++ then, or about to enter Python."""
    command = [sys.executable, "-c", LEAVES, str(tmp_path), scenario]

    done = subprocess.run(command, capture_output=True, text=True, timeout=600)

    assert (done.returncode, done.stderr) == (5, "")
