"""What is kept of samples while they are walked: the worst flips, the controls, and no more."""

import json
import random
import shutil
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_recording
import tiny
import tiny_tasks
from hypothesis import given
from hypothesis import strategies as st
from stopping import StopsAt

from simulator import compare
from simulator.experiments.common import pair_of
from simulator.experiments.compare.run import differing
from simulator.experiments.moments import WORST
from simulator.experiments.observers import MOST, Ranking
from simulator.experiments.pictures.looks import IMAGES
from simulator.experiments.session import Session, Variant
from simulator.experiments.watch import pair_watch
from simulator.pipeline import executor
from simulator.pipeline.executor import SampleResult
from simulator.pipeline.local import LocalExecutor
from simulator.tasks.score import each

OVERRIDES = ("deploy.color.order=bgr", "deploy.resize=pil-nearest")
"""Red and blue change places, and a second axis differs."""


@pytest.fixture
def many(tmp_path):
    """45 images, of which the 30 that are not green flip, each as badly as its noise has it."""
    return tiny.data(tmp_path / "many", each=15)


@pytest.fixture(params=["classification", "detection"])
def task(request, card, many, tmp_path):
    """Card and data: of classes, which are shown only, and of 48 images of boxes, also drawn."""
    if request.param == "classification":
        return card, many
    data = tiny_tasks.data(tmp_path / "boxes", copies=12)
    return tiny_tasks.card(tmp_path / "detector"), data


def run(card, data, out, *overrides, **options):
    return compare(
        "pillow_fp32", "pillow_fp32", overrides=overrides or OVERRIDES, model=card, data=data,
        out=out, **options,
    )  # fmt: skip


def pictures(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for part in ("flips", "looks")
        for file in (folder / part).rglob("*.png")
    }


def told_of(folder):
    """All of the summary but what a clock says, and how many threads there were."""
    found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return {k: v for k, v in found.items() if k not in {"seconds", "workers", "latency_ms"}}


def worst(folder):
    """The names of the flips from the records alone, the worst first, else the earlier one.

    Of classes by the sum of both margins; of boxes by how many changed, then by their share.
    """
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    sides = {side: {r["sample"]: r for r in rows if r["side"] == side}
             for side in ("train", "deploy")}  # fmt: skip

    def bad(name):
        train, deploy = sides["train"][name], sides["deploy"][name]
        if "margin" in train:
            return -(train["margin"] + deploy["margin"])
        return -deploy["changed"], -deploy["changed"] / deploy["units"]

    return sorted((name for name, row in sides["deploy"].items() if row["changed"]), key=bad)


class Shuffled(LocalExecutor):
    """Samples become ready in another order than they began."""

    def context(self, item):
        time.sleep(random.Random(item.name).random() / 100)
        return super().context(item)


def seen_of(card, data, workers, left_out=(), quick=True, after=lambda watch: None):
    """Run a pair and return its watch and what came out; *left_out* after all are left out.

    *after* is called when all samples are through, before what is missing is made up for.
    """
    sides = pair_of("pillow_fp32", "pillow_fp32", OVERRIDES)
    with Session.open(card, data, None, 0, workers, None, None) as session:
        stacks = session.stacks([Variant(side, own, sides) for side, own in sides.items()])
        watch = pair_watch(session, stacks, differing(stacks), quick=quick)
        with watch.opened:
            merged, done = session.plan(stacks, watch.asides()), []
            for one in session.stream(merged, 0, watch):
                done.append(
                    SampleResult(one.item, (), "left out") if one.item.name in left_out else one
                )
                watch.keep(done[-1], done[-1].seen)
            after(watch)
            watch.complete(merged, [one.item for one in done if one.skipped is None])
    return watch, [one.item.name for one in done if one.skipped is None]


@pytest.mark.parametrize("workers", [1, 8])
def test_exactly_the_worst_flips_are_kept(task, cache, tmp_path, monkeypatch, workers):
    monkeypatch.setitem(executor.EXECUTORS._loaded, "local", Shuffled)
    ranked = worst(run(*task, tmp_path / "run").folder)
    assert len(ranked) > 2 * WORST

    watch, names = seen_of(*task, workers)

    kept = watch.seen.items()
    drawn = ranked[:WORST] if "flip" in {one.name for one in watch.pictures} else []
    assert {name for name, one in kept if "flip" in one} == {*drawn}
    assert {name for name, one in kept if "look" in one} == {*ranked[:IMAGES], *names[:IMAGES]}
    assert [name for name in names if "repeat" in watch.seen.get(name, {})] == names[:4]
    assert [name for name in names if watch.seen.get(name, {}).get("axes")] == names[:8]


def test_pictures_and_controls_do_not_depend_on_the_number_of_workers(
    task, cache, tmp_path, monkeypatch
):
    monkeypatch.setitem(executor.EXECUTORS._loaded, "local", Shuffled)

    first, *others = (run(*task, tmp_path / f"{n}", workers=n).folder for n in (1, 2, 8))

    assert [flip["sample"] for flip in told_of(first)["worst_flips"]] == worst(first)[:10]
    assert len(pictures(first)) > 2 * IMAGES
    for other in others:
        assert told_of(other) == told_of(first)
        assert pictures(other) == pictures(first)


@pytest.mark.parametrize("stop", [1, 20, 44])
def test_a_resumed_run_shows_what_an_uninterrupted_one_shows(task, cache, tmp_path, stop):
    """Flips of the first part are walked again for their pictures, and so are the controls."""
    whole = run(*task, tmp_path / "whole").folder
    with pytest.raises(KeyboardInterrupt):
        run(*task, tmp_path / "out", progress=StopsAt(stop))

    again = run(*task, tmp_path / "out", resume=True).folder

    assert told_of(again) == told_of(whole)
    assert pictures(again) == pictures(whole)


GREEN = ("deploy.resize=pil-nearest",)
"""Changes next to no answer, so that the first images are shown."""


@pytest.mark.parametrize("broken", [["blue/blue0.jpg"], [f"blue/blue{n}.jpg" for n in range(5)]])
def test_samples_that_are_skipped_are_stood_in_for(card, many, cache, tmp_path, broken):
    """What is shown and controlled is that of the same images without the broken ones."""
    for name in broken:
        (many / name).write_bytes(b"no JPEG")
    found = run(card, many, tmp_path / "run", *GREEN).folder
    for name in broken:
        (many / name).unlink()

    expected = run(card, many, tmp_path / "without", *GREEN).folder

    own, other = told_of(found), told_of(expected)
    assert own["skipped"] == len(broken)
    for part in ("controls", "axes", "worst_flips", "pictures"):
        assert own[part] == other[part]
    assert own["controls"]["self"]["samples"] == 4
    assert {axis["effect"]["samples"] for axis in own["axes"]} == {8}
    assert len(own["pictures"]) == IMAGES
    assert pictures(found) == pictures(expected)


def test_a_flip_that_is_left_out_after_all_makes_room_for_the_next(task, cache, tmp_path):
    """As an image of a sweep that a finished pair had left out."""
    ranked = worst(run(*task, tmp_path / "run").folder)
    out = {ranked[0], ranked[5]}

    watch, names = seen_of(*task, 2, left_out=out)

    rest = [name for name in ranked if name not in out]
    drawn = rest[:WORST] if "flip" in {one.name for one in watch.pictures} else []
    assert {name for name, one in watch.seen.items() if "flip" in one} == {*drawn}
    looked = {name for name, one in watch.seen.items() if "look" in one}
    assert looked >= {*rest[:IMAGES]} and not looked & out
    assert not out & {*names}


def test_records_of_an_image_that_is_gone_by_then_stay(card, data, cache):
    """As on a cluster, where flips are walked again for their pictures alone."""

    def lose(watch):
        watch.seen.clear()
        for file in data.rglob("*.jpg"):
            file.unlink()

    watch, _ = seen_of(card, data, 1, quick=False, after=lose)

    shown = [one["look"] for one in watch.seen.values() if "look" in one]
    assert len(shown) == IMAGES and all(look.notes for look in shown)
    items = watch.session.dataset.items
    swapped = watch.records.records("color")
    assert [one.name for one in watch.records.items] == [item.name for item in items]
    assert list(each(swapped, "changed")) == [int("green" not in item.name) for item in items]


class Counting(LocalExecutor):
    """Counts the samples that are read, and how often a plan is opened."""

    read, opened, lock = 0, 0, threading.Lock()

    def context(self, item):
        with self.lock:
            type(self).read += 1
        return super().context(item)

    def open(self, plan):
        type(self).opened += 1
        return super().open(plan)


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setitem(executor.EXECUTORS._loaded, "local", Counting)
    Counting.read = Counting.opened = 0
    return Counting


def test_nothing_is_run_after_an_undisturbed_run(card, many, cache, tmp_path, counting):
    """With flips, controls, axes, pictures and feature maps, every sample is read once."""
    model = tiny.card(tmp_path / "pooled", tiny.pooled())

    ceil = "train.graph.pooling.ceil_mode=ceil"
    found = told_of(run(model, many, tmp_path / "run", *OVERRIDES, ceil).folder)

    assert len(found["worst_flips"]) == WORST and found["pictures"][0]["maps"]
    assert (counting.read, counting.opened) == (45, 1)


@pytest.mark.parametrize("kept", [True, False])
def test_axes_alone_of_finished_samples_are_not_run_again(
    card, many, cache, tmp_path, counting, kept
):
    """Only the images shown and the controls are; all 30 where the axes' records are lost."""
    whole = told_of(run(card, many, tmp_path / "whole").folder)
    with pytest.raises(KeyboardInterrupt):
        run(card, many, tmp_path / "out", progress=StopsAt(30), workers=1)
    if not kept:
        shutil.rmtree(tmp_path / "out" / "alone")
    counting.read = 0

    again = run(card, many, tmp_path / "out", resume=True).folder

    assert told_of(again) == whole
    looked_at_again = counting.read - 15
    assert looked_at_again == 30 if not kept else 8 <= looked_at_again <= 8 + IMAGES
    assert not (again / "alone").exists()


def test_only_what_stands_in_is_walked_again(card, many, cache, tmp_path, counting):
    """With the first of 45 broken, the fifth stands in for a control, the ninth for an axis."""
    (many / "blue" / "blue0.jpg").write_bytes(b"no JPEG")

    run(card, many, tmp_path / "run")

    assert (counting.read, counting.opened) == (45 + 2, 2)


def test_a_sample_that_is_gone_by_then_costs_no_run(card, many, cache, tmp_path, monkeypatch):
    """Read once, it cannot be read again: a run is worth more than its controls."""
    (many / "blue" / "blue0.jpg").write_bytes(b"no JPEG")

    class Gone(Counting):
        def open(self, plan):
            if self.opened:
                for file in many.rglob("*.jpg"):
                    file.unlink()
            return super().open(plan)

    Counting.read = Counting.opened = 0
    monkeypatch.setitem(executor.EXECUTORS._loaded, "local", Gone)

    summary = told_of(run(card, many, tmp_path / "run").folder)

    assert summary["samples"] == 44
    assert summary["controls"]["self"] == {"samples": 4, "flips": 0, "bit_equal": False}


@pytest.mark.parametrize("workers", [1, 4])
def test_changes_whose_badness_nobody_knows_keep_their_order(card, many, cache, tmp_path, workers):
    """A device that told its answers alone: what the summary names first is what is shown."""
    names = test_recording.names(many)
    rows = [{"image": name, "prediction": at % 3} for at, name in enumerate(names)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "dump.parquet")
    manifest = test_recording.write(tmp_path, card, "predictions", "dump.parquet")

    overrides = test_recording.RECORDED.format(manifest), "deploy.resize=pil-nearest"

    found = told_of(run(card, many, tmp_path / "run", *overrides, workers=workers).folder)

    colors = {"blue": 2, "green": 1, "red": 0}
    flips = [row["image"] for row in rows
             if row["prediction"] != colors[row["image"].partition("/")[0]]]  # fmt: skip
    assert len(flips) == 30
    assert [flip["sample"] for flip in found["worst_flips"]] == flips[:WORST]
    assert [look["sample"] for look in found["pictures"]] == flips[:IMAGES]
    assert all(look["picture"] and look["train"] for look in found["pictures"])


entries = st.lists(st.floats(allow_nan=False), max_size=30)


@given(entries, st.randoms())
def test_a_ranking_does_not_depend_on_the_order_in_which_flips_come(values, rng):
    """Of equally bad ones the earlier sample is the worse."""
    expected = sorted(range(len(values)), key=lambda at: (-values[at], at))
    order = list(range(len(values)))
    rng.shuffle(order)
    ranking = Ranking()
    for at in order * 2:
        ranking.add(values[at], at)

    assert [ranking.add(values[at], at) for at in expected] == list(range(len(values)))
    assert ranking.top(5) == {*expected[:5]}
    for at in expected[:3]:
        ranking.forget(at)
    assert ranking.top(5) == {*expected[3:8]}


def test_a_ranking_of_many_flips_is_quick():
    """Of 20,000, each placed twice; in place of a time limit, no list is searched through."""
    ranking = Ranking()
    values = np.random.default_rng(0).random(20_000)
    for _ in range(2):
        places = [ranking.add(value, at) for at, value in enumerate(values)]

    ranks = np.argsort(np.argsort(-values, kind="stable"))
    assert places == np.minimum(ranks, MOST).tolist()
    assert ranking.top(3) == {*np.argsort(-values)[:3].tolist()}
