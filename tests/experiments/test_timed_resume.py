"""What goes wrong in the midst of a timed job, and how it goes on: for both of them."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from stopping import StopsAt
from timed_runs import IMAGES, JOBS, ROUNDS, Meanwhile, kept, shape, timed, written
from warm import ended

from backends.ort.runtime import OrtRuntime
from simulator import cli
from simulator.command.options import Progress
from simulator.errors import RunError, UserError

BOTH = pytest.mark.parametrize("command", JOBS)


pytestmark = pytest.mark.usefixtures("alone")


# What goes wrong in the midst of it


@BOTH
def test_an_image_that_goes_away_is_an_answer_that_never_came(card, data, tmp_path, command):
    """After the second of five rounds."""
    gone = Meanwhile(2 * IMAGES, (data / "red" / "red0.jpg").unlink)
    run = timed(command, model=card, data=data, out=tmp_path / "run", progress=gone)
    found = run.summary

    assert gone.acted and found["stacks"]["deploy"]["failed"] == 3
    (note,) = [line for line in map(str, found["warnings"]) if "failed" in line]
    assert "3 of 30" in note and "red/red0.jpg" in note and "No such file" in note
    rows = pq.read_table(run.folder / "latencies.parquet").to_pylist()
    lost = [row for row in rows if row["failed"] is not None]
    assert {row["sample"] for row in lost} == {"red/red0.jpg"} and len(lost) == 3
    assert all(row["digest"] is None and row["ns"] == [] for row in lost)
    assert found["latency_ms"]["deploy"]["total"]["max"] < 1e6, "no made-up time is in a figure"


class Unmounts(Progress):
    """All images are gone before the first round."""

    def __init__(self, data):
        self.data = data

    def say(self, what):
        if what.startswith("round 1 "):
            shutil.rmtree(self.data)


@pytest.mark.parametrize("lost", ["one before the rounds", "all"])
@BOTH
def test_an_image_that_no_round_has_is_named(card, data, tmp_path, command, lost):
    one = data / "red" / "red0.jpg"
    gone = Unmounts(data) if lost == "all" else Meanwhile(IMAGES, one.unlink)
    with pytest.raises(UserError, match=r"\.jpg" if lost == "all" else one.name) as caught:
        timed(command, model=card, data=data, out=tmp_path / "run", progress=gone)

    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "summary.json").exists()


class Counting:
    """Stands in for a runtime's own method; does something at one call."""

    def __init__(self, monkeypatch, at, act):
        self.calls, self.at, self.act = 0, at, act
        inner = OrtRuntime._run

        def run(runtime, feeds):
            self.calls += 1
            found = inner(runtime, feeds)
            return self.act(found) if self.calls == self.at else found

        monkeypatch.setattr(OrtRuntime, "_run", run)


def broken(_):
    raise RuntimeError("the driver\ndied")


def another(found):
    return {name: array + 1 for name, array in found.items()}


UNTIMED = IMAGES + 16
"""Inferences before the first round: of the pass that keeps the answers, and to warm up."""


@BOTH
def test_a_runtime_that_breaks_down_keeps_the_rounds_before(
    card, data, tmp_path, monkeypatch, command, capsys
):
    """In the third round. What then resumes the run has a runtime that is well."""
    with monkeypatch.context() as patch:
        Counting(patch, UNTIMED + 2 * IMAGES + 3, broken)
        with pytest.raises(UserError, match="the driver died") as caught:
            timed(command, model=card, data=data, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert len(kept(tmp_path / "run")) == 2

    assert cli.main(["resume", str(tmp_path / "run")]) == 0
    assert written(tmp_path / "run")["stacks"]["deploy"]["rounds"] == ROUNDS


@BOTH
def test_a_timed_answer_of_other_bits_is_told(card, data, tmp_path, monkeypatch, command):
    Counting(monkeypatch, UNTIMED + 8, another)
    found = timed(command, model=card, data=data, out=tmp_path / "run").summary

    (note,) = [line for line in map(str, found["warnings"]) if "bits" in line]
    assert note.startswith("deploy: 1 of 30 timed outputs have other bits")


# Interrupted runs


@pytest.mark.parametrize("stop", [1, 3 * IMAGES, ROUNDS * IMAGES])
@BOTH
def test_an_interrupted_run_goes_on_after_the_rounds_it_has(
    card, data, tmp_path, command, stop, capsys
):
    """In the untimed pass, in the third and in the last round; a round in work is lost."""
    inputs = {"model": card, "data": data, "workers": 1}
    whole = timed(command, **inputs, out=tmp_path / "whole").summary
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        timed(command, **inputs, out=folder, progress=StopsAt(stop))
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"
    assert not (folder / "summary.json").exists()
    before = [pq.read_table(place) for place in sorted(folder.glob("rounds/*.parquet"))]
    assert len(before) <= max(0, stop // IMAGES)

    assert cli.main(["resume", str(folder), "--json"]) == 0

    found = written(folder)
    assert json.loads(capsys.readouterr().out) == found
    assert shape(found) == shape(whole)
    assert found["stacks"] == whole["stacks"]
    table = pq.read_table(folder / "latencies.parquet")
    assert table.num_rows == ROUNDS * IMAGES
    for number, old in enumerate(before):
        mine = [row for row in table.to_pylist() if row["round"] == number]
        assert mine == old.to_pylist()
    assert {place.name for place in folder.iterdir()} == {
        "report.html", *(place.name for place in (tmp_path / "whole").iterdir())
    }  # fmt: skip


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@BOTH
def test_a_process_that_ends_in_the_midst_of_a_round(card, data, tmp_path, command, how):
    """It has hundreds of rounds before it, and ends after three."""
    folder = tmp_path / "run"
    many = ["--queries", "3000"] if command == "latency" else ["--rounds", "500"]
    arguments = [
        command, "--profile", "pillow_fp32", *many, "--limit", "6", "--model", card,
        "--data", data, "--out", folder,
    ]  # fmt: skip
    done = ended(how, folder, "rounds/*.parquet", 3, *arguments)
    before = kept(folder)
    status = json.loads((folder / "manifest.json").read_text())["status"]

    assert len(before) == 3 and done.stdout == ""
    if how is signal.SIGINT:
        assert done.returncode == 2 and status == "interrupted"
        assert done.stderr.startswith("interrupted; ") and "Traceback" not in done.stderr
        assert "simulate resume" in done.stderr
    else:
        assert done.returncode == -signal.SIGKILL and status == "running"

    job, _ = JOBS[command]
    more = {"queries": 3000, "limit": 6} if command == "latency" else {"rounds": 500, "limit": 6}
    with pytest.raises(KeyboardInterrupt):
        job(
            ["pillow_fp32"], model=card, data=data, out=folder, resume=True, **more,
            progress=StopsAt((len(before) + 2) * IMAGES),
        )  # fmt: skip
    after = kept(folder)
    assert len(after) == len(before) + 1
    assert {name: after[name] for name in before} == before


@BOTH
def test_changed_images_are_not_resumed(card, data, tmp_path, command):
    inputs = {"model": card, "data": data, "out": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        timed(command, **inputs, progress=StopsAt(3 * IMAGES))
    (data / "red" / "red0.jpg").write_bytes((data / "red" / "red1.jpg").read_bytes())

    with pytest.raises(RunError, match="data changed since it was started"):
        timed(command, **inputs, resume=True)
    assert cli.main(["resume", str(tmp_path / "run")]) == 2
    assert len(kept(tmp_path / "run")) == 2


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("latency", {"queries": 12}),
        ("latency", {"queries": 300}),
        ("tail", {"rounds": 2}),
        ("tail", {"rounds": 9}),
        ("tail", {"rounds": "auto"}),
        ("tail", {"deadlines_ms": [3.0]}),
        ("tail", {"seed": 1}),
        ("tail", {"overrides": ["deploy.resize.interpolation=nearest"]}),
    ],
)
def test_a_run_that_was_asked_for_otherwise_is_not_resumed(card, data, tmp_path, command, changed):
    inputs = {"model": card, "data": data, "out": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        timed(command, **inputs, progress=StopsAt(4 * IMAGES))
    before = kept(tmp_path / "run")

    with pytest.raises(RunError, match="changed since it was started; start a new run"):
        timed(command, **inputs, resume=True, **changed)
    assert kept(tmp_path / "run") == before


@BOTH
def test_damaged_rounds_are_named_and_measured_anew_where_they_were_deleted(
    card, data, tmp_path, command, capsys
):
    """Of four rounds the second is damaged. A gap between rounds is no run to go on with."""
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        timed(command, model=card, data=data, out=folder, progress=StopsAt(5 * IMAGES))
    first, second, *rest = sorted(folder.glob("rounds/*.parquet"))
    assert len(rest) == 2
    second.write_bytes(second.read_bytes()[:100])

    def refused():
        assert cli.main(["resume", str(folder)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    line = refused()
    assert str(second) in line and "delete it" in line
    second.unlink()
    assert second.name in refused()
    for place in rest:
        place.unlink()
    before = pq.read_table(first).to_pylist()
    assert cli.main(["resume", str(folder)]) == 0

    rows = pq.read_table(folder / "latencies.parquet").to_pylist()
    assert sorted(row["round"] for row in rows) == [r for r in range(ROUNDS) for _ in range(IMAGES)]
    assert written(folder)["stacks"]["deploy"]["queries"] == len(rows)
    assert [row for row in rows if row["round"] == 0] == before


FULL = """
import resource, signal, sys
from simulator.errors import UserError
from timed_runs import Meanwhile, timed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def full():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

command, card, data, out = sys.argv[1:]
try:
    timed(command, model=card, data=data, out=out, progress=Meanwhile(18, full))
except UserError as error:
    print(error)
"""


@BOTH
def test_a_full_disk_keeps_the_rounds_before(card, data, tmp_path, command, capsys):
    """The kernel refuses to write past 1000 bytes from the third round on."""
    folder = tmp_path / "run"
    here = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", FULL, command, str(card), str(data), str(folder)],
        capture_output=True, text=True, env=here,
    )  # fmt: skip

    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert f"simulate resume {folder}" in line
    before = kept(folder)
    assert len(before) == 2

    assert cli.main(["resume", str(folder)]) == 0
    assert written(folder)["stacks"]["deploy"]["rounds"] == ROUNDS
