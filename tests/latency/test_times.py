"""Nanoseconds of rounds: totals, failures that are late for ever, and what stands in for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simulator.contract.stage import timed_steps
from simulator.latency.stream import Round
from simulator.latency.times import NEVER, Times, of_rounds, of_stages
from simulator.results.times import ABSENT

STAGES = timed_steps()
INFER, POST = STAGES.index("infer"), STAGES.index("postprocess")


def table(rounds, samples):
    return np.full((rounds, samples, len(STAGES)), ABSENT, np.int64)


def test_a_total_is_the_sum_of_the_stages_that_are_there():
    ns = table(2, 2)
    ns[..., INFER] = [[10, 20], [30, 40]]
    ns[..., POST] = [[1, 2], [3, ABSENT]]

    times = of_stages(ns, "log.csv")

    assert times.total.tolist() == [[11, 22], [33, 40]] and times.total.dtype == np.int64
    assert {name: values.tolist() for name, values in times.stages.items()} == {
        "infer": [[10, 20], [30, 40]], "postprocess": [[1, 2], [3, ABSENT]],
    }  # fmt: skip
    assert (times.rounds, times.failed, times.measured, times.source) == (2, 0, False, "log.csv")


def test_a_sample_without_any_stage_never_came():
    ns = table(2, 3)
    ns[..., INFER] = [[10, 20, 30], [40, 50, 60]]
    ns[1, 1] = ABSENT

    times = of_stages(ns)

    assert times.total.tolist() == [[10, 20, 30], [40, NEVER, 60]]
    assert times.failed == 1 and times.measured
    assert times.answered().tolist() == [10, 20, 30, 40, 60]
    assert times.answered("infer").tolist() == [10, 20, 30, 40, 60]
    assert times.late(10**18).tolist() == [[False] * 3, [False, True, False]]
    assert times.late(30).tolist() == [[False] * 3, [True, True, True]]
    assert times.late(39.5).tolist() == [[False] * 3, [True, True, True]]
    with pytest.raises(KeyError):
        times.answered("decode")


def test_the_longest_answer_so_far_stands_in_for_one_that_never_came():
    """And never one that comes later: rounds that are added change nothing of those before."""
    never = NEVER
    total = np.array([[never, never], [5, never], [7, 3], [never, 9], [never, never], [100, 1]])
    expected = [[0, 0], [5, 5], [7, 3], [9, 9], [9, 9], [100, 1]]

    assert Times(total, {}).finite().tolist() == expected
    for rounds in range(1, 7):
        assert Times(total[:rounds], {}).finite().tolist() == expected[:rounds]


totals = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 5), st.integers(1, 4)),
    elements=st.one_of(st.just(NEVER), st.integers(0, 10**15)),
)  # fmt: skip


@given(totals)
def test_nothing_but_failures_is_replaced(total):
    times = Times(total, {})
    found = times.finite()

    assert (found[total != NEVER] == total[total != NEVER]).all()
    assert found.max() <= max(times.answered().max(initial=0), 0)
    assert times.failed + times.answered().size == total.size


@given(totals, st.integers(0, 4), st.integers(1, 5))
def test_a_part_has_the_same_rows(total, at, length):
    part = Times(total, {"infer": total}, "x").split(at, length)

    assert part.total.tolist() == total.tolist()[at : at + length]
    assert part.stages["infer"].tolist() == part.total.tolist()
    assert part.source == "x"


def test_rounds_become_times_stack_by_stack():
    ns = np.arange(2 * 3 * 2 * len(STAGES)).reshape(3, 2, 2, len(STAGES))  # rounds, stacks, samples
    made = [Round(number, one, np.full((2, 2), "d"), {}, {}) for number, one in enumerate(ns)]

    first, second = of_rounds(made, [1, 1])

    assert first.total.tolist() == ns[:, 0].sum(axis=-1).tolist()
    assert second.total.tolist() == ns[:, 1].sum(axis=-1).tolist()
    assert second.stages["infer"].tolist() == ns[:, 1, :, INFER].tolist()
    assert of_rounds([], 2) == []
