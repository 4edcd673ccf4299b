"""Kills a run at random moments, resumes it, and compares the records; run as a script.

The script imports all libraries once and then forks, so that a kill costs no start of Python.
``python kills.py FOLDER CARD DATA COUNT SEED`` prints one line of JSON for each kill.
"""

import contextlib
import gc
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import cv2  # noqa: F401  imported before the fork, so that children start at once
import onnxruntime  # noqa: F401
import PIL.Image  # noqa: F401
import pyarrow.parquet as pq

from simulator import cli, registry
from simulator.cli import experiment, progress, resume  # noqa: F401
from simulator.experiments.compare import run  # noqa: F401
from simulator.report import page, terminal  # noqa: F401
from simulator.report.sections.section import PARTS

os.fsync = lambda number: None  # a kill is no power cut: what was written is kept


def child(arguments, log):
    """Run a command in a child process; return its id."""
    number = os.fork()
    if number == 0:
        with open(log, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            os._exit(cli.main([str(word) for word in arguments]))
    return number


def ended(number):
    """Wait for a child; return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def answers(folder):
    """The records without what differs from run to run."""
    table = pq.read_table(folder / "records.parquet")
    return table.drop_columns(["ns"]).to_pylist()


def main():
    """Kill, resume and compare, as often as was asked."""
    for name in registry.BACKENDS.points:
        registry.backend(name)
    list(PARTS)
    gc.freeze()  # else a child copies every page that its collector looks at
    folder, card, data, count, seed = sys.argv[1:]
    folder, rng = Path(folder), random.Random(int(seed))
    words = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", card, "--data", data]
    start = time.monotonic()
    whole = ended(child([*words, "--out", folder / "whole"], folder / "log"))
    assert whole == 0, (folder / "log").read_text()
    took, expected = time.monotonic() - start, answers(folder / "whole")
    for at in range(int(count)):
        out, log = folder / f"run{at}", folder / f"log{at}"
        number = child([*words, "--out", out], log)
        time.sleep(rng.uniform(0, 1.1) * took)
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        killed = ended(number)
        begun = (out / "manifest.json").is_file()
        code = ended(child(["resume", out], log))
        same = begun and code == 0 and answers(out) == expected
        said = log.read_text()[-500:]
        found = {"killed": killed, "begun": begun, "code": code, "same": same, "said": said}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
