"""The walker: what is computed, what is kept and dropped, and what is told of a sample."""

import gc
import weakref

import numpy as np
import pytest
import steps
from steps import ANSWER, Step

from simulator.contract.recipe import Boundary, Chain, Context
from simulator.errors import SampleError
from simulator.pipeline.inference import Answered
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.walk import StageError

DONE = Answered("digest", ANSWER)


class Big:
    """Something to be dropped."""


def walk(plan, source=None, say=None):
    return steps.opened(plan).walk(Context("s", source, None), say)


def counting(calls, name, value=None):
    """A step that notes that it ran."""

    def apply(given, context):
        calls.append(name)
        return value if value is not None else f"{given}{name}"

    return Step(name, name, apply)


def test_what_nobody_needs_any_more_is_dropped():
    """While the last step runs, the first one's value is gone."""
    alive = []

    def first(value, context):
        big = Big()
        alive.append(weakref.ref(big))
        return big

    def last(value, context):
        gc.collect()
        assert alive[-1]() is None
        return DONE

    walk(steps.merged(steps.chain(("a", first), ("b", lambda *_: "small"), ("c", last))))

    assert len(alive) == 1


def test_a_value_stays_until_its_last_taker_had_it():
    """Two chains take it; while the second does it is there, and afterwards it is not."""
    alive = []

    def first(value, context):
        alive.append(Big())
        return alive[-1]

    common = Step("a", "a", first)
    one, two = (Step(n, n, lambda value, _: type(value).__name__) for n in "bc")

    done = walk(steps.merged(Chain((common, one)), Chain((common, two))))
    held = weakref.ref(alive.pop())
    gc.collect()

    assert done.answers() == ["Big", "Big"]
    assert held() is None


def test_ends_and_what_asides_begin_from_are_kept():
    """Of a, b, c and the aside a, b, x the walk keeps b and c, and drops a."""
    made = {}

    def making(name):
        def apply(value, context):
            big = Big()
            made[name] = weakref.ref(big)
            return big

        return Step(name, name, apply)

    a, b, c = (making(name) for name in "abc")
    x = Step("x", "x", lambda value, _: value is made["b"]())

    done = walk(steps.merged(Chain((a, b, c)), asides={"x": Chain((a, b, x))}))
    gc.collect()

    assert [made[name]() is not None for name in "abc"] == [False, True, True]
    assert done.answers() == [made["c"]()]
    assert done.aside("x") is True


def test_an_aside_is_computed_on_demand_and_reuses_what_is_there():
    calls = []
    a, b, x, y = (counting(calls, name) for name in "abxy")
    plan = steps.merged(
        Chain((a, b)), asides={"x": Chain((a, x)), "y": Chain((a, x, y)), "main": Chain((a, b))}
    )

    done = walk(plan, "s")
    assert calls == ["a", "b"]
    assert done.aside("y") == "saxy"
    assert done.aside("x") == "sax"
    assert done.aside("main") == "sab"

    assert calls == ["a", "b", "x", "y"]


def test_what_an_aside_needs_is_opened_on_its_first_use():
    """A library that only pictures need is not loaded where none are drawn."""
    loaded = []

    class Lazy(Step):
        def open(self, runtimes):
            loaded.append(self.name)
            return self.function

    plan = steps.merged(
        Chain((Lazy("a", "a", steps.nothing),)),
        asides={"x": Chain((Lazy("x", "x", steps.nothing),))},
    )
    there = steps.opened(plan)
    done = there.walk(Context("s", 1, None))
    assert loaded == ["a"]
    done.aside("x")
    there.walk(Context("t", 1, None)).aside("x")

    assert loaded == ["a", "x"]


def test_an_aside_that_fails_does_not_fail_the_sample():
    def fail(*_):
        raise SampleError("too odd")

    done = walk(
        steps.merged(steps.chain(("a", lambda *_: 1)), asides={"x": steps.chain(("x", fail))})
    )

    assert done.answers() == [1]
    for _ in range(2):
        with pytest.raises(StageError, match=r"^x: too odd$") as refused:
            done.aside("x")
        assert (refused.value.stage, refused.value.reason) == ("x", "too odd")
    assert done.answers() == [1]


def twins(one, other, calls):
    """A plan of two chains that end in the same network behind different steps."""

    def infer(value, context):
        calls.append(value)
        return DONE

    network = Step("infer", "net", infer, shares_equal_inputs=True)
    return steps.merged(
        *(Chain((counting([], name, made), network)) for name, made in (("a", one), ("b", other)))
    )


def test_equal_tensors_of_different_steps_are_inferred_once():
    """The values are equal, not the arrays; both arms count the one time that it took."""
    calls = []
    plan = twins(np.arange(1000.0), np.arange(1000.0), calls)

    done = walk(plan)

    assert len(calls) == 1
    assert done.answers() == [DONE, DONE]
    first, second = (done.times(path)["infer"] for path in plan.paths)
    assert first == second > 0


def changed(at):
    """A thousand numbers of which one is another."""
    found = np.arange(1000.0)
    found[at] += 1
    return found


def texts(ids, **more):
    """What a text's chain feeds: inputs by name."""
    return {
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, len(ids)), np.int64),
        **more,
    }


@pytest.mark.parametrize(
    ("one", "other", "inferences"),
    [
        *((np.arange(1000.0), changed(at), 2) for at in (0, 1, 500, 999)),  # looked at first or not
        (np.zeros((10, 20)), np.zeros((20, 10)), 2),  # of equal bytes
        (texts([1, 2]), texts([1, 2]), 1),
        (texts([1, 2]), texts([1, 3]), 2),
        (texts([1, 2]), texts([1, 2], token_type_ids=np.zeros((1, 2))), 2),
        ((texts([1]), texts([2])), (texts([1]), texts([2])), 1),
        ((texts([1]), texts([2])), (texts([2]), texts([1])), 2),
        ((texts([1]),), texts([1]), 2),
    ],
)
def test_equal_inputs_are_inferred_once_and_others_twice(one, other, inferences):
    calls = []
    walk(twins(one, other, calls))

    assert [calls[0] is one, len(calls)] == [True, inferences]
    assert inferences == 1 or calls[1] is other


def test_one_sample_knows_nothing_of_another():
    """The same tensors again are inferred again: nothing is kept between samples."""
    calls = []
    there = steps.opened(twins(np.ones(3), np.ones(3), calls))
    for name in "ab":
        there.walk(Context(name, None, None))

    assert len(calls) == 2


def test_inputs_are_kept_for_twins_under_the_same_condition_only():
    """Nothing is held of the condition before: memory does not grow with conditions."""
    made, alive = [], []

    def maker(start):
        def make(value, context):
            one = np.arange(start, start + 1000.0)
            made.append(weakref.ref(one))
            return one

        return make

    def infer(value, context):
        gc.collect()
        alive.append(sum(one() is not None for one in made))
        return DONE

    network = Step("infer", "net", infer, shares_equal_inputs=True)
    merged = plan({
        Arm(stack, condition): Chain((Step(stack, stack + condition, maker(at)), network))
        for at, condition in enumerate(("", "fog:1", "fog:2"))
        for stack in "ab"
    })  # fmt: skip

    walk(merged)

    assert alive == [1, 1, 1]


def test_a_shared_stage_counts_for_each_arm():
    busy = Step("decode", "d", lambda *_: steps.busy(2_000_000))
    mine, other = (Step("infer", n, lambda *_: steps.busy(1_000_000)) for n in "ab")
    plan = steps.merged(Chain((busy, mine)), Chain((busy, other)))

    done = walk(plan)
    one, two = (done.times(path) for path in plan.paths)

    assert one["decode"] == two["decode"] >= 2_000_000
    assert one["infer"] >= 1_000_000 and two["infer"] >= 1_000_000
    assert list(one) == ["decode", "infer"]


def test_steps_of_one_stage_are_added_up_and_untimed_ones_left_out():
    two = Chain(
        (
            *(Step("color", n, lambda *_: steps.busy(1_000_000)) for n in "ab"),
            Step("condition", "c", lambda *_: steps.busy(1_000_000), timed=False),
        )
    )
    plan = steps.merged(two)

    times = walk(plan).times(plan.paths[0])

    assert list(times) == ["color"] and times["color"] >= 2_000_000


def test_a_new_source_is_known_to_later_steps_only():
    """The first step and its neighbour see the file; what follows the condition sees its own."""
    seen = {}

    def noting(name):
        def apply(value, context):
            seen[name] = context.source
            return value

        return Step(name, name, apply)

    disturb = Step(
        "condition",
        "x",
        lambda source, _: source + " disturbed",
        gives=Boundary.SOURCE,
        timed=False,
    )
    under = Chain((noting("before"), disturb, noting("after"), noting("end")))

    done = walk(steps.merged(under, Chain((noting("other"),))), "file")

    assert seen == {
        "before": "file", "after": "file disturbed", "end": "file disturbed", "other": "file",
    }  # fmt: skip
    assert done.context == Context("s", "file", None)


def test_what_is_said_is_every_step_with_its_value():
    told = []
    plan = steps.merged(steps.chain(("a", lambda *_: 1), ("b", lambda value, _: value + 1)))

    walk(plan, say=lambda recipe, value: told.append((recipe.stage, value)))

    assert told == [("a", 1), ("b", 2)]


def test_again_is_the_whole_way_once_more():
    calls = []
    done = walk(steps.merged(Chain((counting(calls, "a"), counting(calls, "b")))), "s")

    again = done.again()

    assert again.answers() == done.answers() == ["sab"]
    assert calls == ["a", "b", "a", "b"]
