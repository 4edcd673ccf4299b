"""Workers that do harm, or hang: the parent lives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tiny
from unlucky import PICTURE, UNLUCKY, decoder

from simulator.errors import ProfileError
from simulator.worker.client import Worker
from simulator.worker.home import Home

HEARS = """
import signal, sys
from simulator import cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell's child is deaf
sys.exit(cli.main())
"""


def test_a_worker_cannot_cut_the_memory_that_the_parent_reads(fragile):
    """Reading a page that was cut off would end the parent with SIGBUS."""
    made = decoder("cut")

    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12
    assert made.rgb(UNLUCKY).rgb[0, 0, 0] == 13
    assert made.rgb(PICTURE).rgb[0, 0, 0] == 12


def test_problems_of_a_profile_are_not_spelt_letter_by_letter(fragile):
    """Constructors, where profiles are read, run in the worker too."""
    worker = Worker(Home("fragile", sys.executable, "fragile:BACKEND"))
    made = worker.call("make", "decode", 0, {"exif": "ignore", "idct": "profile"})

    with pytest.raises(ProfileError) as caught:
        worker.call("rgb", UNLUCKY, of=made)
    worker.stop()

    assert str(caught.value) == "one problem another"


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGHUP, pytest.param(signal.SIGTERM, marks=pytest.mark.prove)]
)
def test_a_run_ends_at_once_while_a_worker_hangs(fragile, tmp_path, card, data, number):
    """Both threads wait for the worker, for 120 s each, when the signal comes."""
    for name in ("unlucky0.jpg", "unlucky1.jpg", "unlucky2.jpg"):
        image = tiny.encoded(tiny.picture((220, 30, 40), (9, 13)))
        (data / "blue" / name).write_bytes(image)
    hanging = "deploy.decode={backend: fragile, exif: ignore, idct: hang}"
    command = [
        sys.executable, "-c", HEARS, "--train", "pillow_fp32", "--deploy", "pillow_fp32",
        "--set", hanging, "--model", card, "--data", data, "--out", tmp_path / "run",
        "--workers", "2",
    ]  # fmt: skip
    site = tmp_path / "site"
    path = os.pathsep.join([str(site), str(Path(__file__).parent), *sys.path])
    run = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    wait_until_it_hangs(run)
    run.send_signal(number)

    _, said = run.communicate(timeout=100)  # a hanging call takes 120 s

    assert run.returncode == 2
    assert "simulate resume" in said
    assert not workers_of(run.pid)


def workers_of(parent):
    """Process ids of the workers of a process, dead or alive."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            command = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"simulator.worker.serve" in command:
            found.append(int(place.name))
    return found


def wait_until_it_hangs(run):
    """Wait until a worker of the run sleeps in the sample that hangs: its time stands still."""
    import time

    last = None
    while run.poll() is None:
        time.sleep(1)
        try:
            (worker,) = workers_of(run.pid) or (None,)
            if worker is None or b"--fds" not in Path(f"/proc/{worker}/cmdline").read_bytes():
                continue
            now = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[11:13]
        except OSError:  # it has just ended: another begins
            continue
        if now == last:
            return
        last = now
    pytest.fail(f"the run ended by itself: {run.stderr.read()}")
