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
from simulator.report.words import SIDES, figure
from simulator.results.pair import PairSummary, SoundLook


@dataclass(frozen=True, slots=True)
class Side:
    """One stack's sound in the page; sources are ``data:`` URIs, empty where there is no file."""

    name: str
    words: str
    picture: str
    sound: str
    bands: int
    frames: int


@dataclass(frozen=True, slots=True)
class View:
    """One sample in the page."""

    name: str
    why: str
    words: str
    sides: Sequence[Side]
    difference: str
    difference_words: str
    notes: Sequence[str]

    @property
    def bytes(self) -> int:
        """What it takes in the page."""
        sources = [source for side in self.sides for source in (side.picture, side.sound)]
        return sum(map(len, (*sources, self.difference)))


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
        "Time goes to the right, a column for each frame; band 1, of the lowest frequencies, is "
        "at the bottom. In the difference red is more in deploy, blue less.",
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
            size = f"{one.bands} bands, {one.frames} frames"
            words = f"{name}: {one.seconds:.2f} s at {one.rate:,} Hz; {size}"
            shown, heard = _picture(run, one.picture), _played(run, one.sound)
            sides.append(Side(name, words, shown, heard, one.bands, one.frames))
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
        _picture(run, look.difference) if look.difference else "",
        f"deploy less train, full color is {figure(look.peak, '.2g')}",
        look.notes,
    )


def _picture(run: Run, path: str) -> str:
    try:
        content = run.file(path)
        image = inspect(path, content) if content else None
    except (OSError, ValueError, SampleError):
        return ""
    if content is None or image is None or image.format != "png":
        return ""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _played(run: Run, path: str) -> str:
    """The sound; empty where the file is missing, or is no WAV file."""
    try:
        content = run.file(path)
    except (OSError, ValueError):
        return ""
    if content is None or content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return ""
    return f"data:audio/wav;base64,{base64.b64encode(content).decode()}"
