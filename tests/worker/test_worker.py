"""Workers: the same answers, and one clear line for every way to die."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny

import simulator
from simulator import registry
from simulator.contract import SampleError, Stage, clock, inspect
from simulator.errors import ModelError, RunError, UserError
from simulator.worker import environments
from simulator.worker.client import TIMEOUT

PICTURE = inspect("ok.png", tiny.encoded(tiny.picture((9, 9, 9), (8, 12)), "png"))
UNLUCKY = inspect("unlucky.png", tiny.encoded(tiny.picture((9, 9, 9), (8, 13)), "png"))


def decoder(name, idct):
    backend = registry.backend(name)
    (offer,) = backend.of(Stage.DECODE)
    return registry.make(backend, offer, {"exif": "ignore", "idct": idct})


def test_it_runs_in_another_process(fragile):
    made = decoder(fragile, "raise")

    assert made.rgb(PICTURE).rgb.tolist() == np.full((8, 12, 3), 12).tolist()
    assert "fragile" in sys.modules  # listing imports the adapter here, decoding does not happen
    assert type(made).__name__ == "RemoteFragileDecoder"


@pytest.mark.parametrize(
    ("idct", "line"),
    [
        ("islow", "the fragile worker was killed by SIGSEGV"),
        ("exit", "the fragile worker ended with exit code 7: out of luck"),
        ("refuse", "thirteen is unlucky"),
        ("raise", "FragileDecoder: two"),
    ],
)
def test_one_bad_sample_is_one_line_and_the_next_goes_through(fragile, idct, line):
    made = decoder(fragile, idct)

    for _ in range(2):
        with pytest.raises(SampleError) as caught:
            made.rgb(UNLUCKY)
        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value)
        assert made.rgb(PICTURE).rgb[0, 0, 0] == 12


def test_a_worker_that_died_between_two_calls_is_started_again(fragile):
    """As after Ctrl-C in a notebook, which halts every worker."""
    made = decoder(fragile, "raise")
    with registry.interrupted():
        pass

    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12
    with registry.interrupted():
        pass
    assert decoder(fragile, "raise").rgb(PICTURE).rgb[0, 0, 0] == 12


def test_a_hanging_worker_is_ended(fragile, monkeypatch):
    made = decoder(fragile, "hang")
    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12

    monkeypatch.setenv(TIMEOUT, "1")
    with pytest.raises(SampleError, match=f"did not answer within 1 s .set {TIMEOUT}"):
        made.rgb(UNLUCKY)

    monkeypatch.delenv(TIMEOUT)
    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12


def test_an_interrupted_call_does_not_leave_its_answer_to_the_next(fragile):
    """Ctrl-C while a worker is busy: the next answers belong to the next questions."""
    code = """
import select, signal, sys
from types import SimpleNamespace
from simulator.contract import inspect
from simulator.worker import client
from simulator.worker.client import Stale, Worker
from simulator.worker.home import Home
images = [inspect("x.png", bytes.fromhex(line)) for line in sys.stdin.read().split()]
worker = Worker(Home("fragile", sys.executable, "fragile:BACKEND"))

def make():
    return worker.call("make", "decode", 0, {"exif": "ignore", "idct": "hang"})

made = make()
signal.signal(signal.SIGALRM, signal.default_int_handler)

def waits(*arguments):  # the question is on its way
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    return select.select(*arguments)

client.select = SimpleNamespace(select=waits)
try:
    worker.call("rgb", images[0], of=made)
except KeyboardInterrupt:
    print("interrupted")
client.select = select
try:
    worker.call("rgb", images[1], of=made)
except Stale:
    print("stale")
made = make()
print([int(worker.call("rgb", image, of=made).rgb[0, 0, 0]) for image in images[1:]])
worker.stop()
"""
    pictures = [tiny.encoded(tiny.picture((9, 9, 9), (8, w)), "png") for w in (13, 12, 15, 12)]
    done = subprocess.run(
        [sys.executable, "-c", code], input="\n".join(p.hex() for p in pictures),
        capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip

    assert done.stdout.splitlines() == ["interrupted", "stale", "[12, 15, 12]"], done.stderr


def test_a_worker_whose_child_lives_on_is_seen_to_have_died(fragile, monkeypatch):
    """A forked child holds the pipes open; the death of the worker itself is what counts."""
    monkeypatch.setenv(TIMEOUT, "300")
    made = decoder(fragile, "fork")

    with pytest.raises(SampleError, match="was killed by SIGABRT"):
        made.rgb(UNLUCKY)


def test_a_busy_worker_ends_with_its_parent(fragile):
    code = """
import sys, threading
from simulator.worker.client import Worker
from simulator.worker.home import Home
from simulator.contract import inspect
worker = Worker(Home("fragile", sys.executable, "fragile:BACKEND"))
made = worker.call("make", "decode", 0, {"exif": "ignore", "idct": "hang"})
print(worker._process.pid, flush=True)
image = inspect("x.png", sys.stdin.buffer.read())
worker.call("rgb", image, of=made)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=env
    )
    parent.stdin.write(UNLUCKY.data)
    parent.stdin.close()
    pid = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.send_signal(signal.SIGKILL)
    parent.wait()

    deadline = time.monotonic() + 600
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_lies_in_the_current_folder_is_not_imported(fragile, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise ImportError('not the real one')")
    monkeypatch.chdir(tmp_path)

    assert decoder(fragile, "raise").rgb(PICTURE).rgb[0, 0, 0] == 12


def test_a_version_that_changed_since_installation_is_seen(fragile):
    stale = environments.Installed(sys.executable, {"fragile": "0.1"})
    environments.keep("fragile", stale)

    registry.require(registry.backend(fragile))

    assert registry.versions(registry.backend(fragile)) == {}


def test_a_worker_that_always_dies_is_given_up(fragile):
    made = decoder(fragile, "islow")
    for _ in range(2):
        with pytest.raises(SampleError):
            made.rgb(UNLUCKY)

    with pytest.raises(ModelError, match="3 times in a row; given up"):
        made.rgb(UNLUCKY)


def test_a_run_goes_on_without_the_sample_that_crashed_the_worker(fragile, tmp_path, card, data):
    (data / "red" / "unlucky.jpg").write_bytes(tiny.encoded(tiny.picture((220, 30, 40), (9, 13))))
    lucky = "{backend: fragile, exif: ignore, idct: islow}"

    result = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "run",
        overrides=[f"deploy.decode={lucky}"],
    )  # fmt: skip

    assert result.summary["samples"] == 6
    (one,) = result.summary["failures"]
    assert (one["stack"], one["samples"]) == ("deploy", ["red/unlucky.jpg"])
    assert "was killed by SIGSEGV" in one["why"]


def test_a_stack_in_workers_gives_the_bits_of_one_in_this_process(cache, tmp_path, card, data):
    def digests(name):
        out = tmp_path / name
        simulator.compare("pillow_fp32", "opencv_fp32", model=card, data=data, out=out)
        import pyarrow.parquet as pq

        return pq.read_table(out / "records.parquet").column("digest").to_pylist()

    here = digests("here")
    for name in ("onnxruntime", "opencv"):
        entry = registry.BACKENDS.points[name].value
        environments.install(registry.backend(name), entry, sys.executable, lambda line: None)
    there = digests("there")
    manifest = json.loads((tmp_path / "there" / "manifest.json").read_text())
    registry._worker.cache_clear()

    assert here == there
    worker = manifest["stacks"]["train"]["effective"]["details"]["worker"]
    assert worker == os.path.abspath(sys.executable)


def test_the_way_to_a_worker_is_not_latency(fragile):
    made = decoder(fragile, "raise")
    made.rgb(PICTURE)
    before, start = clock.excluded(), time.perf_counter_ns()
    made.rgb(PICTURE)
    whole = time.perf_counter_ns() - start

    assert 0 < clock.excluded() - before < whole


def test_a_worker_ends_with_its_parent_even_after_kill_9(fragile, tmp_path):
    code = """
import sys, os, time
from simulator.worker.client import Worker
from simulator.worker.home import Home
worker = Worker(Home("fragile", sys.executable, "fragile:BACKEND"))
worker.call("make", "decode", 0, {"exif": "ignore", "idct": "raise"})
print(worker._process.pid, flush=True)
time.sleep(600)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env)
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()

    deadline = time.monotonic() + 600
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_interpreter_that_is_not_there(fragile):
    backend = registry.backend(fragile)

    with pytest.raises(UserError, match="/no/python cannot be started"):
        environments.install(backend, "fragile:BACKEND", "/no/python", lambda line: None)


def test_an_adapter_that_does_not_load_is_said_at_installation(fragile):
    with pytest.raises(UserError, match="there is no module 'nowhere'"):
        environments.install(
            registry.backend(fragile), "nowhere:BACKEND", sys.executable, lambda line: None
        )


def test_a_backend_without_pinned_requirements_asks_for_an_interpreter(fragile):
    with pytest.raises(UserError, match="--python PATH"):
        environments.install(registry.backend(fragile), "fragile:BACKEND", None, lambda line: None)


def test_a_damaged_environment_file(fragile, cache):
    (cache / "environments" / "fragile" / "environment.json").write_text("{")

    with pytest.raises(RunError, match="try: simulate backends install fragile"):
        registry.home("fragile")


def test_removed_it_runs_here_again(fragile):
    environments.remove(fragile)

    assert registry.home(fragile) is None
    with pytest.raises(UserError, match="has no separate environment"):
        environments.remove(fragile)
