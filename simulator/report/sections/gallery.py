"""What the noise looks like: a few images as each network saw them, and their difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from simulator.report.reading import Run
from simulator.report.rendering import LOOKS, PICTURES, render
from simulator.report.sections.embedded import Shown, png
from simulator.report.sections.section import Section, part
from simulator.report.words import answers, count, figure, share
from simulator.results.pair import PairSummary
from simulator.results.pictures import AxisPicture, Difference, FeatureMap, Look

SAME = "The pixels are the same"
STEPS = 8
"""The slider's last place: differences are shown times 2 to the power of 0 … 8."""
WIDE, MAP = 460, 232
"""Pixels of the page that a tensor's and a map's longer side may take, enlarged by a whole factor.
"""
_BRIGHT = 24
"""Levels to which the mean difference is brought at first, where the slider can."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be held against the training stack's tensor.

    Attributes:
        label: what it is.
        words: a sentence with its numbers.
        shown: the tensor.
        same: whether no value differs.
        unlike: whether it has another shape, so that nothing is subtracted.
    """

    label: str
    words: str
    shown: Shown
    same: bool
    unlike: bool


@dataclass(frozen=True, slots=True)
class View:
    """One image.

    Attributes:
        look: what the run has kept of it.
        answers: of both stacks, where it is one of the worst flips.
        picture: the file as a stack decoded it.
        alone: a tensor that there is nothing to hold against, with its caption.
        train: the training stack's tensor, where there are choices.
        choices: what can be held against it, all of deployment first.
        maps: of the network: where it is and what differs, and each picture with its caption.
        whole: whether all that was kept is here; without it, what each axis does alone is not.
    """

    look: Look
    answers: str
    picture: Shown | None
    alone: tuple[str, Shown] | None
    train: Shown | None
    choices: Sequence[Choice]
    maps: Sequence[tuple[str, Mapping[str, Shown]]]
    whole: bool

    @property
    def caption(self) -> str:
        """Of the picture."""
        scale = self.look.scale or 1
        mean = f", each pixel the mean of {scale}×{scale}" if scale > 1 else ""
        return f"the picture{mean}"

    @property
    def start(self) -> int:
        """The slider's place at first."""
        mean = self.look.difference.mean if self.look.difference else None
        if not mean or not math.isfinite(mean):
            return STEPS // 2
        return min(STEPS, max(0, round(math.log2(_BRIGHT / mean))))

    @property
    def notes(self) -> list[str]:
        """What to know of these pictures."""
        more = [] if self.whole else ["what each axis does alone is in the run folder"]
        return [*self.look.notes, *more]

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
        shown += [picture for _, pictures in self.maps for picture in pictures.values()]
        return sum(map(len, (*self.sources, *(one.source for one in shown if one))))


@part(order=25)
def looks(run: Run[PairSummary]) -> Section | None:
    """Return the worst flip as both networks saw it; None of equal pixels, and without images."""
    entries, kept = _kept(run)
    if not entries or _same(entries, kept):
        return None
    notes = [*_reading(entries), *dict.fromkeys(why for entry in entries for why in entry.missing)]
    if len(kept) < len(entries):
        notes.append(
            f"{len(kept)} of {len(entries)} images are shown, which is what a page has room for; "
            "all are in the run folder"
        )
    why = "the worst flip" if entries[0].why == "worst flip" else entries[0].why
    return Section(
        "looks",
        f"What the noise looks like: {why}",
        "What did each network see, and what is different?",
        notes=notes,
        html=render("gallery.html.j2", views=kept[:1], steps=STEPS, first=1) if kept else None,
    )


@part(order=190)
def more_looks(run: Run[PairSummary]) -> Section | None:
    """Return the other images that the page has room for; all where the pixels are the same."""
    entries, kept = _kept(run)
    same = _same(entries, kept)
    if not kept[not same :]:
        return None
    return Section(
        "more-looks",
        SAME if same else "More images as the networks saw them",
        "What did the networks see?" if same else "Is it the same on other images?",
        html=render("gallery.html.j2", views=kept[not same :], steps=STEPS, first=2 - same),
    )


def _same(entries: Sequence[Look], kept: Sequence[View]) -> bool:
    """Whether both networks saw the same pixels."""
    return bool(kept and kept[0].alone) and _equal(entries[0].difference)


@lru_cache(maxsize=1)
def _kept(run: Run[PairSummary]) -> tuple[Sequence[Look], Sequence[View]]:
    """What a run has kept, and what the page has room for: first whole, then without the axes."""
    entries = [one for one in run.summary.get("pictures", ()) if isinstance(one, Look)]
    flips = any(flip.preview for flip in run.summary.get("worst_flips", ()))
    room, kept = LOOKS - (PICTURES if flips else 0), list[View]()
    for entry in entries:
        view = _view(run, entry)
        view = view if view.bytes <= room else _view(run, entry, whole=False)
        room -= view.bytes
        if room < 0:
            break
        kept.append(view)
    return entries, kept


def _choice(what: str, label: str, shown: Shown, one: Difference | AxisPicture | None) -> Choice:
    unlike = one is None or one.mean is None
    return Choice(label, f"{what}: {_numbers(one)}", shown, _equal(one), unlike)


def _equal(one: Difference | AxisPicture | None) -> bool:
    return one is not None and one.max == 0


def _view(run: Run[PairSummary], look: Look, whole: bool = True) -> View:
    """An image with all that was kept of it, or without what each axis does alone."""
    train, deploy = png(run, look.train, WIDE), png(run, look.deploy, WIDE)
    held: list[Choice] = []
    if train and deploy:
        held.append(_choice("all of deployment", "deploy", deploy, look.difference))
    for axis, picture in look.axes.items() if train and whole else ():
        if shown := png(run, picture.picture, WIDE):
            label = f"train with deploy's {axis}"
            held.append(_choice(f"{axis} alone", label, shown, picture))
    alone = ("train", train) if train else ("deploy", deploy) if deploy else None
    if held and train and all(one.same for one in held):
        held, alone = [], (f"train and deploy. {SAME}", train)
    return View(
        look,
        answers(run.summary, look.sample),
        png(run, look.picture),
        None if held else alone,
        train if held else None,
        held,
        [
            (_of_map(feature_map), maps)
            for feature_map in look.maps
            if whole and (maps := _maps(run, feature_map))
        ],
        whole,
    )


def _reading(entries: Sequence[Look]) -> Iterator[str]:
    """How the pictures were made."""
    yield (
        "A tensor is shown in 8 bits: normalization undone by the training stack's mean and std, "
        "rounded to whole levels. Numbers are of the tensors themselves, all their values."
    )
    windows = {(*entry.size, *entry.window) for entry in entries if entry.window}
    for height, width, rows, columns in sorted(windows):
        yield (
            f"Of {height}×{width} the middle {rows}×{columns} are shown, as they are: nothing that "
            "is compared was resampled."
        )


def _numbers(one: Difference | AxisPicture | None) -> str:
    if one is None or one.mean is None:
        return "an input of another shape"
    if one.max == 0:
        return "no value differs"
    words = (
        f"{share(one.values_changed)} of values differ, mean {_three(one.mean)}, "
        f"max {_three(one.max)} level{'' if one.max == 1 else 's'}"
    )
    if one.max is not None and one.max < 0.5:
        words += "; under half a level, which a picture of whole levels cannot show"
    return words


def _maps(run: Run[PairSummary], one: FeatureMap) -> dict[str, Shown]:
    """The pictures of a map, all enlarged alike, by their captions."""
    captions = {
        f"train, {_size(one.train_size)}": one.train,
        f"deploy, {_size(one.deploy_size)}": one.deploy,
        f"difference, white is {one.peak:.3g}" if one.peak else "difference": one.picture,
    }
    found = {words: png(run, path, MAP) for words, path in captions.items()}
    factor = min((shown.factor for shown in found.values() if shown), default=1)
    return {words: one.enlarged(factor) for words, one in found.items() if one}


def _of_map(one: FeatureMap) -> str:
    train, deploy = one.train_size, one.deploy_size
    common = _size([min(pair) for pair in zip(train, deploy, strict=True)])
    where = "" if train == deploy else f" on the common {common}"
    which = "the first map behind the change" if one.first else "the last map of the network"
    words = [
        f"{one.axis} alone: {which}, of {one.node}, averaged over the channels from "
        f"{_three(one.low)} (black) to {_three(one.high)} (white), by {one.by}.",
        f"{share(one.values_changed)} of the values differ{where}, mean "
        f"{_three(one.mean)}, max {_three(one.max)}."
        if one.max != 0
        else f"No value differs{where}.",
    ]
    for side, sign in (("train", 1), ("deploy", -1)):
        more = [max(sign * (a - b), 0) for a, b in zip(train, deploy, strict=True)]
        counts = [count(n, kind) for n, kind in zip(more, ("row", "column"), strict=True) if n]
        if counts:
            words.append(f"{' and '.join(counts)} only in {side}: orange in the difference.")
    if one.window:
        words.append(f"Of it {_size(one.window)} are shown.")
    return " ".join(words)


def _three(value: float | None) -> str:
    return figure(value, ".3g")


def _size(size: Sequence[int]) -> str:
    return "×".join(map(str, size))
