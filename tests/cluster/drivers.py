"""Commands on a cluster in processes of their own, and what they have written."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

PAIR = ("pillow_fp32", "opencv_fp32")
STACKS = ("--train", PAIR[0], "--deploy", PAIR[1])


def started(*command, executor="ray", **environment):
    """A command in a process of its own; it heeds signals that the tests were told to ignore."""
    heeding = ["env", "--default-signal=INT,HUP", sys.executable]
    words = [*heeding, "-m", "simulator.cli", *command, "--executor", executor]
    return subprocess.Popen(
        [str(word) for word in words], text=True, env={**os.environ, **environment},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(driver):
    """The exit code of a command, and what it said."""
    said = driver.communicate(timeout=300)[1]
    return driver.returncode, said


def parts(folder):
    return set(folder.glob("parts/*"))


def wait_for_more(driver, folder):
    """Wait until a command has done more samples."""
    before = parts(folder)
    while parts(folder) == before and driver.poll() is None:
        time.sleep(0.01)


def records(folder):
    """What a run has of each sample, but for latencies."""
    return pq.read_table(Path(folder) / "records.parquet").drop_columns(["ns"])
