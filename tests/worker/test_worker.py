"""Workers: the same answers, and one clear line for every way to die."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny
from unlucky import PICTURE, UNLUCKY, decoder, picture, with_worker

import simulator
from simulator import registry
from simulator.contract import SampleError, clock
from simulator.errors import ModelError, RunError, UserError
from simulator.worker import environments
from simulator.worker.client import TIMEOUT


def test_it_runs_in_another_process(fragile):
    made = decoder("raise")

    assert made.rgb(PICTURE).rgb.tolist() == np.full((8, 12, 3), 12).tolist()
    assert "fragile" in sys.modules  # listing imports the adapter here, decoding does not happen
    assert type(made).__name__ == "RemoteFragileDecoder"


UNREADABLE = "the fragile worker gave an answer that cannot be read: "


@pytest.mark.parametrize(
    ("idct", "line"),
    [
        ("islow", "the fragile worker was killed by SIGSEGV"),
        ("exit", "the fragile worker ended with exit code 7: out of luck"),
        ("refuse", "thirteen is unlucky"),
        ("raise", "FragileDecoder: two"),
        ("endless", f"{UNREADABLE}a line of more than 67,108,864 bytes"),
        ("objects", f"{UNREADABLE}an array of Python objects"),
        ("nonsense", f"{UNREADABLE}neither a value nor an error"),
        ("beyond", f"{UNREADABLE}1000000 bytes of a file of"),
    ],
)
def test_one_bad_sample_is_one_line_and_the_next_goes_through(fragile, idct, line):
    made = decoder(idct)

    for _ in range(2):
        with pytest.raises(SampleError) as caught:
            made.rgb(UNLUCKY)
        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value)
        assert made.rgb(PICTURE).rgb[0, 0, 0] == 12


def test_a_worker_that_died_between_two_calls_is_started_again(fragile):
    """As after Ctrl-C in a notebook, which halts every worker."""
    made = decoder("raise")
    with registry.interrupted():
        pass

    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12
    with registry.interrupted():
        pass
    assert decoder("raise").rgb(PICTURE).rgb[0, 0, 0] == 12


@pytest.mark.parametrize("idct", ["hang", "half"])
def test_a_worker_that_never_ends_its_answer_is_ended(fragile, monkeypatch, idct):
    made = decoder(idct)
    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12

    monkeypatch.setenv(TIMEOUT, "1")
    with pytest.raises(SampleError, match=f"did not answer within 1 s .set {TIMEOUT}"):
        made.rgb(UNLUCKY)

    monkeypatch.delenv(TIMEOUT)
    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12


def test_an_interrupted_call_does_not_leave_its_answer_to_the_next(fragile):
    """Ctrl-C while a worker is busy: the next answers belong to the next questions."""
    code = """
import select, signal
from types import SimpleNamespace
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
    done = with_worker(code, UNLUCKY, PICTURE, picture(15), PICTURE)

    said = done.stdout.read()
    assert said.splitlines() == ["interrupted", "stale", "[12, 15, 12]"], done.stderr.read()


def test_a_worker_whose_child_lives_on_is_seen_to_have_died(fragile, monkeypatch):
    """A forked child holds the socket open; the death of the worker itself is what counts."""
    monkeypatch.setenv(TIMEOUT, "300")
    made = decoder("fork")

    with pytest.raises(SampleError, match="was killed by SIGABRT"):
        made.rgb(UNLUCKY)


@pytest.mark.parametrize("does", ["time.sleep(600)", "worker.call('rgb', images[0], of=made)"])
def test_a_worker_ends_with_its_parent_even_after_kill_9(fragile, does):
    """Whether it waits or is busy."""
    code = f"import time; print(worker._process.pid, flush=True); {does}"
    parent = with_worker(code, UNLUCKY)
    worker = Path(f"/proc/{int(parent.stdout.readline())}/cmdline")
    time.sleep(0.5)
    parent.send_signal(signal.SIGKILL)
    parent.wait()

    deadline = time.monotonic() + 600
    while worker.exists() and worker.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_lies_in_the_current_folder_is_not_imported(fragile, tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise ImportError('not the real one')")
    monkeypatch.chdir(tmp_path)

    assert decoder("raise").rgb(PICTURE).rgb[0, 0, 0] == 12


def test_a_version_that_changed_since_installation_is_seen(fragile):
    stale = environments.Installed(sys.executable, {"fragile": "0.1"})
    environments.keep("fragile", stale)

    registry.require(registry.backend(fragile))

    assert registry.versions(registry.backend(fragile)) == {}


def test_a_worker_that_always_dies_is_given_up(fragile):
    made = decoder("islow")
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
    made = decoder("raise")
    made.rgb(PICTURE)
    before, start = clock.excluded(), time.perf_counter_ns()
    made.rgb(PICTURE)
    whole = time.perf_counter_ns() - start

    assert 0 < clock.excluded() - before < whole


@pytest.mark.parametrize(
    ("entry", "python", "said"),
    [
        ("fragile:BACKEND", "/no/python", "/no/python cannot be started"),
        ("nowhere:BACKEND", sys.executable, "there is no module 'nowhere'"),
        ("fragile:BACKEND", None, "--python PATH"),
    ],
)
def test_what_cannot_be_installed_is_said(fragile, entry, python, said):
    with pytest.raises(UserError, match=said):
        environments.install(registry.backend(fragile), entry, python, lambda line: None)


def test_a_damaged_environment_file(fragile, cache):
    (cache / "environments" / "fragile" / "environment.json").write_text("{")

    with pytest.raises(RunError, match="try: simulate backends install fragile"):
        registry.home("fragile")


def test_removed_it_runs_here_again(fragile):
    environments.remove(fragile)

    assert registry.home(fragile) is None
    with pytest.raises(UserError, match="has no separate environment"):
        environments.remove(fragile)
