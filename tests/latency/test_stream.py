"""Rounds in SingleStream: what is timed and what is not, in which order, and what is noted."""

import gc
import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import steps
import tiny
from steps import Step, answering, busy, nothing

from simulator.contract import clock
from simulator.contract.recipe import Chain
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError
from simulator.experiments.common import stacks_of
from simulator.experiments.session import Session, Variant
from simulator.latency import stream as module
from simulator.latency.stream import TURN, WARM_UP, Stream, pauses
from simulator.latency.times import NEVER, of_rounds
from simulator.results.times import ABSENT

STAGES = timed_steps()
MS = 1_000_000
DECODE, INFER, POST = (STAGES.index(name) for name in ("decode", "infer", "postprocess"))


@pytest.fixture
def items(tmp_path):
    """Make samples of any number, all of one small JPEG."""
    path = tmp_path / "one.jpg"
    path.write_bytes(tiny.encoded(tiny.picture((90, 20, 200), size=(8, 8))))
    return lambda count: [Item(f"{number:03}.jpg", path, None) for number in range(count)]


def measuring(stacks, items, seed=0):
    return Stream(steps.executor(), stacks, items, seed)


def log(name, seen):
    """A stack that notes which samples it saw."""
    return answering(("infer", lambda value, context: seen.append((name, context.sample))))


def turns(seen):
    """(stack, samples) of every turn: 33 samples each, as one is for settling, and 2 at the end."""
    sizes = [2, TURN + 1, TURN + 1]
    stacks, found, at = len({name for name, _ in seen}), [], 0
    while at < len(seen):
        size = sizes[-1 - len(found) // stacks]
        block, at = seen[at : at + size], at + size
        assert len({name for name, _ in block}) == 1
        found.append((block[0][0], [sample for _, sample in block]))
    return found


def test_a_stage_takes_what_its_work_takes(items):
    timed = answering(("decode", lambda *_: time.sleep(0.003)), ("infer", lambda *_: busy(5 * MS)))

    one = measuring([timed], items(3), seed=0).round(0)

    assert one.ns.shape == (1, 3, len(STAGES)) and one.ns.dtype == np.int64
    assert (one.ns[0, :, DECODE] >= 3 * MS).all()
    assert (one.ns[0, :, INFER] >= 5 * MS).all()
    assert one.digests.tolist() == [["d"] * 3] and not one.failed
    assert one.conditions["load"] >= 0 and one.conditions["preempted"] >= 0
    assert len(one.conditions["mhz"]) in (0, len(os.sched_getaffinity(0)))


def test_stages_that_a_stack_lacks_are_absent(items):
    one = measuring(
        [answering(("infer", nothing)), answering(("decode", nothing))], items(2), 0
    ).round(0)

    there = one.ns != ABSENT
    assert there.sum() == 4
    assert there[0, :, INFER].all() and there[1, :, DECODE].all()
    assert (one.ns[there] >= 0).all()


def test_steps_of_one_stage_are_added_up(items):
    two = answering(*[("resize", lambda *_: busy(2 * MS))] * 3)

    assert measuring([two], items(1), 0).round(0).ns.max() >= 6 * MS


def test_what_is_excluded_is_no_latency(items):
    """All work but 1 ms is no latency; what another thread excludes is none of ours."""
    excluded = []

    def work(*_):
        start = time.perf_counter_ns()
        time.sleep(0.04)
        excluded.append(time.perf_counter_ns() - start - MS)
        clock.exclude(excluded[-1])

    def elsewhere(*_):
        thread = threading.Thread(target=clock.exclude, args=(10**12,))
        thread.start()
        thread.join()

    stream = measuring([answering(("infer", work), ("decode", elsewhere))], items(2), 0)
    start = time.perf_counter_ns()
    one = stream.round(0)
    wall = time.perf_counter_ns() - start

    assert (one.ns[0, :, INFER] >= MS).all()
    assert one.ns[one.ns != ABSENT].sum() <= wall - sum(excluded)
    assert (one.ns[0, :, DECODE] >= 0).all() and not one.failed


def test_a_recorded_latency_longer_than_its_look_up_counts(items):
    """A negative exclusion adds time; 2 s that nobody waits for."""
    slow = answering(("infer", lambda *_: clock.exclude(-2_000 * MS)))

    assert (measuring([slow], items(1), 0).round(0).ns[0, :, INFER] >= 2_000 * MS).all()


def test_a_step_that_is_not_timed_is_not_counted(items):
    """Nor has it a clock that could go backwards."""
    quiet = Step("decode", "quiet", lambda *_: clock.exclude(10**12), timed=False)
    timed = Chain((quiet, *answering(("infer", nothing)).recipes))

    one = measuring([timed], items(1), 0).round(0)

    assert (one.ns[0, 0] != ABSENT).nonzero()[0].tolist() == [INFER]
    assert not one.failed


def test_a_clock_that_goes_backwards_is_a_failure_and_no_time(items):
    back = answering(("decode", nothing), ("infer", lambda *_: clock.exclude(10**12)))

    one = measuring([back], items(2), 0).round(0)

    assert (one.ns == ABSENT).all() and (one.digests == "").all()
    assert set(one.failed) == {(0, 0), (0, 1)}
    assert all(
        why.startswith("infer: the clock went backwards by 99") for why in one.failed.values()
    )


def test_a_sample_that_fails_in_one_round_only(items):
    """It is never answered there, and answered before and after."""
    broken = False

    def infer(value, context):
        if broken and context.sample == "001.jpg":
            raise SampleError("overheated")

    stream = measuring([answering(("infer", nothing)), answering(("infer", infer))], items(3), 0)
    rounds = []
    for number in range(3):
        broken = number == 1
        rounds.append(stream.round(number))

    assert [one.failed for one in rounds] == [{}, {(1, 1): "infer: overheated"}, {}]
    whole, other = of_rounds(rounds, [1, 1])
    assert (other.total == NEVER).nonzero()[0].tolist() == [1]
    assert (other.total == NEVER).nonzero()[1].tolist() == [1]
    assert (whole.failed, other.failed) == (0, 1)
    assert other.late(1e15).sum() == 1
    assert rounds[1].digests.tolist() == [["d"] * 3, ["d", "", "d"]]


def test_a_file_that_has_gone_is_a_failure_of_its_sample(items, tmp_path):
    gone = Item("gone.jpg", tmp_path / "gone.jpg", None)

    one = measuring([answering(("infer", nothing))], [*items(1), gone], 0).round(0)

    assert one.failed == {(0, 1): "read: cannot be read: No such file or directory"}


def test_a_runtime_that_refuses_ends_the_round(items):
    def infer(*_):
        raise ModelError("no")

    before = list(gc.callbacks)
    with pytest.raises(ModelError, match="no"):
        measuring([answering(("infer", infer))], items(2), 0).round(0)
    assert gc.callbacks == before


def orders(items, seed, rounds=3, count=70):
    seen = []
    stream = measuring([log("a", seen)], items(count), seed)
    found = []
    for number in range(rounds):
        seen.clear()
        stream.round(number)
        found.append([name for _, name in seen])
    return found


def test_the_order_is_another_in_every_round_and_the_same_again(items):
    first = orders(items, seed=4)

    assert all(sorted(order) == [f"{n:03}.jpg" for n in range(70)] for order in first)
    assert len({tuple(order) for order in first}) == 3
    assert orders(items, seed=4) == first
    assert orders(items, seed=5)[0] != first[0]


def test_a_round_alone_has_the_order_it_has_among_others(items):
    """As it must where a run is resumed."""
    seen = []
    measuring([log("a", seen)], items(70), 4).round(2)

    assert [name for _, name in seen] == orders(items, seed=4)[2]


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_stacks_take_turns_and_the_first_one_changes(items, names):
    """Of one sample more than two turns; each turn begins with one sample that is not timed."""
    seen, count = [], 2 * TURN + 1
    stream = measuring([log(name, seen) for name in names], items(count), 1)
    firsts = []
    for number in range(len(names)):
        seen.clear()
        stream.round(number)
        began = [name for name, _ in turns(seen)]
        firsts.append(began[:: len(names)])
        orders = {
            name: [one for own, samples in turns(seen) if own == name for one in samples[1:]]
            for name in names
        }
        assert len({tuple(order) for order in orders.values()}) == 1
        assert sorted(orders["a"]) == [f"{n:03}.jpg" for n in range(count)]
        assert [sorted(began[at : at + len(names)]) for at in range(0, len(began), len(names))] == [
            list(names)
        ] * 3
        assert all(samples[0] == samples[-1] for _, samples in turns(seen))

    cycle = [names[at % len(names)] for at in range(5)]
    assert firsts == [cycle[number : number + 3] for number in range(len(names))]


def test_settling_and_warm_up_are_in_no_record(items):
    """The first calls say that they took 1,000 s; nothing that is recorded did."""
    calls = []

    def slow_at_first(value, context):
        calls.append(context.sample)
        if len(calls) <= WARM_UP + 1:
            clock.exclude(-(10**12))

    two = [answering(("infer", slow_at_first)), answering(("infer", nothing))]
    stream = measuring(two, items(3))
    stream.warm_up()
    one = stream.round(0)

    assert len(calls) == WARM_UP + 1 + 3
    assert one.ns[0, :, INFER].max() < 10**12


def test_warm_up_goes_through_every_stack_and_forgives_failures(items):
    seen = []

    def fail(*_):
        seen.append("x")
        raise SampleError("cold")

    stream = measuring([log("a", seen), answering(("infer", fail))], items(3), 0)
    stream.warm_up()

    names = [f"{n % 3:03}.jpg" for n in range(WARM_UP)]
    assert seen == [("a", name) for name in names] + ["x"] * WARM_UP


def test_progress_is_told_turn_by_turn(items):
    told = []
    measuring([log("a", []), log("b", [])], items(TURN + 5), 0).round(0, told.append)

    assert told == [TURN, TURN, 5, 5]


def test_collections_of_garbage_are_counted(items):
    """Two of five samples force one; the one that is made before the round is none of it."""

    def infer(value, context):
        if context.sample in ("001.jpg", "003.jpg"):
            gc.collect()

    gc.disable()
    try:
        one = measuring([answering(("infer", infer))], items(5), 0).round(0)
    finally:
        gc.enable()

    told = one.conditions["collections"]
    assert (told["count"], told["samples"]) == (2, 2)
    assert 0 < told["longest_ms"] <= told["ms"] <= one.ns[0, [1, 3], INFER].sum() / MS


def test_pauses_add_up_and_leave_nothing_behind(monkeypatch):
    """Of 5, 2 and 1 ns by a clock of our own."""
    clock_says = iter([100, 105, 110, 112, 120, 121])
    told = SimpleNamespace(perf_counter_ns=lambda: next(clock_says))
    monkeypatch.setattr(module, "time", told)
    gc.disable()
    try:
        before = list(gc.callbacks)
        with pauses() as found:
            for _ in range(3):
                gc.collect()
        gc.collect()
    finally:
        gc.enable()

    assert (found.count, found.ns, found.longest) == (3, 8, 5)
    assert gc.callbacks == before


@pytest.fixture
def real(card, data, cache):
    """Two stacks of Pillow and ONNX Runtime, one of them resizes otherwise."""
    profiles = stacks_of(
        {"train": "pillow_fp32", "deploy": "pillow_bilinear_fp32"}, ["deploy.color.order=bgr"]
    )
    with Session.open(card, data, None, 0, 1, None, None) as session:
        made = session.stacks([Variant(side, own, profiles) for side, own in profiles.items()])
        yield made, session.dataset.items, session.executor


def test_real_stacks_answer_as_they_do_untimed(real):
    """Times of every stage that is there, no longer than the clock on the wall, and digests."""
    stacks, items, executor = real
    stream = Stream(executor, [one.chain for one in stacks], items, 0)
    stream.warm_up()
    start = time.perf_counter_ns()
    one = stream.round(0)
    wall = time.perf_counter_ns() - start
    other = stream.round(1)

    assert sum(int(times.total.sum()) for times in of_rounds([one], [1, 1])) < wall
    for which, own in enumerate(stacks):
        stages = {recipe.stage for recipe in own.chain.recipes}
        there = (one.ns[which] != ABSENT).all(axis=0)
        assert {stage for stage, is_there in zip(STAGES, there, strict=True) if is_there} == stages
        assert (one.ns[which][:, there] > 0).all()
    assert not one.failed
    assert (one.digests == other.digests).all()
    assert all(len(digest) == 32 for digest in one.digests.ravel())
    assert (one.digests[0] != one.digests[1]).all()


@pytest.mark.parametrize(
    ("offline", "expected"), [(False, [6, 6, 6, 15, 15, 15, 7]), (True, [6, 6, 6, 21, 21, 21, 28])]
)
def test_samples_of_a_query_have_its_latency(items, monkeypatch, offline, expected):
    """Samples take 1 to 7 ns and go in threes; in Offline, who is behind waits too."""
    took = {f"{at:03}.jpg": at + 1 for at in range(7)}
    stream = Stream(steps.executor(), [answering(("infer", nothing))], items(7), 0, [3], offline)
    one_by_one = Stream._answer

    def answer(self, which, index):
        ns, *others = one_by_one(self, which, index)
        ns[INFER] = took[self._items[index].name]
        return ns, *others

    monkeypatch.setattr(Stream, "_answer", answer)
    (times,) = of_rounds([stream.round(number) for number in range(3)], [3])

    assert times.total.tolist() == [expected] * 3
    assert times.answered().tolist() == [expected[0], expected[3], expected[6]] * 3


def test_queries_of_several_stacks_are_sent_whole():
    """Of 2 and of 3 samples; each round has its order of blocks of 6, and a last one of 1."""
    stream = Stream(steps.executor(), [answering(("infer", nothing))] * 2, range(13), 0, [2, 3])

    for number in range(5):
        turns = stream._turns(number)
        for which, size in enumerate((2, 3)):
            queries = [q for at, turn in turns if at == which for q in stream._queries(which, turn)]
            found = sorted(query.tolist() for query in queries)
            assert found == [list(range(at, min(at + size, 13))) for at in range(0, 13, size)]
