"""Tasks of texts, on logits that are worked out by hand."""

from __future__ import annotations

from math import log
from types import SimpleNamespace

import numpy as np
import pytest

from simulator.contract.text import Row, Tokens
from simulator.errors import ModelError, NotFinite, SampleError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.embedding.task import Embedding
from simulator.tasks.generation.greedy import Greedy
from simulator.tasks.generation.task import Generation, Written, parting
from simulator.tasks.multiple_choice.task import Chosen, MultipleChoice, MultipleChoiceImpact
from simulator.tasks.next_word.task import NextWord, Word, perplexity
from simulator.tasks.settings import Network
from simulator.tasks.text import scored

NETWORK = Network(None, SimpleNamespace(vocabulary=4, max_length=8))


def of(task, **output):
    return task(task.Output(**output), NETWORK)


def test_a_loglikelihood_is_the_sum_over_the_continuation_alone():
    """ids 3 | 1 2, the row padded by one on the left: positions 1 and 2 predict."""
    logits = np.zeros((4, 4))
    logits[1] = [0, log(5), 0, 0]
    logits[2] = [0, 0, log(2), log(3)]
    found = scored(logits, Row(0, 0, 1, Tokens((3, 1, 2), 1)))

    assert found.loglikelihood == pytest.approx(log(5 / 8) + log(2 / 7))
    assert (found.greedy, found.tokens) == (False, 2)


@pytest.mark.parametrize(
    ("tokens", "shape", "words"),
    [
        (Tokens((1, 2), 2), (2, 4), "the continuation has no token"),
        (Tokens((1, 2), 0), (2, 4), "no token stands before"),
        (Tokens((1, 2, 3), 1), (1, 4), "logits for 2 tokens expected, got 1"),
        (Tokens((1, 9), 1), (2, 4), "the id 9 is not one of 4 logits"),
    ],
)
def test_what_cannot_be_scored_is_one_line(tokens, shape, words):
    with pytest.raises((SampleError, ModelError), match=words):
        scored(np.zeros(shape), Row(0, 0, 0, tokens))


def test_a_vocabulary_that_is_too_small_is_refused_before_a_run():
    with pytest.raises(ModelError, match="has 3 logits, and the card's vocabulary 4 ids"):
        of(NextWord).check({"logits": (None, None, 3)})
    of(NextWord).check({"logits": (None, None, 4)})


def test_a_choice_that_fails_is_named():
    rows = (Row(0, 0, 0, Tokens((1, 2), 1)), Row(0, 1, 0, Tokens((1, 2), 2)))
    with pytest.raises(SampleError, match="choice 1: the continuation has no token"):
        of(MultipleChoice).decode({"y": np.zeros((2, 2, 4))}, None, rows)


@pytest.mark.parametrize(
    ("ids", "starts", "expected"),
    [(((1, 2), (1, 3)), (1, 1), ("c", "d")), (((1, 2), (3, 2)), (1, 1), ("b", "d"))],
)
def test_choices_are_told_in_words(ids, starts, expected):
    """By their continuations, and where these are the same by their contexts."""
    read = lambda some: "".join("abcd"[one] for one in some)  # noqa: E731
    rows = tuple(
        Row(0, at, 0, Tokens(one, start), text=read)
        for at, (one, start) in enumerate(zip(ids, starts, strict=True))
    )
    task = of(MultipleChoice)
    found = task.decode({"y": np.zeros((2, 1, 4))}, None, rows)

    assert found.texts == expected
    assert task.record(found, 0)["text"] == expected[0]


def test_acc_norm_divides_by_characters():
    found = Chosen((-4.0, -5.0, -6.0), (2, 5, 2))

    assert (found.answer, found.answer_norm, found.margin) == (0, 1, 1.0)
    assert Chosen((-4.0, -3.0)).answer_norm is None


def test_a_comparison_tells_shifts_and_which_margins_they_reach():
    task = of(MultipleChoice)
    pairs = [
        (Chosen((-1.0, -1.25)), Chosen((-2.0, -1.25))),  # flips; moved by 1 and 0
        (Chosen((-1.0, -9.0)), Chosen((-1.5, -9.5))),  # moved by 0.5 twice
    ]
    records = [task.records(pair, 0) for pair in pairs]
    sides = (task.score([row[side] for row in records], [0, 0]) for side in range(2))
    flips = task.compare(*sides, Resamples(2, number=8))["flips"]

    assert (flips["count"], flips["right_to_wrong"]) == (1, 1)
    assert (flips["mean_shift"], flips["max_shift"]) == (0.5, 1.0)
    assert (flips["margins_below_mean"], flips["margins_below_max"]) == (1, 1)


def test_perplexity_is_of_words():
    task = of(NextWord)
    records = [task.record(Word(True, value, (1,)), "w") for value in (-log(2), -log(8))]

    assert perplexity(records) == pytest.approx(4)
    assert perplexity([]) is None
    assert perplexity([task.record(Word(True, -800.0, (1,)), "w")]) is None


def test_a_faults_loss_is_of_the_golden_answers_margin():
    impact = MultipleChoiceImpact(of(MultipleChoice), None, Chosen((-1.0, -3.0)), 0)
    found = impact.judge(Chosen((-4.0, -3.5)))

    assert (found["sdc"], found["answer"], found["margin_loss"]) == (True, 1, 2.5)
    assert (found["right_to_wrong"], found["wrong_to_right"]) == (True, False)


STATES = np.array([[[9, 9], [1, 0], [0, 1]]] * 2, np.float32)


@pytest.mark.parametrize(
    ("pooling", "expected"), [("mean", (0.5, 0.5)), ("first", (1, 0)), ("last", (0, 1))]
)
def test_padding_is_not_pooled(pooling, expected):
    rows = tuple(Row(0, at, 1, Tokens((1, 2), 2)) for at in range(2))
    found = of(Embedding, pooling=pooling).decode({"y": STATES}, None, rows)

    assert found.vectors[0] == pytest.approx(np.array(expected) / np.linalg.norm(expected))


def test_nearest_texts_are_ordered_and_stacks_are_held_together():
    task = of(Embedding, pooling="none")
    rows = tuple(Row(0, at, 0, Tokens((1,), 1)) for at in range(3))
    one = task.decode({"y": np.array([[1.0, 0], [0, 1], [1, 1]])}, None, rows)
    other = task.decode({"y": np.array([[1.0, 0], [3, 3], [0, 2]])}, None, rows)
    first, second = task.records([one, other], 1)

    assert (one.order, other.order) == ((1, 0), (0, 1))
    assert (first["acc"], second["acc"], second["right_to_wrong"]) == (1.0, 0.0, 1)
    assert second["cosine"] == pytest.approx(1 / 2**0.5)
    assert task.more([], [second]) == {
        "min_cosine": second["cosine"],
        "mean_cosine": second["cosine"],
    }


def test_a_vector_of_zeros_has_no_direction():
    rows = tuple(Row(0, at, 0, Tokens((1,), 1)) for at in range(2))
    with pytest.raises(NotFinite, match="a vector of zeros"):
        of(Embedding, pooling="none").decode({"y": np.zeros((2, 3))}, None, rows)


def successor(feeds):
    """A network that says what follows an id: the next one, and 3 follows itself."""
    logits = np.zeros((*feeds["ids"].shape, 4), np.float32)
    for at, one in enumerate(feeds["ids"][0]):
        logits[0, at, min(one + 1, 3)] = 1
    return {"logits": logits}


def played(greedy, feeds, row):
    seen, steps = [], greedy.steps(feeds, (row,))
    given = next(steps)
    while True:
        seen.append(given)
        try:
            given = steps.send(successor(given))
        except StopIteration as end:
            return seen, [int(one["logits"].argmax()) for one in end.value]


NAMES = {"ids": "ids", "mask": "mask", "positions": "at"}


@pytest.mark.parametrize(
    ("ids", "mask", "first", "expected"),
    [
        ([0], [1], 0, ([0, 1], [1, 1])),
        ([0, 9, 9], [1, 0, 0], 0, ([0, 1, 9], [1, 1, 0])),
        ([9, 9, 0], [0, 0, 1], 2, ([9, 0, 1], [0, 1, 1])),
        ([9, 0], [1, 1], 1, ([9, 0, 1], [1, 1, 1])),
    ],
)
def test_a_token_is_put_where_padding_was(ids, mask, first, expected):
    arrays = {"ids": np.array([ids]), "mask": np.array([mask])}
    arrays["at"] = (arrays["mask"].cumsum(1) - 1).clip(0)
    greedy = Greedy(2, (), 8, NAMES)
    seen, written = played(greedy, (arrays,), Row(0, 0, first, Tokens((0,), 1)))

    assert written == [1, 2]
    assert (seen[1]["ids"][0].tolist(), seen[1]["mask"][0].tolist()) == expected
    last = np.flatnonzero(seen[1]["mask"][0])[-1]
    assert seen[1]["at"][0, last] == seen[0]["at"].max() + 1


@pytest.mark.parametrize(
    ("tokens", "stop", "longest", "expected"),
    [(5, (), 8, [1, 2, 3, 3, 3]), (5, (3,), 8, [1, 2, 3]), (5, (), 3, [1, 2, 3])],
)
def test_a_text_ends(tokens, stop, longest, expected):
    feeds = ({"ids": np.array([[0]])},)
    greedy = Greedy(tokens, stop, longest, {"ids": "ids"})

    assert played(greedy, feeds, Row(0, 0, 0, Tokens((0,), 1)))[1] == expected


def test_words_stand_in_their_place_after_so_many_tokens():
    """Pieces "a", " b", "c", " d": the words are "a", "bc", "d"; the right ones "a", "x", "d"."""
    pieces = ["a", " b", "c", " d"]
    task = Generation(Generation.Output(tokens=4, stop=[]), NETWORK)
    row = Row(0, 0, 0, Tokens((1,), 1), text=lambda ids: "".join(pieces[one] for one in ids))
    found = task.decode(({"logits": np.eye(4)[None]},), task.settings(None), (row,))
    record = task.record(found, "a x d y")

    assert (found.ids, found.after) == ((0, 1, 2, 3), (1, 3, 4))
    assert (record["words"], record["words_after"]) == (0.5, [1, 0, 4, 0])


def test_stacks_part_at_the_first_token_that_differs():
    assert parting((1, 2, 3), (1, 2, 4)) == 2
    assert parting((1, 2), (1, 2, 3)) == 2
    task = of(Generation, tokens=3, stop=[0])
    same, other = Written((1, 2), " a b"), Written((1, 3), "a c")
    first, second = task.records([same, other], "a b")

    assert (first["exact"], second["exact"], first["parting"], second["parting"]) == (1, 0, None, 1)
    timed = task.record(task.timed(same, [3_000_000, 1_000_000, 2_000_000]), None)
    assert (timed["first_token_ms"], timed["token_ms"]) == (3.0, 1.5)
    found = task.more([timed, timed], [first, second])
    assert (found["earliest_parting"], found["median_parting"]) == (1, 1.0)
    assert (found["train_first_token_ms"], found["deploy_token_ms"]) == (3.0, None)
