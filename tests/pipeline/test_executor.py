"""The local executor: every sample once, in order, with bounded memory."""

import threading
import time

import numpy as np
import pytest
import steps
import tiny
from steps import ANSWER, Step

from simulator.contract.recipe import Chain
from simulator.data.folder import Item, load_folder
from simulator.data.labels import Labels
from simulator.errors import SampleError
from simulator.modalities.image.front_end import front_end
from simulator.model.card import Card
from simulator.pipeline.inference import Answered, inferred
from simulator.pipeline.threads import Budget
from simulator.profile.implementations import choose
from simulator.profile.load import load

DONE = Answered("digest", ANSWER)


@pytest.fixture
def items(tmp_path):
    return load_folder(tiny.data(tmp_path / "data", each=8), Labels(("red", "green", "blue"))).items


def chain(calls, *names):
    """Steps that note their name; the last one gives an answer."""

    def step(name, last):
        def apply(value, context):
            calls.append((name, context.item.name))
            size = len(value.data) if hasattr(value, "data") and name == names[0] else value
            return Answered(f"{size} {len(name)}", ANSWER) if last else f"{size}{name}"

        return Step(name, name, apply)

    return Chain(tuple(step(name, name == names[-1]) for name in names))


def test_shared_work_is_done_once_per_image(items):
    calls = []
    merged = steps.merged(
        chain(calls, "a", "b", "z"), chain(calls, "a", "b", "z"), chain(calls, "a", "c", "y")
    )

    done = steps.run(merged, items, 2)

    assert len(done) == len(items) == 24
    assert sorted(calls) == sorted((name, i.name) for name in "abczy" for i in items)
    assert all(d.outcomes[0] == d.outcomes[1] for d in done)


def test_the_order_of_stacks_does_not_matter(items):
    names = [("a", "b", "z"), ("a", "cc", "yy"), ("xx", "z")]

    there = steps.run(steps.merged(*(chain([], *n) for n in names)), items)
    back = steps.run(steps.merged(*(chain([], *n) for n in reversed(names))), items)

    for one, other in zip(there, back, strict=True):
        digests = [o.digest for o in one.outcomes]
        assert digests == [o.digest for o in reversed(other.outcomes)]


@pytest.mark.parametrize("workers", [1, 2, 4, 50])
def test_results_come_in_order_whatever_the_number_of_workers(items, workers):
    """The first samples are the slowest, so that threads would overtake each other."""
    slow = {item.name: 0.02 / (n + 1) for n, item in enumerate(items)}

    def apply(value, context):
        time.sleep(slow[context.item.name])
        return Answered(inferred({"y": np.frombuffer(value.data, np.uint8)}).digest, ANSWER)

    done = steps.run(steps.merged(steps.chain(("infer", apply))), items, workers)

    assert [d.item.name for d in done] == [item.name for item in items]
    assert len({d.outcomes[0].digest for d in done}) == len(items)


def test_real_stacks_give_the_same_bits_with_any_number_of_workers(items, card):
    made = Card(card)
    chains = []
    for name in ("pillow_fp32", "opencv_fp32"):
        profile = load(name)
        last = Step("infer", "as it is", lambda x, _: Answered(inferred({"y": x}).digest, ANSWER))
        chains.append(Chain((*front_end(profile, choose(profile), made.spec), last)))
    merged = steps.merged(*chains)

    results = [[d.outcomes for d in steps.run(merged, items, workers)] for workers in (1, 2, 4)]

    digests = [[[o.digest for o in outcomes] for outcomes in run] for run in results]
    assert digests[0] == digests[1] == digests[2]
    assert len({d for pair in digests[0] for d in pair}) > len(items)


def test_few_samples_are_held_at_once(items):
    """With two workers at most four are begun before the first is taken."""
    begun = []

    def apply(value, context):
        begun.append(context.item.name)
        return DONE

    results = steps.executor(2).run(steps.merged(steps.chain(("a", apply))), items)
    next(results)
    time.sleep(0.1)

    assert len(begun) <= 4
    results.close()


def test_a_consumer_that_stops_stops_the_rest(items):
    begun = []

    def apply(value, context):
        begun.append(context.item.name)
        return DONE

    for done in steps.executor(2).run(steps.merged(steps.chain(("a", apply))), items):
        assert done
        break
    count = len(begun)
    time.sleep(0.1)

    assert len(begun) == count < len(items)
    assert not [t for t in threading.enumerate() if t.name.startswith("sample")]


def test_a_sample_error_skips_one_and_says_where(items):
    def apply(value, context):
        if context.item is items[3]:
            raise SampleError("too dark")
        return DONE

    done = steps.run(steps.merged(steps.chain(("decode", apply))), items, 2)

    assert [d.skipped for d in done if d.skipped] == ["decode: too dark"]
    assert done[3].outcomes == ()


def test_any_other_error_is_not_swallowed(items):
    def apply(value, context):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        steps.run(steps.merged(steps.chain(("a", apply))), items, 2)


def test_an_unreadable_file_is_skipped(tmp_path):
    gone = Item("gone.jpg", tmp_path / "gone.jpg", None)

    (done,) = steps.run(steps.merged(chain([], "a")), [gone])

    assert done.skipped == "read: cannot be read: No such file or directory"
    assert done.outcomes == ()


def test_samples_wait_for_the_memory_that_they_need(items):
    """Each of 24 needs 60 of 100 bytes, so that four workers hold one at a time."""
    at_once, most = 0, 0
    lock = threading.Lock()

    def apply(value, context):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.002)
        with lock:
            at_once -= 1
        return DONE

    class Large(Step):
        def memory(self, source):
            return 60

    one = steps.executor(4, memory=100)
    one.modality = Weightless()
    done = list(one.run(steps.merged(Chain((Large("a", "a", apply),))), items))

    assert len(done) == 24 and most == 1


class Weightless(type(steps.IMAGE)):
    """Images whose libraries need no memory of their own."""

    def memory(self, source):
        return 0


def test_a_sample_that_needs_more_than_there_is_goes_alone():
    budget = Budget(10)
    with budget.take(1000):
        waiting = threading.Thread(target=lambda: budget.take(1).__enter__(), daemon=True)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join(5)
    assert not waiting.is_alive()


def test_what_a_watch_saw_comes_with_its_sample(items):
    """It looks at samples that went through, where they are walked, with their outcomes."""

    def apply(value, context):
        if context.item is items[1]:
            raise SampleError("no")
        return Answered(context.sample, ANSWER)

    def watch(walk, outcomes):
        return walk.context.sample, outcomes[0].digest, threading.current_thread().name

    plan = steps.merged(steps.chain(("a", apply)))
    done = list(steps.executor(2).run(plan, items, watch))

    assert done[1].seen is None
    for one in (done[0], *done[2:]):
        sample, digest, thread = one.seen
        assert sample == digest == one.item.name
        assert thread.startswith("sample")
