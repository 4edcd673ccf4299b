"""What the noise sounds like: a few sounds under both stacks, as pictures and to be played."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.report.reading import Run
from simulator.report.rendering import LOOKS, render
from simulator.report.sections.embedded import Shown, png, wav
from simulator.report.sections.section import Section, part
from simulator.report.words import SIDES, answers, figure
from simulator.results.pair import PairSummary
from simulator.results.pictures import SoundLook, SoundSide


@dataclass(frozen=True, slots=True)
class Side:
    """One stack's sound in the page: a ``data:`` URI, and None or empty where there is no file."""

    words: str
    picture: Spectrogram | None
    sound: str


@dataclass(frozen=True, slots=True)
class View:
    """One sample in the page."""

    look: SoundLook
    answers: str
    words: str
    sides: Mapping[str, Side]
    difference: Spectrogram | None
    difference_words: str

    @property
    def bytes(self) -> int:
        """What it takes in the page."""
        pictures = [*(side.picture for side in self.sides.values()), self.difference]
        drawn = sum(len(picture.shown.source) for picture in pictures if picture)
        return drawn + sum(len(side.sound) for side in self.sides.values())


@part(order=26)
def sounds(run: Run[PairSummary]) -> Section | None:
    """Return what both networks heard or said; None where a run has kept no sound."""
    entries = [one for one in run.summary.get("pictures", ()) if isinstance(one, SoundLook)]
    if not entries:
        return None
    room, kept = LOOKS, list[View]()
    for entry in entries:
        view = _view(run, entry)
        room -= view.bytes
        if room < 0:
            break
        kept.append(view)
    notes = [
        "The spectrograms are the networks' inputs; both are in the same colors."
        if any(entry.own for entry in entries)
        else "The spectrograms are log-mel of 80 bands, made for the pictures; both are in the "
        "same colors.",
        "Every band is as high as the others; the frequencies are those of their centers. In the "
        "difference red is more in deploy, blue less.",
        "Played is the part of 3 s in which the spectrograms differ most, in 16 bits and at most "
        "16 kHz; the stacks worked on the whole sound.",
    ]
    if len(kept) < len(entries):
        notes.append(f"{len(kept)} of {len(entries)} sounds are shown; all are in the run folder.")
    return Section(
        "sounds",
        "What the noise sounds like",
        "What did each network hear or say, and what is different?",
        notes=notes,
        html=render("sounds.html.j2", views=kept) if kept else None,
    )


def _view(run: Run[PairSummary], look: SoundLook) -> View:
    sides, played = dict[str, Side](), ""
    for name in SIDES:
        side: SoundSide | None = look[name]
        if side is None:
            continue
        step = f", one every {1000 * side.hop:.3g} ms" if side.hop else ""
        words = f"{name}: {side.seconds:.2f} s at {side.rate:,} Hz; {side.bands} bands, "
        words += f"{side.frames} frames{step}"
        sound = wav(run, side.sound)
        if sides and sound == played:
            sound, words = "", f"{words}; the waveform is train's"
        played = sound
        sides[name] = Side(words, _drawn(run, side.picture, f"spectrogram, {name}", side), sound)
    words = ""
    if look.peak is not None:
        moved = f"mean {figure(look.mean, '.2g')}, max {figure(look.peak, '.2g')}"
        words = f"Difference of a cell: {moved}." if look.peak else "No cell differs."
    peak = f"deploy less train, full color is {figure(look.peak, '.2g')}"
    return View(look, answers(run.summary, look.sample), words, sides, _difference(run, look), peak)


def _difference(run: Run[PairSummary], look: SoundLook) -> Spectrogram | None:
    """The difference; without frequencies where those of the two stacks are not the same."""
    train, deploy = look.train, look.deploy
    if look.difference is None or train is None or deploy is None:
        return None
    common = {
        "hertz": train.hertz if train.hertz == deploy.hertz else [],
        "hop": train.hop if train.hop == deploy.hop else None,
        "frames": min(train.frames, deploy.frames),
    }
    axes = train.model_copy(update=common)
    return _drawn(run, look.difference, "difference of the spectrograms", axes)


def _drawn(run: Run[PairSummary], path: str, words: str, axes: SoundSide) -> Spectrogram | None:
    shown = png(run, path)
    if shown is None:
        return None
    seconds = axes.frames * (axes.hop or 0.0)
    hertz = frequencies(axes.hertz, shown.height)
    return Spectrogram(shown, words, hertz, times(seconds, shown.width))


LEFT, TOP, RIGHT, BOTTOM = 52, 8, 16, 20
"""Margins around the picture, in pixels: room for the words of the axes."""
_APART = 20
"""Pixels from one word of the frequencies to the next, at least."""
_TIMES = 5
"""Steps between the words of the seconds, at most."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A word beside an axis: how many pixels right of the picture's left, or below its top."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Spectrogram:
    """A picture and what is written beside it.

    Attributes:
        shown: the picture.
        words: what it is, for those who do not see it.
        frequencies: from the lowest; empty where they are not known.
        times: from the first.
    """

    shown: Shown
    words: str
    frequencies: Sequence[Tick]
    times: Sequence[Tick]
    left: int = LEFT
    top: int = TOP

    @property
    def size(self) -> tuple[int, int]:
        """Width and height with both axes, in pixels."""
        return LEFT + self.shown.width + RIGHT, TOP + self.shown.height + BOTTOM


def frequencies(hertz: Sequence[float], high: int) -> list[Tick]:
    """Return the axis of frequencies: 1, 2 and 5 times powers of ten, as far as there is room.

    Args:
        hertz: the center of each band, the lowest first; each band has the same height.
        high: rows of the picture.
    """
    if not hertz:
        return []
    rows = [(len(hertz) - at - 0.5) * high / len(hertz) for at in range(len(hertz))]
    round_ones = [one for one in _round(max(hertz[0], 1)) if hertz[0] <= one <= hertz[-1]]
    chosen = round_ones if len(round_ones) > 1 else [hertz[0], hertz[-1]]
    found: list[Tick] = []
    for one in dict.fromkeys(chosen):
        at = float(np.interp(one, hertz, rows))
        if not found or found[-1].at - at >= _APART:
            found.append(Tick(at, _hertz(one)))
    return found


def times(seconds: float, wide: int) -> list[Tick]:
    """Return the axis of time, from 0 in equal steps.

    Args:
        seconds: that all columns last.
        wide: columns of the picture.
    """
    if seconds <= 0:
        return []
    step = next(one for one in _round(seconds / 100) if seconds / one <= _TIMES)
    number = math.floor(seconds / step + 1e-9)
    return [Tick(at * step / seconds * wide, f"{at * step:g} s") for at in range(number + 1)]


def _round(least: float) -> Iterator[float]:
    """1, 2 and 5 times powers of ten, from the last power below *least* to nine above it."""
    first = math.floor(math.log10(least))
    for power in range(first, first + 9):
        for factor in (1, 2, 5):
            yield float(f"{factor}e{power}")


def _hertz(value: float) -> str:
    return f"{value / 1000:.3g} kHz" if value >= 1000 else f"{value:.3g} Hz"
