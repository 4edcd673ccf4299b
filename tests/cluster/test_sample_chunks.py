"""Chunks of samples: their size, their order, and how a sample that kills is found."""

import threading

import pytest
import steps

from simulator.cluster.chunks import DEATHS, LONGEST, SECONDS, SPREAD, BatchMembers, Chunks
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.image.modality import IMAGE
from simulator.pipeline.batched import Batched


def test_chunks_grow_to_half_a_second():
    chunks = Chunks(1, 1000)
    first = chunks.take()
    chunks.done(first, ["a"], 0.01)
    chunks.pop()

    assert first == range(1)
    assert chunks.take() == range(1, 1 + round(SECONDS / 0.01))


def test_a_chunk_of_very_fast_samples_is_bounded():
    chunks = Chunks(1, 10**6)
    chunks.done(chunks.take(), ["a"], 0.0)

    assert len(chunks.take()) == LONGEST


def test_nobody_runs_far_ahead_of_the_sample_that_is_waited_for():
    chunks = Chunks(2, 1000)
    taken = [chunks.take() for _ in range(2 * SPREAD)]

    assert [len(one) for one in taken] == [1] * 8
    assert chunks.take() is None
    chunks.done(taken[1], ["b"], 100.0)
    assert chunks.take() is None
    chunks.done(taken[0], ["a"], 100.0)
    assert [chunks.pop(), chunks.pop()] == ["a", "b"]
    assert chunks.take() == range(8, 9)


def test_what_a_dead_worker_had_is_halved_until_the_sample_is_found():
    chunks = Chunks(1, 8)
    chunks.done(chunks.take(), ["0"], SECONDS / 7)
    deaths = 0
    while (chunk := chunks.take()) is not None:
        if 5 in chunk:
            deaths += 1
            chunks.died(chunk, "killed")
        else:
            chunks.done(chunk, [str(at) for at in chunk], SECONDS / 7 * len(chunk))

    # 7 samples, 4 or 3 of them, 2 or 1, and then alone as often as it takes.
    assert DEATHS < deaths <= 3 + DEATHS
    assert [chunks.pop() for _ in range(8)] == ["0", "1", "2", "3", "4", "killed", "6", "7"]


def test_a_sample_that_was_there_when_workers_were_killed_is_not_skipped_for_it():
    chunks = Chunks(1, 4)
    chunks.done(chunks.take(), ["0"], SECONDS / 3)
    for _ in range(DEATHS):  # three samples at first, of which one comes alone
        chunks.died(chunks.take(), "killed")

    assert chunks.take() == range(1, 2)


def test_who_waits_gets_what_a_dead_worker_had():
    chunks = Chunks(2, 1)
    chunk, found = chunks.take(), []
    waiting = threading.Thread(target=lambda: found.append(chunks.take(wait=True)))
    waiting.start()
    chunks.died(chunk, "killed")
    waiting.join()

    assert found == [chunk]


def test_who_waits_ends_with_the_run():
    chunks = Chunks(2, 1)
    chunks.take()
    waiting = threading.Thread(target=chunks.take, kwargs={"wait": True})
    waiting.start()
    chunks.close(UserError("the last node is lost"))
    waiting.join()

    with pytest.raises(UserError, match="the last node is lost"):
        chunks.pop()


def test_chunks_end_where_batches_end():
    """Of samples that begin in the middle of a batch, as those of a run that goes on."""
    chunks = Chunks(1, 14, step=4, place=2)
    sizes = []
    while (chunk := chunks.take()) is not None:
        sizes.append(len(chunk))
        chunks.done(chunk, list(chunk), SECONDS * len(chunk) / 7)
        for _ in chunk:
            chunks.pop()

    assert sizes == [2, 4, 4, 4]


def test_the_samples_that_share_a_batch_with_others():
    items = tuple(Item(str(at), None, None) for at in range(10))
    (network,) = steps.chain(("infer", steps.nothing)).recipes
    plan = steps.merged(*(Chain((Batched(network, size, False, IMAGE, items),)) for size in (2, 4)))
    members = BatchMembers(plan)

    assert (members.step, members.place(items[6:])) == (4, 2)
    assert members.of(items[4:8]) == []
    assert sorted(one.name for one in members.of([items[3], items[9]])) == ["0", "1", "2", "8"]
    assert BatchMembers(steps.merged(steps.answering())).of(items) == []
