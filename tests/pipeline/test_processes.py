"""Short samples in other processes: the same results as on threads, whatever happens to these."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pytest
import steps
import tiny
from steps import ANSWER, Step

from simulator.contract.recipe import Chain
from simulator.data.folder import load_folder
from simulator.data.labels import Labels
from simulator.errors import SampleError
from simulator.modalities.image.front_end import front_end
from simulator.model.card import Card
from simulator.pipeline import local, processes
from simulator.pipeline.inference import Answered, inferred
from simulator.pipeline.walk import spent
from simulator.profile.implementations import choose
from simulator.profile.load import load

COUNT = 300
LEAST = 0.005
"""Seconds that a sample takes at least."""


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """300 samples of 24 files."""
    folder = tiny.data(tmp_path_factory.mktemp("short") / "data", each=8)
    files = load_folder(folder, Labels(("red", "green", "blue"))).items
    return tuple(
        replace(files[at % 24], name=f"{at:03} {files[at % 24].name}") for at in range(COUNT)
    )


@pytest.fixture
def short(monkeypatch):
    """Every sample is short, twenty are tried, and a process is worth its start for twenty.

    This process is slow, so that others come to theirs on a busy machine.
    """
    monkeypatch.setenv("SLOW", str(os.getpid()))
    monkeypatch.setattr(local, "TRIED", 20)
    monkeypatch.setattr(local, "EACH", 20)
    monkeypatch.setattr(local, "SHORT", 60.0)


@pytest.fixture
def started(monkeypatch):
    """The processes that a run has started."""
    found = []

    class Started(processes.SampleProcess):
        def __init__(self, task):
            super().__init__(task)
            found.append(self)

    monkeypatch.setattr(processes, "SampleProcess", Started)
    return found


def where(value, context):
    """An answer whose digest is the process that gives it."""
    process = str(os.getpid())
    time.sleep(0.02 if process == os.environ.get("SLOW") else LEAST)
    return Answered(process, ANSWER)


def ends(parent, at, value, context):
    """End the process at its first sample from one on, unless it started the others."""
    if int(context.sample[:3]) >= at and os.getpid() != parent:
        os._exit(1)
    return where(value, context)


def fails(kind, at, value, context):
    if context.sample.startswith(f"{at:03}"):
        raise kind("too dark")
    return where(value, context)


def digest(value, context):
    return Answered(inferred({"y": value}).digest, ANSWER)


def plan_of(function):
    return steps.merged(Chain((Step("infer", "one", function),)))


def ran_in(done):
    return {one.outcomes[0].digest for one in done if one.outcomes}


def test_real_stacks_give_the_same_bits_as_on_threads(items, card, short, started):
    made, chains = Card(card), []
    for name in ("pillow_fp32", "opencv_fp32"):
        profile = load(name)
        first = front_end(profile, choose(profile), made.spec)
        chains.append(Chain((*first, Step("infer", "as it is", digest))))
    merged = steps.merged(*chains)

    alone = steps.run(merged, items, 1)
    apart = list(steps.executor(3).run(merged, items, spent))

    assert len(started) == 2
    assert [one.item for one in apart] == list(items)
    assert [[o.digest for o in one.outcomes] for one in apart] == [
        [o.digest for o in one.outcomes] for one in alone
    ]
    assert all(one.seen > 0 for one in apart)


def test_samples_run_here_and_in_other_processes(items, short, started):
    done = steps.run(plan_of(where), items, 2)

    assert [one.item.name for one in done] == [item.name for item in items]
    assert len(ran_in(done)) == 1 + len(started) == 2
    assert str(os.getpid()) in ran_in(done)
    assert [one._process.returncode for one in started] == [0]


def test_long_samples_stay_on_threads(items, monkeypatch, short, started):
    monkeypatch.delenv("SLOW")
    monkeypatch.setattr(local, "SHORT", 0.001)

    done = steps.run(plan_of(where), items, 2)

    assert (ran_in(done), started) == ({str(os.getpid())}, [])


def test_what_cannot_be_sent_stays_on_threads(items, monkeypatch, short, started):
    monkeypatch.delenv("SLOW")

    def inner(value, context):
        return where(value, context)

    done = steps.run(plan_of(inner), items, 2)

    assert (ran_in(done), started) == ({str(os.getpid())}, [])


@pytest.mark.parametrize("at", [0, 250])
def test_samples_of_a_process_that_died_run_here(at, items, short, started):
    done = steps.run(plan_of(partial(ends, os.getpid(), at)), items, 2)

    assert [one.item.name for one in done] == [item.name for item in items]
    assert not [one.skipped for one in done if one.skipped]
    assert [one._process.poll() for one in started] == [1]


def test_a_sample_error_skips_one_and_says_where(items, short, started):
    done = steps.run(plan_of(partial(fails, SampleError, 150)), items, 2)

    assert {at: one.skipped for at, one in enumerate(done) if one.skipped} == {
        150: "infer: too dark"
    }
    assert started


def test_any_other_error_is_raised_at_its_sample(items, short, started):
    results = steps.executor(2).run(plan_of(partial(fails, ZeroDivisionError, 150)), items)
    done = []

    with pytest.raises(ZeroDivisionError, match="too dark"):
        done.extend(one.item.name for one in results)

    assert all(one._process.poll() is not None for one in started)


def test_a_consumer_that_stops_leaves_no_process(items, short, started):
    results = steps.executor(2).run(plan_of(where), items)
    for _ in range(200):
        next(results)

    results.close()

    assert [one._process.poll() is None for one in started] == [False]


def test_a_sample_that_needs_more_memory_than_a_share_runs_here(items, monkeypatch, short, started):
    monkeypatch.delenv("SLOW")
    merged = steps.merged(Chain((LargeStep("infer", "large", where),)))

    done = list(steps.executor(2, memory=2**20).run(merged, items))

    assert len(done) == COUNT
    assert (ran_in(done), len(started)) == ({str(os.getpid())}, 1)


class LargeStep(Step):
    """Needs all the memory that samples may need together."""

    def memory(self, source):
        return 2**20


def test_what_processes_spend_is_counted(items, short, started):
    """Samples that two workers share take half of their time by the clock."""
    from simulator.spent import Work, mark, since

    begun = mark()
    steps.run(plan_of(where), items, 2)
    wall, _, rows = since(begun)

    told = sum(seconds for row, seconds in rows.items() if row.work is Work.STEPS)
    assert COUNT * LEAST / 2 <= told <= wall


KILLED = """
import os, sys
sys.path[:0] = {path!r}
import steps, test_processes
from simulator.pipeline import local, processes
from simulator.data.folder import Item
from pathlib import Path
local.TRIED, local.EACH, local.SHORT = 20, 20, 60.0
items = [Item(str(at), Path({file!r}), 0) for at in range(100000)]
plan = test_processes.plan_of(test_processes.where)
for one in steps.executor(2).run(plan, items):
    if one.outcomes[0].digest != str(os.getpid()):
        print(one.outcomes[0].digest, flush=True)
        os.kill(os.getpid(), 9)
"""


def test_a_killed_run_leaves_no_process(items):
    code = KILLED.format(path=[one for one in sys.path if "tests" in one], file=str(items[0].path))
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    other = int(killed.stdout)

    for _ in range(600):
        try:
            os.kill(other, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("the other process goes on")
