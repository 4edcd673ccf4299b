"""Requests as ids, against the rules of lm-evaluation-harness, written out here once more."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from simulator.contract.text import Passage, Request, Tokens
from simulator.errors import ModelError, SampleError
from simulator.modalities.text.pairs import Limits, fed, tokenized, truncated

LIMITS = Limits(256, 1)
SPACED = st.text(st.sampled_from("ab  \n"), max_size=12)


def words(text):
    """A tokenizer that joins a blank with the letter behind it, as BPE does."""
    ids, at = [], 0
    while at < len(text):
        pair = text[at : at + 2]
        width = 2 if pair in (" a", " b") else 1
        ids.append(2 + sum(map(ord, text[at : at + width])) % 250)
        at += width
    return ids


def tokens(*requests, encode=words, limits=LIMITS):
    return tokenized(Passage(requests, b""), encode, limits)


def harness(context, continuation):
    """``TemplateLM.loglikelihood`` and ``_encode_pair`` of lm_eval 0.4.13."""
    if context == "":
        alone = words(continuation)
        return ([1], alone) if alone[0] != 1 else (alone[:1], alone[1:])
    n_spaces = len(context) - len(context.rstrip())
    if n_spaces > 0:
        continuation = context[-n_spaces:] + continuation
        context = context[:-n_spaces]
    whole, first = words(context + continuation), words(context)
    return first, whole[len(first) :]


@given(SPACED, SPACED.filter(bool))
def test_pairs_are_split_as_by_the_harness(context, continuation):
    first, second = harness(context, continuation)

    if context and not first:  # the harness fails there; the prefix stands for it
        first = [1]
    if not second:
        with pytest.raises(SampleError, match="no tokens"):
            tokens(Request(context, continuation))
        return
    (found,) = tokens(Request(context, continuation))

    assert found.ids == (*first, *second)
    assert found.start == len(first)


def test_the_blank_moves_to_the_continuation():
    (found,) = tokens(Request("a ", "b"))

    assert found.ids == tuple(words("a b"))
    assert found.start == 1


def test_a_prefix_that_the_text_has_is_not_put_twice():
    (found,) = tokens(Request("", "b"), encode=lambda text: [1, 9])

    assert (found.ids, found.start) == ((1, 9), 1)


def test_a_context_alone_is_not_scored():
    (found,) = tokens(Request("ab"))

    assert found.start == len(found.ids) == 2
    assert fed(found) == found.ids
    assert tokens(Request(""))[0].ids == (1,)


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (Request("a", "x"), "request 0: the continuation becomes no tokens"),
        (Request("", "a"), "the context is empty, and the model card names no input.prefix"),
        (Request("x", "a"), "the context becomes no tokens"),
        (Request("x"), "the context becomes no tokens"),
    ],
)
def test_what_becomes_nothing_costs_the_sample(request_, told):
    def forgets_x(text):
        return words(text.replace("x", ""))

    with pytest.raises(SampleError) as error:
        tokens(request_, encode=forgets_x, limits=Limits(256, None))

    assert told in str(error.value)


def test_ids_of_another_model_are_refused():
    with pytest.raises(ModelError, match=r"knows 100 ids, and this is 253.*another model"):
        tokens(Request("a"), encode=lambda text: [253], limits=Limits(100, 1))
    with pytest.raises(SampleError, match="knows 100 ids"):
        tokens(Request("", ids=(5, 100)), limits=Limits(100, 1))
    with pytest.raises(SampleError, match="no tokenizer"):
        tokens(Request("a"), encode=None)
    assert tokens(Request("", ids=(5, 99)), encode=None)[0] == Tokens((5, 99), 2)


def test_choices_share_the_ids_of_their_context():
    asked = []

    def counting(text):
        asked.append(text)
        return words(text)

    tokens(*(Request("aa bb", f" {letter}") for letter in "ab"), encode=counting)

    assert sorted(asked) == ["aa bb", "aa bb a", "aa bb b"]


PARTS = st.tuples(
    st.lists(st.integers(2, 99), min_size=1, max_size=20),
    st.lists(st.integers(100, 199), max_size=8),
)


@given(PARTS, st.integers(1, 24))
def test_truncation_keeps_the_continuation(parts, longest):
    context, continuation = map(tuple, parts)
    whole = Tokens((*context, *continuation), len(context))
    if len(fed(whole)) <= longest:
        assert truncated(whole, longest, "refuse") == whole
        return
    with pytest.raises(SampleError, match="over-long"):
        truncated(whole, longest, "refuse")
    if len(continuation) > longest:
        for side in ("left", "right"):
            with pytest.raises(SampleError, match="are the continuation's"):
                truncated(whole, longest, side)
        return
    left, right = (truncated(whole, longest, side) for side in ("left", "right"))

    for found in (left, right):
        assert len(fed(found)) == longest
        assert found.scored == continuation
        assert found.cut == len(whole.ids) - len(found.ids)
    room = longest + (1 if continuation else 0)
    assert left.ids == whole.ids[-room:]  # lm_eval: (context + continuation)[-(max_length + 1):]
    assert right.ids[: right.start] == context[: right.start]
