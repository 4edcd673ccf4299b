"""Nanoseconds of stages as a map column, from and to arrays."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.results.times import ABSENT, MAP, from_map, to_map, total

STEPS = ("decode", "infer", "denoise")
NS = st.one_of(st.just(ABSENT), st.integers(0, 2**63 - 1))


def test_a_row_has_the_stages_that_are_there():
    ns = np.array([[1, 2, ABSENT], [ABSENT] * 3, [ABSENT, 0, 5]])

    column = to_map(ns, STEPS)

    assert column.type == MAP
    assert column.to_pylist() == [
        [("decode", 1), ("infer", 2)], [], [("infer", 0), ("denoise", 5)],
    ]  # fmt: skip


def test_stages_come_in_the_order_that_is_asked_for():
    column = pa.array([[("a", 1), ("b", 2)], None, [("c", 3)]], MAP)

    assert {name: own.tolist() for name, own in from_map(column).items()} == {
        "a": [1, -1, -1], "b": [2, -1, -1], "c": [-1, -1, 3],
    }  # fmt: skip
    assert list(from_map(column, ["c", "x", "a"])) == ["c", "a"]


@pytest.mark.parametrize("rows", [[], [[]], [None, None]])
def test_where_nothing_was_timed_there_is_no_stage(rows):
    assert from_map(pa.array(rows, MAP)) == {}
    assert from_map(pa.chunked_array([], MAP)) == {}


@given(
    st.lists(st.tuples(NS, NS, NS), max_size=12),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(0, 12),
)
def test_what_goes_in_comes_out(rows, cuts, skipped):
    """However the column is cut into chunks and slices."""
    ns = np.array(rows, np.int64).reshape(-1, 3)
    whole = to_map(ns, STEPS)
    ends = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    chunks = [whole[a:b] for a, b in pairwise(ends)]

    for column, kept in (
        (whole, ns),
        (pa.chunked_array(chunks, MAP), ns),
        (whole[skipped:], ns[skipped:]),
    ):
        found = from_map(column, STEPS)
        there = [step for at, step in enumerate(STEPS) if (kept[:, at] != ABSENT).any()]
        assert list(found) == there
        for step in there:
            assert found[step].dtype == np.int64
            assert found[step].tolist() == kept[:, STEPS.index(step)].tolist()


def test_stages_add_up_without_those_that_a_row_lacks():
    stages = {"decode": np.array([1, ABSENT, ABSENT]), "infer": np.array([2, 3, ABSENT])}

    assert total(stages).tolist() == [3, 3, 0]
    assert total({}).tolist() == []
