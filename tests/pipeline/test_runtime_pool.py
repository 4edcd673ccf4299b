"""Opened runtimes: each once, the least recently used closed, and none that is in use."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from installing import installed

from simulator import registry
from simulator.contract import Stage
from simulator.errors import ModelError
from simulator.model.artifact import Artifact
from simulator.pipeline.runtimes import LIMIT, RuntimePool
from simulator.profile.implementations import Choice

ONE = np.ones(1, np.float32)


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """The runtime class of a backend that is installed for the time of a test."""
    points = {"simulator.backends": {"counted": "counted:BACKEND"}}
    with installed(monkeypatch, tmp_path / "site", points, Path(__file__).parent, name="counted"):
        from counted import CountedRuntime

        CountedRuntime.forget()
        yield CountedRuntime


def lease(pool, name):
    backend = registry.backend("counted")
    choice = Choice(Stage.RUNTIME, backend, backend.offers[0], {}, ())
    return pool.of(choice, Artifact(Path(name), name, "tflite"))


def use(pool, name):
    with lease(pool, name)() as runtime:
        assert runtime.run({"x": ONE})["x"].tolist() == [1]


def test_nothing_is_opened_before_its_first_use(counted):
    with RuntimePool() as pool:
        waiting = lease(pool, "a")
        assert counted.opened == []
        with waiting():
            assert counted.opened == ["a"] and len(pool) == 1
        use(pool, "a")

        assert counted.opened == ["a"] and counted.closed == []
    assert counted.closed == ["a"]


def test_many_threads_open_it_once(counted):
    start = threading.Barrier(8)

    def go(_):
        start.wait()
        for name in "abc":
            use(pool, name)

    with RuntimePool() as pool, ThreadPoolExecutor(8) as threads:
        list(threads.map(go, range(8)))

        assert sorted(counted.opened) == ["a", "b", "c"] and counted.closed == []


def test_the_least_recently_used_is_closed(counted):
    with RuntimePool(limit=2) as pool:
        for name in "abac":  # a was used after b
            use(pool, name)
        assert counted.closed == ["b"] and len(pool) == 2
        use(pool, "b")  # which is opened anew; now a is the oldest

        assert counted.opened == ["a", "b", "c", "b"]
        assert counted.closed == ["b", "a"]


def test_one_that_is_in_use_is_never_closed(counted):
    with RuntimePool(limit=1) as pool:
        with lease(pool, "a")() as one, lease(pool, "b")() as other:
            use(pool, "c")
            assert counted.closed == ["c"]
            for runtime in (one, other):
                assert runtime.run({"x": ONE})
        assert len(pool) == 1 and len(counted.closed) == 2


def test_thousands_pass_through_and_few_are_open(counted):
    with RuntimePool() as pool:
        for number in range(3000):
            use(pool, str(number))

        assert len(counted.opened) == 3000
        assert counted.most == len(pool) == LIMIT == 32
    assert len(counted.closed) == 3000


def test_threads_that_share_few_places_never_find_theirs_closed(counted):
    """Four threads go through twelve runtimes of which three may stay open."""

    def go(seed):
        for number in np.random.default_rng(seed).integers(12, size=300):
            use(pool, f"{number}")

    with RuntimePool(limit=3) as pool, ThreadPoolExecutor(4) as threads:
        list(threads.map(go, range(4)))

        assert len(pool) <= 3
        assert counted.most <= 3 + 2 * 4, "what is in use, and what is about to be closed"
    assert sorted(counted.opened) == sorted(counted.closed)


def test_a_plan_gets_the_room_that_it_needs(counted):
    """Else every sample would open every runtime anew."""
    with RuntimePool(limit=2) as pool:
        pool.make_room(5)
        pool.make_room(3)
        for _ in range(3):
            for name in "abcde":
                use(pool, name)

        assert counted.opened == list("abcde") and counted.closed == []


def test_what_cannot_be_opened_says_why_every_time(counted):
    with RuntimePool(limit=1) as pool:
        for _ in range(2):
            with pytest.raises(ModelError, match=r"^counted cannot open bad: it is bad$"):
                use(pool, "bad")
        use(pool, "a")

        assert counted.opened == ["a"]


def test_closing_closes_all_and_a_second_time_nothing(counted):
    pool = RuntimePool()
    for name in "abc":
        use(pool, name)
    pool.close()
    pool.close()

    assert counted.closed == ["a", "b", "c"] and len(pool) == 0
