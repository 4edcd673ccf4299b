"""Races that are killed in their midst, and go on."""

import json
import signal

import pyarrow.parquet as pq
from warm import ended

from simulator import cli

TIMED = ("seconds", "latency_ms")
"""Fields of a summary that differ from run to run."""


def killed_and_resumed(tmp_path, *command, below=".", folders=(".",)):
    """kill -9 after the first 32 samples are written; resumed, it must equal a run in whole.

    Args:
        tmp_path: where both runs go.
        command: without ``--out``.
        below: where in it the run is.
        folders: of the run, with records.
    """
    code = cli.main([*map(str, command), "--out", str(tmp_path / "whole")])
    folder, whole = tmp_path / "out" / below, tmp_path / "whole" / below
    done = ended(signal.SIGKILL, folder, "**/parts/*.parquet", 1, *command, "--out",
                 tmp_path / "out")  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (folder / "records.parquet").exists()

    assert cli.main(["resume", str(folder)]) == code

    for one in folders:
        assert records(folder / one) == records(whole / one)
    assert summary(folder) == summary(whole)


def records(folder):
    """What was recorded, but for latencies."""
    return pq.read_table(folder / "records.parquet").drop_columns("ns")


def summary(folder):
    """The summary, but for what differs from run to run."""
    found = json.loads((folder / "summary.json").read_text())
    found["verdict"].pop("next")  # names the folder
    return {name: value for name, value in found.items() if name not in TIMED}
