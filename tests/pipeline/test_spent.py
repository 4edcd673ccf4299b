"""Where the time goes: each moment is counted once, and all of them are the wall time."""

import json
import threading
import time

import pytest

import simulator
from simulator import cli, spent
from simulator.command.options import Progress
from simulator.report.time import verdict
from simulator.results.manifest import Spent, TimeSpent
from simulator.spent import Row, Work, mark, phase, since, spending

TRAIN, DEPLOY = "pillow_fp32", "opencv_fp32"


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.ns = 1_000_000_000

    def passes(self, seconds):
        self.ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch):
    """The clock that a ledger of its own reads; the process's own time goes on."""
    found = Clock()
    monkeypatch.setattr(spent, "_ledger", spent._Ledger())
    monkeypatch.setattr(spent.time, "perf_counter_ns", lambda: found.ns)
    monkeypatch.setattr(spent.time, "perf_counter", lambda: found.ns / 1e9)
    return found


def rows(begun):
    wall, _, found = since(begun)
    assert sum(found.values()) == pytest.approx(wall)
    return {row.work: round(seconds, 6) for row, seconds in found.items()}


def test_inner_work_is_not_counted_twice(clock):
    begun = mark()
    with spending(Work.STATISTICS):
        clock.passes(3)
        with spending(Work.WRITING):
            clock.passes(2)
        clock.passes(1)
    clock.passes(4)

    assert rows(begun) == {Work.STATISTICS: 4, Work.WRITING: 2, Work.OWN: 4}


def test_work_as_a_whole_has_what_is_inside(clock):
    begun = mark()
    with spending(Work.MAKING, whole=True), spending(Work.READING):
        clock.passes(5)

    assert rows(begun)[Work.MAKING] == 5
    assert Work.READING not in rows(begun)


def test_what_a_step_leaves_out_is_of_the_block_around_it(clock):
    begun = mark()
    with spending(Work.READING), spending(Row(Work.STEPS, "infer", "train")) as step:
        clock.passes(5)
        step.left_out = 2_000_000_000

    assert rows(begun) == {Work.STEPS: 3, Work.READING: 2, Work.OWN: 0}


def test_threads_share_the_wall_time_of_a_phase(clock):
    """Of two cores for ten seconds, steps had 12 s and reading 4 s: 6 and 2 of ten, 2 idle."""
    begun = mark()

    def work():
        with spending(Row(Work.STEPS, "infer", "all")):
            clock.passes(6)
        clock.ns -= 6_000_000_000
        with spending(Work.READING):
            clock.passes(2)
        clock.ns -= 2_000_000_000

    with spending(Work.STATISTICS):
        clock.passes(1)
        with phase(2):
            for _ in range(2):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            clock.passes(10)

    assert rows(begun) == {
        Work.STEPS: 6, Work.READING: 2, Work.WAITING: 2, Work.STATISTICS: 1, Work.OWN: 0,
    }  # fmt: skip


def test_more_than_the_cores_can_do_is_scaled(clock):
    begun = mark()
    with phase(1):
        for _ in range(2):
            with spending(Work.READING):
                clock.passes(3)
            clock.ns -= 3_000_000_000
        clock.passes(3)

    assert rows(begun) == {Work.READING: 3, Work.OWN: 0}


def test_other_threads_outside_a_phase_take_no_wall_time(clock):
    begun = mark()

    def beside():
        with spending(Work.READING):
            time.sleep(0)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()

    assert rows(begun) == {Work.OWN: 0}


def test_a_run_says_where_its_time_went(card, data, cache, tmp_path):
    result = simulator.compare(
        TRAIN, DEPLOY, model=card, data=data, out=tmp_path / "run", workers=2, report=lambda at: at
    )

    found = TimeSpent.model_validate(
        json.loads((result.folder / "manifest.json").read_text())["time"]
    )
    assert sum(one.seconds for one in found.spent) == pytest.approx(found.seconds, rel=0.01)
    assert found.workers == 2
    steps = {(one.stage, one.stacks) for one in found.spent if one.work == "libraries"}
    assert {("infer", "train"), ("infer", "deploy"), ("infer", "aside")} <= steps
    works = {one.work for one in found.spent}
    assert {"reading", "repeats", "preparing", "writing", "statistics", "report"} <= works
    own = sum(one.seconds for one in found.spent if one.work == "libraries")
    assert found.libraries == pytest.approx(own / found.seconds, abs=0.01)


def test_a_step_that_both_stacks_share_is_of_both(card, data, cache, tmp_path):
    simulator.compare(
        TRAIN, TRAIN, overrides=["deploy.resize.interpolation=nearest"], model=card, data=data,
        out=tmp_path / "run", quick=True,
    )  # fmt: skip

    found = json.loads((tmp_path / "run" / "manifest.json").read_text())["time"]["spent"]
    assert ("decode", "all") in {(one["stage"], one["stacks"]) for one in found}


def test_a_resumed_run_tells_of_its_last_attempt(card, data, cache, tmp_path):
    class Stops(Progress):
        def advance(self, done, total):
            if done == 3:
                raise KeyboardInterrupt

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        simulator.compare(TRAIN, DEPLOY, model=card, data=data, out=out, progress=Stops())
    assert json.loads((out / "manifest.json").read_text())["time"] is None

    simulator.compare(TRAIN, DEPLOY, model=card, data=data, out=out, resume=True)

    assert json.loads((out / "manifest.json").read_text())["time"]["seconds"] > 0


@pytest.mark.parametrize(
    "command",
    [
        ["--train", TRAIN, "--deploy", DEPLOY],
        ["explain", "--train", TRAIN, "--deploy", DEPLOY],
        ["latency", "--profile", TRAIN, "--queries", "4"],
    ],
)
def test_the_command_line_prints_it_beside_the_json(command, card, data, cache, tmp_path, capsys):
    place = ["--model", str(card), "--data", str(data), "--out", str(tmp_path / "run"), "--json"]

    assert cli.main([*command, *place, "--explain-time"]) == 0

    printed = capsys.readouterr()
    json.loads(printed.out)
    assert "is the libraries' own work on samples;" in printed.err
    assert "start-up" in printed.err and "infer" in printed.err
    assert "samples in flight" in printed.err


def test_the_verdict_comes_first():
    found = TimeSpent(
        seconds=10.0, cpu_seconds=15.0, workers=2, libraries=0.8,
        spent=[
            Spent(work="libraries", stage="infer", stacks="all", seconds=8.0),
            Spent(work="reading", seconds=0.5), Spent(work="report", seconds=1.5),
        ],
    )  # fmt: skip

    assert verdict(found) == (
        "80 % of 10.00 s is the libraries' own work on samples; report 15 %, reading 5 %."
    )
