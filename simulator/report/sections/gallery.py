"""What the noise looks like: a few images as each network saw them, and their difference."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from simulator.contract import inspect
from simulator.errors import SampleError
from simulator.report.reading import Run
from simulator.report.rendering import LOOKS, PICTURES, render
from simulator.report.sections.section import Section, part
from simulator.report.words import figure, share
from simulator.results.pair import AxisPicture, Difference, FeatureMap, Look, PairSummary

SAME = "The pixels are the same"
STEPS = 8
"""The slider's last place: differences are shown times 2 to the power of 0 … 8."""
WIDE, MAP = 460, 232
"""Pixels of the page that a tensor's and a map's longer side may take, enlarged by a whole factor.
"""
_BRIGHT = 24
"""Levels to which the mean difference is brought at first, where the slider can."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture in the page.

    Attributes:
        source: its ``data:`` URI.
        width: columns of the file.
        height: rows of the file.
        factor: pixels of the page for one of the file's, each way.
    """

    source: str
    width: int
    height: int
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be held against the training stack's tensor.

    Attributes:
        label: what it is.
        words: a sentence with its numbers.
        shown: the tensor.
    """

    label: str
    words: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature map of both stacks.

    Attributes:
        words: where it is, and what differs.
        pictures: each with its caption.
    """

    words: str
    pictures: Sequence[tuple[str, Shown]]


@dataclass(frozen=True, slots=True)
class View:
    """One image.

    Attributes:
        name: of the sample.
        why: it was chosen.
        picture: the file as a stack decoded it.
        caption: of the picture.
        alone: a tensor that there is nothing to hold against, with its caption.
        train: the training stack's tensor, where there are choices.
        choices: what can be held against it, all of deployment first.
        start: the slider's place at first.
        features: maps of the network.
        notes: what to know of these pictures.
    """

    name: str
    why: str
    picture: Shown | None
    caption: str
    alone: tuple[str, Shown] | None
    train: Shown | None
    choices: Sequence[Choice]
    start: int
    features: Sequence[Feature]
    notes: Sequence[str]

    @property
    def sources(self) -> list[str]:
        """The training stack's tensor, the first choice, and what else is chosen, once each."""
        if self.train is None:
            return []
        first = [self.train.source, self.choices[0].shown.source]
        others = dict.fromkeys(choice.shown.source for choice in self.choices)
        return [*first, *(source for source in others if source not in first)]

    @property
    def bytes(self) -> int:
        """What its pictures take in the page."""
        shown = [self.picture, self.alone[1] if self.alone else None]
        shown += [picture for one in self.features for _, picture in one.pictures]
        return sum(map(len, (*self.sources, *(one.source for one in shown if one))))


@part(order=25)
def looks(run: Run) -> Section | None:
    """Return the worst flip as both networks saw it; None where a run has kept no image."""
    entries, kept = _kept(run)
    if not entries:
        return None
    notes = _reading(entries)
    notes += dict.fromkeys(words for entry in entries for words in entry.missing)
    if len(kept) < len(entries):
        notes.append(
            f"{len(kept)} of {len(entries)} images are shown, which is what a page has room for; "
            "all are in the run folder"
        )
    return Section(
        "looks",
        f"{_title(entries[0], kept)}: {_why(entries[0])}",
        "What did each network see, and what is different?",
        notes=notes,
        html=_filled(kept[:1]) if kept else None,
    )


@part(order=190)
def more_looks(run: Run) -> Section | None:
    """Return the other images that the page has room for, as the networks saw them."""
    _, kept = _kept(run)
    if len(kept) < 2:
        return None
    return Section(
        "more-looks",
        "More images as the networks saw them",
        "Is it the same on other images?",
        html=_filled(kept[1:], 2),
    )


def _title(first: Look, kept: Sequence[View]) -> str:
    return (
        SAME if kept and kept[0].alone and _equal(first.difference) else "What the noise looks like"
    )


def _equal(one: Difference | AxisPicture | None) -> bool:
    return one is not None and one.max == 0


def _why(first: Look) -> str:
    return f"the {first.why}" if first.why == "worst flip" else first.why


def _filled(views: Sequence[View], first: int = 1) -> Markup:
    return render("gallery.html.j2", views=views, steps=STEPS, first=first)


@lru_cache(maxsize=1)
def _kept(run: Run) -> tuple[Sequence[Look], Sequence[View]]:
    """What a run has kept, and what the page has room for: first whole, then without the axes."""
    entries = (run.summary.gallery or ()) if isinstance(run.summary, PairSummary) else ()
    kept: list[View] = []
    flips = run.summary.worst_flips if isinstance(run.summary, PairSummary) else ()
    room = LOOKS - (PICTURES if any(flip.preview for flip in flips) else 0)
    for entry in entries:
        whole = _view(run, entry)
        view = whole if whole.bytes <= room else _view(run, entry, alone=False)
        room -= view.bytes
        if room < 0:
            break
        kept.append(view)
    return entries, kept


def _view(run: Run, look: Look, alone: bool = True) -> View:
    """An image with all that was kept of it, or without what each axis does alone."""
    train, deploy = (_shown(run, look[side], WIDE) for side in ("train", "deploy"))
    choices = []
    if train:
        found: list[tuple[str, str, Difference | AxisPicture | None, Shown | None]] = [
            ("deploy", "all of deployment", look.difference, deploy)
        ]
        found += [
            (f"train with deploy's {axis}", f"{axis} alone", one, _shown(run, one.picture, WIDE))
            for axis, one in look.axes.items()
            if alone
        ]
        choices = [Choice(a, f"{b}: {_numbers(n)}", shown) for a, b, n, shown in found if shown]
    sole = next(((side, one) for side, one in (("train", train), ("deploy", deploy)) if one), None)
    if choices and train and all(_equal(one) for _, _, one, shown in found if shown):
        choices, sole = [], (f"train and deploy. {SAME}", train)
    return View(
        look.sample,
        look.why,
        _shown(run, look.picture),
        _caption(look),
        None if choices else sole,
        train if choices else None,
        choices,
        _start(look.difference.mean if look.difference else None),
        [one for one in (_feature(run, entry) for entry in look.maps if alone) if one],
        look.notes if alone else [*look.notes, "what each axis does alone is in the run folder"],
    )


def _caption(look: Look) -> str:
    scale = look.scale or 1
    return "the picture" if scale == 1 else f"the picture, each pixel the mean of {scale}×{scale}"


def _reading(entries: Sequence[Look]) -> list[str]:
    """How the pictures were made."""
    found = [
        "A tensor is shown in 8 bits: normalization undone by the training stack's mean and std, "
        "rounded to whole levels. Numbers are of the tensors themselves, all their values."
    ]
    windows = {(*one.size, *one.window) for one in entries if one.window}
    for height, width, rows, columns in sorted(windows):
        found.append(
            f"Of {height}×{width} the middle {rows}×{columns} are shown, as they are: nothing that "
            "is compared was resampled."
        )
    return found


def _numbers(one: Difference | AxisPicture | None) -> str:
    if one is None or one.values_changed is None:
        return "there are no numbers"
    if one.max == 0:
        return "no value differs"
    words = (
        f"{share(one.values_changed)} of values differ, mean {_three(one.mean)}, "
        f"max {_three(one.max)} level{'' if one.max == 1 else 's'}"
    )
    if one.max is not None and one.max < 0.5:
        words += "; under half a level, which a picture of whole levels cannot show"
    return words


def _start(mean: float | None) -> int:
    if not mean or not math.isfinite(mean):
        return STEPS // 2
    return min(STEPS, max(0, round(math.log2(_BRIGHT / mean))))


def _feature(run: Run, one: FeatureMap) -> Feature | None:
    captions = {
        "train": f"train, {_size(one.train_size)}",
        "deploy": f"deploy, {_size(one.deploy_size)}",
        "picture": f"difference, white is {one.peak:.3g}" if one.peak else "difference",
    }
    pictures = [(words, _shown(run, one[name], MAP)) for name, words in captions.items()]
    factor = min((shown.factor for _, shown in pictures if shown), default=1)
    found = [
        (words, Shown(shown.source, shown.width, shown.height, factor))
        for words, shown in pictures
        if shown
    ]
    return Feature(_feature_words(one), found) if found else None


def _feature_words(one: FeatureMap) -> str:
    train, deploy = one.train_size, one.deploy_size
    common = _size([min(pair) for pair in zip(train, deploy, strict=True)])
    where = "" if train == deploy else f" on the common {common}"
    which = "the first output that it changes" if one.first else "the last map of the network"
    words = [
        f"{one.axis} alone: {which}, of {one.node}, averaged over the channels from "
        f"{_three(one.low)} (black) to {_three(one.high)} (white), in FP32 by {one.by}.",
        f"{share(one.values_changed)} of the values differ{where}, mean "
        f"{_three(one.mean)}, max {_three(one.max)}."
        if one.max != 0
        else f"No value differs{where}.",
    ]
    for side, sign in (("train", 1), ("deploy", -1)):
        more = [max(sign * (a - b), 0) for a, b in zip(train, deploy, strict=True)]
        kinds = zip(more, ("row", "column"), strict=True)
        counts = [f"{n} {kind}{'' if n == 1 else 's'}" for n, kind in kinds if n]
        if counts:
            words.append(f"{' and '.join(counts)} only in {side}: orange in the difference.")
    if one.window:
        words.append(f"Of it {_size(one.window)} are shown.")
    return " ".join(words)


def _three(value: float | None) -> str:
    return figure(value, ".3g")


def _size(size: Sequence[int]) -> str:
    return "×".join(map(str, size))


def _shown(run: Run, path: Any, room: int = 0) -> Shown | None:
    """A picture of the run; None where there is none that could be one."""
    try:
        content = run.file(path) if isinstance(path, str) else None
        image = inspect(path, content) if content else None
    except (OSError, ValueError, SampleError):
        return None
    if content is None or image is None or image.format != "png":
        return None
    factor = max(1, room // max(image.width, image.height))
    source = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return Shown(source, image.width, image.height, factor)
