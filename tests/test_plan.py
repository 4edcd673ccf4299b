"""The DAG of unique work, and its execution: once, in order, with bounded memory."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
import tiny

from simulator.data.folder import Item, load_folder
from simulator.data.labels import Labels
from simulator.errors import SampleError
from simulator.modalities.image.front_end import normalize, preprocessing
from simulator.model.card import Card
from simulator.pipeline.executor import ends, execute, run_sample
from simulator.pipeline.inference import inferred
from simulator.pipeline.plan import Step, plan
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.tasks.classification.answer import Answer

ANSWER = Answer(0, 1.0, 1.0)


@pytest.fixture
def items(tmp_path):
    return load_folder(tiny.data(tmp_path / "data", each=8), Labels(("red", "green", "blue"))).items


def chain(calls, *names, stage=None):
    """Steps that note their name; the last one gives an answer."""

    def step(name, last):
        def apply(value, sample):
            calls.append((name, sample.item.name))
            size = len(value.data) if hasattr(value, "data") and name == names[0] else value
            return (f"{size} {len(name)}", ANSWER) if last else f"{size}{name}"

        return Step(stage or name, [name], apply)

    return [step(name, name == names[-1]) for name in names]


def test_equal_chains_share_every_node():
    merged = plan([chain([], "a", "b", "c"), chain([], "a", "b", "c")])

    assert len(merged.nodes) == 3
    assert merged.paths == ((0, 1, 2), (0, 1, 2))
    assert merged.shared() == ["a", "b", "c"]


def test_chains_share_what_they_begin_alike_with():
    """An equal step after different ones is other work: its input is another."""
    merged = plan([chain([], "a", "b", "z"), chain([], "a", "c", "z")])

    assert [node.step.stage for node in merged.nodes] == ["a", "b", "z", "c", "z"]
    assert [node.parent for node in merged.nodes] == [None, 0, 1, 0, 3]
    assert [node.children for node in merged.nodes] == [2, 1, 0, 1, 0]
    assert merged.shared() == ["a"]


def test_one_stack_shares_with_nobody():
    assert plan([chain([], "a", "b")]).shared() == []


def test_shared_work_is_done_once_per_image(items):
    calls = []
    merged = plan([chain(calls, "a", "b", "z"), chain(calls, "a", "b", "z"),
                   chain(calls, "a", "c", "y")])  # fmt: skip

    done = list(execute(merged, items, 2))

    assert len(done) == len(items) == 24
    assert sorted(calls) == sorted((name, i.name) for name in "abczy" for i in items)
    assert all(d.outcomes[0] == d.outcomes[1] for d in done)


def test_the_order_of_stacks_does_not_matter(items):
    names = [("a", "b", "z"), ("a", "cc", "yy"), ("xx", "z")]

    there = list(execute(plan([chain([], *n) for n in names]), items, 1))
    back = list(execute(plan([chain([], *n) for n in reversed(names)]), items, 1))

    for one, other in zip(there, back, strict=True):
        digests = [o.digest for o in one.outcomes]
        assert digests == [o.digest for o in reversed(other.outcomes)]


@pytest.mark.parametrize("workers", [1, 2, 4, 50])
def test_results_come_in_order_whatever_the_number_of_workers(items, workers):
    """The first samples are the slowest, so that threads would overtake each other."""
    slow = {item.name: 0.02 / (n + 1) for n, item in enumerate(items)}

    def apply(value, sample):
        time.sleep(slow[sample.item.name])
        return inferred({"y": np.frombuffer(value.data, np.uint8)}).digest, ANSWER

    done = list(execute(plan([[Step("infer", ["i"], apply)]]), items, workers))

    assert [d.item.name for d in done] == [item.name for item in items]
    assert len({d.outcomes[0].digest for d in done}) == len(items)


def test_real_stacks_give_the_same_bits_with_any_number_of_workers(items, card):
    made = Card(card)
    chains = []
    for name in ("pillow_fp32", "opencv_fp32"):
        profile = load(name)
        steps = preprocessing(profile, choose(profile), made)
        last = Step(
            "infer", ["as it is"], lambda tensor, _: (inferred({"y": tensor}).digest, ANSWER)
        )
        chains.append([*steps, last])
    merged = plan(chains)

    results = [[d.outcomes for d in execute(merged, items, workers)] for workers in (1, 2, 4)]

    digests = [[[o.digest for o in outcomes] for outcomes in run] for run in results]
    assert digests[0] == digests[1] == digests[2]
    assert len({d for pair in digests[0] for d in pair}) > len(items)


def test_what_nobody_needs_any_more_is_dropped(items):
    """While the last step runs, the first one's value is gone."""
    alive = []

    class Big:
        pass

    def first(value, item):
        big = Big()
        alive.append(weakref.ref(big))
        return big

    def last(value, item):
        gc.collect()
        assert alive[-1]() is None
        return "digest", ANSWER

    steps = [
        Step("a", ["a"], first),
        Step("b", ["b"], lambda value, item: "small"),
        Step("c", ["c"], last),
    ]

    assert run_sample(plan([steps]), items[0]).skipped is None


def test_few_samples_are_held_at_once(items):
    """With two workers at most four are begun before the first is taken."""
    begun = []

    def apply(value, sample):
        begun.append(sample.item.name)
        return "digest", ANSWER

    results = execute(plan([[Step("a", ["a"], apply)]]), items, 2)
    next(results)
    time.sleep(0.1)

    assert len(begun) <= 4
    results.close()


def test_a_consumer_that_stops_stops_the_rest(items):
    begun = []

    def apply(value, sample):
        begun.append(sample.item.name)
        return "digest", ANSWER

    for done in execute(plan([[Step("a", ["a"], apply)]]), items, 2):
        assert done
        break
    count = len(begun)
    time.sleep(0.1)

    assert len(begun) == count < len(items)
    assert not [t for t in threading.enumerate() if t.name.startswith("sample")]


def test_a_sample_error_skips_one_and_says_where(items):
    def apply(value, sample):
        if sample.item is items[3]:
            raise SampleError("too dark")
        return "digest", ANSWER

    done = list(execute(plan([[Step("decode", ["d"], apply)]]), items, 2))

    assert [d.skipped for d in done if d.skipped] == ["decode: too dark"]
    assert done[3].outcomes == ()


def test_any_other_error_is_not_swallowed(items):
    def apply(value, sample):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(execute(plan([[Step("a", ["a"], apply)]]), items, 2))


def test_an_unreadable_file_is_skipped(tmp_path):
    gone = Item("gone.jpg", tmp_path / "gone.jpg", None)
    merged = plan([chain([], "a")])

    assert run_sample(merged, gone).skipped == "read: cannot be read: No such file or directory"
    assert ends(merged, gone) is None


def test_normalize_by_hand():
    """(10 - 4) / 2 = 3, (20 - 8) / 4 = 3, (30 - 6) / 8 = 3; BGR takes the last one first."""
    rgb = np.array([[[10, 20, 30], [4, 8, 6]]], np.uint8)
    mean, std = np.float32([4, 8, 6]), np.float32([2, 4, 8])

    nchw = normalize(rgb, mean, std, "rgb", "NCHW")
    nhwc = normalize(rgb, mean, std, "rgb", "NHWC")
    bgr = normalize(rgb, mean[::-1], std[::-1], "bgr", "NCHW")

    assert nchw.shape == (1, 3, 1, 2) and nhwc.shape == (1, 1, 2, 3)
    assert (nchw[0, :, 0, 0] == 3).all() and (nchw[0, :, 0, 1] == 0).all()
    np.testing.assert_array_equal(nhwc.transpose(0, 3, 1, 2), nchw)
    np.testing.assert_array_equal(bgr, nchw[:, ::-1])
    assert nchw.dtype == nhwc.dtype == np.float32


@pytest.mark.parametrize("mean", [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
def test_a_mean_of_zero_is_a_mean(tmp_path, mean):
    """Only a std must not be zero; a network that takes pixels / 255 has mean 0."""
    spec = {**tiny.SPEC["input"], "mean": mean, "std": [255.0, 255.0, 255.0]}
    profile = load("pillow_fp32")

    steps = preprocessing(profile, choose(profile), Card(tiny.card(tmp_path, input=spec)))

    assert steps[-1].stage == "normalize"
