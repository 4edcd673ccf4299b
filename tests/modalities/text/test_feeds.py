"""What a network is fed, and where its outputs are: with a network whose logits are known."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from simulator.contract.text import Tokens
from simulator.errors import SampleError
from simulator.modalities.text.card import Names, TextInput
from simulator.modalities.text.front_end import Feed
from simulator.modalities.text.sections import Feeds
from simulator.testing.text_specimen import llama

ALL = Names(ids="i", mask="m", positions="p", types="t", lengths="n")
REQUESTS = st.lists(
    st.tuples(
        st.lists(st.integers(3, 49), min_size=1, max_size=9),
        st.lists(st.integers(3, 49), max_size=4),
    ),
    min_size=1,
    max_size=4,
)


def network(names=ALL, **more):
    return TextInput(vocabulary=50, max_length=64, pad=2, prefix=1, names=names, **more)


def feed(network=None, **changed):
    cut = {"longest": 64, "truncation_side": "left"}
    cut |= {key: changed.pop(key) for key in cut if key in changed}
    values = {
        "batch": "choices", "padding_side": "right", "mask": "honoured",
        "position_ids": "from_mask", "max_length": "model",
    }  # fmt: skip
    return Feed(network or globals()["network"](), Feeds(**(values | changed)), **cut)


def made(requests):
    return [Tokens((*context, *cont), len(context)) for context, cont in requests]


def several(inputs):
    return inputs if isinstance(inputs, tuple) else (inputs,)


def test_a_batch_by_hand():
    requests = made([([5, 6, 7], [8]), ([9], []), ([4], [3, 3])])

    right, left = (feed(padding_side=side).inputs(requests) for side in ("right", "left"))
    blind = feed(padding_side="left", mask="ignored").inputs(requests)

    assert right["i"].tolist() == [[5, 6, 7], [9, 2, 2], [4, 3, 2]]
    assert right["m"].tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert right["p"].tolist() == [[0, 1, 2], [0, 0, 0], [0, 1, 1]]
    assert left["i"].tolist() == [[5, 6, 7], [2, 2, 9], [2, 4, 3]]
    assert left["m"].tolist() == [[1, 1, 1], [0, 0, 1], [0, 1, 1]]
    assert left["p"].tolist() == [[0, 1, 2], [0, 0, 0], [0, 0, 1]]
    assert left["n"].tolist() == [3, 1, 2]
    assert left["t"].tolist() == [[0] * 3] * 3
    assert blind["m"].tolist() == [[1] * 3] * 3
    assert blind["p"].tolist() == [[0, 1, 2]] * 3
    assert {array.dtype for array in left.values()} == {np.dtype(np.int64)}


def test_positions_may_ignore_the_mask_that_is_honoured():
    found = feed(padding_side="left", position_ids="arange").inputs(made([([5, 6], []), ([7], [])]))

    assert found["m"].tolist() == [[1, 1], [0, 1]]
    assert found["p"].tolist() == [[0, 1], [0, 1]]


def test_the_network_gets_only_what_it_takes_and_its_constants():
    taken = network(Names(ids="x"), constants={"scales": [0.0, 1.0]})
    (found,) = feed(taken, batch="single").inputs(made([([5, 6], [])]))

    assert set(found) == {"x", "scales"}
    assert found["scales"].dtype == np.float32
    assert found["scales"].tolist() == [0, 1]


def test_rows_are_filled_up_to_a_length():
    requests = made([([5, 6], [7]), ([9], [])])

    for batch in ("choices", "single"):
        one = feed(batch=batch, pad_to=4, longest=4)
        assert [i["i"].shape[1] for i in several(one.inputs(requests))] == [4] * (
            1 if batch == "choices" else 2
        )
    with pytest.raises(SampleError, match="over-long"):
        feed(pad_to=2, longest=2, truncation_side="refuse").inputs(made([([5, 6, 7], [])]))


SIDE = st.sampled_from(["left", "right"])
BATCH = st.sampled_from(["choices", "single"])


@given(REQUESTS, SIDE, BATCH, st.sampled_from([None, 14]), SIDE, st.integers(4, 20))
def test_rows_say_which_logits_predict_the_continuation(
    requests, side, batch, pad_to, truncation, longest
):
    longest = min(longest, pad_to or longest)
    one = feed(
        padding_side=side, batch=batch, pad_to=pad_to, truncation_side=truncation, longest=longest
    )
    tokens = made(requests)

    inputs, rows = several(one.inputs(tokens)), one.rows(tokens)

    assert len(rows) == len(requests)
    for row, (context, continuation) in zip(rows, requests, strict=True):
        ids = inputs[row.inference]["i"][row.row]
        told = 1000 * np.arange(len(ids)) + ids  # a "logit" that says its position and its id
        seen = told[row.predicts] % 1000
        kept = row.tokens.ids[: row.tokens.start]
        assert row.tokens.scored == tuple(continuation)
        assert seen.tolist() == ([kept[-1], *continuation][: len(continuation)])
        mask = inputs[row.inference]["m"][row.row]
        real = ids[mask == 1].tolist()
        assert real == [*kept, *continuation][: len(real)]
        assert len(real) == len(kept) + max(len(continuation) - 1, 0)
        assert len(context) - len(kept) == row.tokens.cut


@pytest.fixture(scope="module")
def session():
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(llama(50).SerializeToString(), options)


@settings(max_examples=20, deadline=None)
@given(REQUESTS)
def test_padding_with_its_mask_honoured_changes_no_row(session, requests):
    taken = network(Names(ids="input_ids", mask="attention_mask"))
    tokens = made(requests)

    def logits(**changed):
        one = feed(taken, **changed)
        outputs = [session.run(None, dict(found))[0] for found in several(one.inputs(tokens))]
        return [
            outputs[row.inference][row.row][row.first : row.first + len(row.tokens.ids)]
            for row in one.rows(tokens)
        ]

    alone = logits(batch="single")
    for side, pad_to in product(("left", "right"), (None, 14)):
        lengths = [len(one) for one in alone]
        for want, got, length in zip(
            alone, logits(padding_side=side, pad_to=pad_to), lengths, strict=True
        ):
            np.testing.assert_allclose(got[:length], want, rtol=1e-4, atol=1e-4)


def test_the_mask_ignored_on_the_left_changes_rows(session):
    taken = network(Names(ids="input_ids", mask="attention_mask"))
    tokens = made([([5, 6, 7, 8], []), ([9], [])])

    honoured, ignored = (
        session.run(None, dict(feed(taken, padding_side="left", mask=mask).inputs(tokens)))[0][
            1, -1
        ]
        for mask in ("honoured", "ignored")
    )

    assert np.abs(honoured - ignored).max() > 0.1


def test_the_small_model_is_valid():
    onnx.checker.check_model(llama(50), full_check=True)
