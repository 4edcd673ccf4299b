"""Stacks drawn at random from a narrow space are recorded, and named by the search.

``tools/hidden_stacks.py`` does the same with all options that run here (docs/identify.md).
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny

from simulator.data.recording import load_recording
from simulator.experiments.session import Session
from simulator.identify import kit
from simulator.identify.run import ready, recorded_only, searched
from simulator.identify.space import Space, space
from simulator.model.card import Card
from simulator.testing import files

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import hidden

STACKS = 6
NARROW = {
    "decode": ("pillow exif=ignore", "turbojpeg idct=ifast chroma_upsampling=fancy",
               "ffmpeg swscale_flags=bicubic"),
    "resize": ("pillow interpolation=bilinear antialias=true",
               "opencv interpolation=area antialias=true",
               "opencv interpolation=bilinear antialias=false"),
    "geometry": ("model torchvision", "squash_crop 37 floor", "letterbox center 114 floor"),
    "encode": ("itu matrix=bt601 range=full chroma_downsampling=average", "opencv"),
    "convert": ("aipp preset=JPEG chroma_upsampling=nearest", "opencv"),
    "source": ("encode", "planes"),
    "odd_size": ("keep",),
    "format": ("rgb", "nv12"),
    "order": ("rgb", "bgr"),
    "normalize": ("model", "scaled to 0..1"),
}  # fmt: skip
KINDS = [("tensors", None), ("frames", "decode"), ("frames", "resize"), ("frames", "geometry"),
         ("outputs", None), ("predictions", None)]  # fmt: skip


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    return tiny.card(tmp_path_factory.mktemp("card"))


@pytest.fixture(scope="module")
def narrow(card):
    """Some options of the columns that tensors depend on."""
    whole = space("pillow_fp32", Card(card)).axes
    found = {
        axis: {name: option for name, option in whole[axis].items() if name in names}
        for axis, names in NARROW.items()
    }
    assert {axis: len(options) for axis, options in found.items()} == {
        axis: len(names) for axis, names in NARROW.items()
    }
    return Space("pillow_fp32", found)


@pytest.fixture(scope="module")
def images(card, tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for probe in kit.all_probes(Card(card).spec, small=True):
        if probe.name.startswith(("zone", "edges_420", "edges_444", "ramps")):
            (folder / probe.name).write_bytes(probe.data)
    return folder


def of(narrow, kind, after):
    """The columns that a kind depends on."""
    if after == "decode":
        return Space(narrow.base, {"decode": narrow.axes["decode"]})
    if kind != "frames":
        return narrow
    numbers = ("order", "normalize")
    return Space(narrow.base, {a: o for a, o in narrow.axes.items() if a not in numbers})


def identified(session, whole, kind, after, seed, folder):
    """Whether the best stack is the hidden one, and whether it reproduces the recording."""
    for picks in hidden.draws(whole, session.card, seed):
        manifest = hidden.record(session, whole.stack(picks), kind, folder / str(seed), after)
        if manifest:
            break
    own, *_ = recorded_only(session, load_recording(manifest))
    found, trials, _ = searched(own, *ready(own, load_recording(manifest), whole))
    truth = trials.key(tuple(picks[axis] for axis in whole.axes))
    return truth in {trials.key(point) for point in found.equal}, found.exact


@pytest.mark.parametrize(("kind", "after"), KINDS)
def test_hidden_stacks_are_named(cache, card, narrow, images, tmp_path, kind, after):
    """Tensors and frames: each is reproduced bit by bit, and the hidden one is among the equals."""
    whole = of(narrow, kind, after)
    with Session.open(card, images, None, 0, 1, None, None) as session:
        results = [
            identified(session, whole, kind, after, seed, tmp_path) for seed in range(STACKS)
        ]

    if kind in ("tensors", "frames"):
        assert results == [(True, True)] * STACKS
    else:  # a mean of each channel says less: most are found, and none is claimed that is not equal
        assert sum(exact for _, exact in results) >= STACKS // 2


def test_the_recording_of_a_stack_that_cannot_read_some_images(card, narrow, images, tmp_path):
    """TurboJPEG reads no PNG: it is left out, as a board would."""
    picks = {axis: next(iter(options)) for axis, options in narrow.axes.items()}
    picks |= {"decode": "turbojpeg idct=ifast chroma_upsampling=fancy", "format": "rgb"}
    with Session.open(card, images, None, 0, 1, None, None) as session:
        (item, *_) = session.dataset.items
        png = tmp_path / "a.png"
        png.write_bytes(files.png(np.zeros((9, 9, 3), np.uint8)))
        more = (*session.dataset.items, replace(item, name="a.png", path=png))

        manifest = hidden.record(
            session.subset(more), narrow.stack(picks), "tensors", tmp_path / "out"
        )

        found = load_recording(manifest)
        assert found.holds(item, ())
        assert not found.holds(more[-1], ())


def test_places_that_only_fit_together(card, images, tmp_path):
    """A nearest kernel after a squash of even rows: one axis alone, put right, is not nearer."""
    picks = {axis: names[0] for axis, names in NARROW.items()} | {
        "resize": "opencv interpolation=nearest antialias=false",
        "geometry": "squash_crop 37 dali",
        "encode": "sysnoise chroma_downsampling=average",
        "convert": "itu matrix=bt601 range=limited chroma_upsampling=nearest",
        "odd_size": "drop",
        "format": "nv12",
    }
    free = {"resize": "opencv", "geometry": "squash", "odd_size": ""}
    axes = {
        axis: {name: option for name, option in options.items()
               if (free[axis] in name if axis in free else name == picks.get(axis))}
        for axis, options in space("pillow_fp32", Card(card)).axes.items() if axis in picks
    }  # fmt: skip
    whole = Space("pillow_fp32", axes)
    with Session.open(card, images, None, 0, 1, None, None) as session:
        manifest = hidden.record(session, whole.stack(picks), "tensors", tmp_path)
        own, *_ = recorded_only(session, load_recording(manifest))

        found, _, _ = searched(own, *ready(own, load_recording(manifest), whole))

    assert found.exact
