"""Two processes and one folder: the second is told who writes there, and nothing is mixed."""

import json
import os
import platform
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from stopping import StopsAt

from simulator import cli, compare
from simulator.command.options import Progress
from simulator.errors import RunError
from simulator.results.lock import LOCK, Lock

PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", "deploy.color.order=bgr")

WAITS = """
import sys
from simulator import cli
from simulator.cli.progress import Bar


def waits(bar, done, total):
    if done == 2:
        print("two are done", flush=True)
        sys.stdin.readline()


Bar.advance = waits
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def given(card, data, cache, tmp_path):
    return [*PAIR, "--model", str(card), "--data", str(data), "--out", str(tmp_path / "run")]


@pytest.fixture
def first(given):
    """A process that waits in the midst of a run into the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "two are done\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_the_second_is_told_who_writes_and_the_first_goes_on(given, first, tmp_path, capsys, more):
    folder = tmp_path / "run"

    assert cli.main([*given, *more]) == cli.USER_ERROR
    assert cli.main(["resume", str(folder)]) == cli.USER_ERROR

    said = capsys.readouterr().err
    who = f"{folder}: process {first.pid} on {platform.node()} writes here since 20"
    assert said.count(who) == 2
    first.communicate("\n")
    assert first.returncode == cli.PASS
    assert pq.read_metadata(folder / "records.parquet").num_rows == 2 * 6
    assert not (folder / LOCK).exists()


def test_the_lock_of_a_dead_process_is_taken_over_with_a_note(given, first, tmp_path, capsys):
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert (tmp_path / "run" / LOCK).is_file()

    assert cli.main(["resume", str(tmp_path / "run")]) == cli.PASS

    assert f"note {tmp_path / 'run'}: process {first.pid}, which" in capsys.readouterr().err
    assert not (tmp_path / "run" / LOCK).exists()


def test_an_audit_is_held_too(card, data, cache, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    document = tmp_path / "audit.yaml"
    document.write_text(
        "{schema: 1, name: a, summary: a, train: pillow_fp32, deploy: {same: pillow_fp32},"
        f" models: {{tiny: {{card: {card}}}}}, data: {data}, rules: none}}"
    )
    with Lock(tmp_path / "out", print):
        command = ["audit", str(document), "--out", str(tmp_path / "out"), "--overwrite"]
        assert cli.main(command) == cli.USER_ERROR

    assert f"process {os.getpid()} on " in capsys.readouterr().err
    assert cli.main(command) == cli.PASS


def test_the_lock_of_another_machine_is_not_taken(tmp_path):
    who = {"pid": 1, "host": "elsewhere", "since": "2026-01-01T00:00:00+0000"}
    (tmp_path / LOCK).write_text(json.dumps(who))

    with pytest.raises(RunError, match=r"process 1 on elsewhere writes here since 2026.*rm "):
        Lock(tmp_path, print)

    assert json.loads((tmp_path / LOCK).read_text()) == who


@pytest.mark.parametrize("content", ["", "{", "[1]", "[" * 3000, '{"pid": {}}'])
def test_a_lock_that_says_nothing_is_taken(tmp_path, content):
    (tmp_path / LOCK).write_text(content)

    with Lock(tmp_path, Progress().note), pytest.raises(RunError, match=str(os.getpid())):
        Lock(tmp_path, print)

    assert not (tmp_path / LOCK).exists()


def test_parts_of_another_run_are_left_out(card, data, cache, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        compare(
            "pillow_fp32", "opencv_fp32", model=card, data=data, out=folder, progress=StopsAt(3)
        )
    (part,) = (folder / "parts").glob("*.parquet")
    part.with_name("0123456789ab-000000003.parquet").write_bytes(part.read_bytes())

    assert cli.main(["resume", str(folder)]) == cli.PASS

    assert pq.read_metadata(folder / "records.parquet").num_rows == 2 * 6
