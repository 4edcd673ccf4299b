"""What the noise sounds like: a few sounds under both stacks, as pictures and to be played."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simulator.contract import inspect
from simulator.errors import SampleError
from simulator.report.reading import Run
from simulator.report.rendering import LOOKS, render
from simulator.report.sections.section import Section, part
from simulator.report.sections.spectrogram import Spectrogram, frequencies, times
from simulator.report.words import SIDES, figure
from simulator.results.pair import PairSummary, SoundLook, SoundSide


@dataclass(frozen=True, slots=True)
class Side:
    """One stack's sound in the page: a ``data:`` URI, and None or empty where there is no file."""

    name: str
    words: str
    picture: Spectrogram | None
    sound: str


@dataclass(frozen=True, slots=True)
class View:
    """One sample in the page."""

    name: str
    why: str
    words: str
    sides: Sequence[Side]
    difference: Spectrogram | None
    difference_words: str
    notes: Sequence[str]

    @property
    def bytes(self) -> int:
        """What it takes in the page."""
        pictures = [*(side.picture for side in self.sides), self.difference]
        drawn = sum(len(one.source) for one in pictures if one)
        return drawn + sum(len(side.sound) for side in self.sides)


@part(order=26)
def sounds(run: Run) -> Section | None:
    """Return what both networks heard or said; None where a run has kept no sound."""
    entries = run.summary.sounds if isinstance(run.summary, PairSummary) else []
    if not entries:
        return None
    room, kept = LOOKS, []
    for entry in entries:
        view = _view(run, entry)
        room -= view.bytes
        if room < 0:
            break
        kept.append(view)
    own = any(entry.own for entry in entries)
    notes = [
        "The spectrograms are the networks' inputs; both are in the same colors."
        if own
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


def _view(run: Run, look: SoundLook) -> View:
    sides = []
    for name in SIDES:
        one = look.train if name == "train" else look.deploy
        if one is not None:
            step = f", one every {1000 * one.hop:.3g} ms" if one.hop else ""
            size = f"{one.bands} bands, {one.frames} frames{step}"
            words = f"{name}: {one.seconds:.2f} s at {one.rate:,} Hz; {size}"
            shown = _picture(run, one.picture, f"spectrogram, {name}", one)
            sides.append(Side(name, words, shown, _played(run, one.sound)))
    if len(sides) == len(SIDES) and sides[0].sound == sides[1].sound:
        words = f"{sides[1].words}; the waveform is train's"
        sides[1] = replace(sides[1], sound="", words=words)
    words = ""
    if look.peak is not None:
        moved = f"mean {figure(look.mean, '.2g')}, max {figure(look.peak, '.2g')}"
        words = f"Difference of a cell: {moved}." if look.peak else "No cell differs."
    return View(
        look.sample,
        look.why,
        words,
        sides,
        _difference(run, look),
        f"deploy less train, full color is {figure(look.peak, '.2g')}",
        look.notes,
    )


def _difference(run: Run, look: SoundLook) -> Spectrogram | None:
    """The difference; without frequencies where those of the two stacks are not the same."""
    train, deploy = look.train, look.deploy
    if look.difference is None or train is None or deploy is None:
        return None
    frames = min(train.frames, deploy.frames)
    hertz = train.hertz if train.hertz == deploy.hertz else []
    hop = train.hop if train.hop == deploy.hop else None
    axes = train.model_copy(update={"hertz": hertz, "hop": hop, "frames": frames})
    return _picture(run, look.difference, "difference of the spectrograms", axes)


def _picture(run: Run, path: str, words: str, axes: SoundSide) -> Spectrogram | None:
    try:
        content = run.file(path)
        image = inspect(path, content) if content else None
    except (OSError, ValueError, SampleError):
        return None
    if content is None or image is None or image.format != "png":
        return None
    return Spectrogram(
        f"data:image/png;base64,{base64.b64encode(content).decode()}",
        words,
        image.width,
        image.height,
        frequencies(axes.hertz, image.height),
        times(axes.frames * (axes.hop or 0.0), image.width),
    )


def _played(run: Run, path: str) -> str:
    """The sound; empty where the file is missing, or is no WAV file."""
    try:
        content = run.file(path)
    except (OSError, ValueError):
        return ""
    if content is None or content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return ""
    return f"data:audio/wav;base64,{base64.b64encode(content).decode()}"
