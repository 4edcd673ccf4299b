"""The gallery of sounds: both spectrograms, their difference, and the sounds to be played.

A network that hears is shown what both stacks gave it; one that speaks, what it said under both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.contract import Array, ImageWriter, Sound
from simulator.contract.recipe import Boundary, Chain
from simulator.errors import SampleError, one_line
from simulator.experiments.pictures import spectrograms
from simulator.experiments.pictures.looks import Look, Looks, stem_of
from simulator.experiments.pictures.pictures import ShownPair
from simulator.experiments.summary import SIDES
from simulator.modalities.modality import Axes
from simulator.model.card import Card
from simulator.pipeline.walk import Walk
from simulator.reference.log_mel import HOP, N_MELS, log_mel
from simulator.reference.sound import mel_corners
from simulator.results.layout import LOOKS
from simulator.results.store import RunWriter

_FULL = 1.5
"""A sound that is louder is not of full scale 1, but of 32768."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A sound under one stack.

    Attributes:
        sound: to be played.
        bands: (bands, frames), its spectrogram.
        own: whether *bands* are the network's input; else they were made for the picture.
        axes: of *bands*; None where they are not known.
    """

    sound: Sound
    bands: Array
    own: bool
    axes: Axes | None


@dataclass(slots=True)
class SoundSeen:
    """What is kept of one sample: both sides, and notes on what could not be kept."""

    sides: dict[str, Heard] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sounds(Looks[SoundSeen]):
    """The chains that the gallery needs besides the arms of a pair.

    Attributes:
        card: the model card.
        chains: to the waveform and to the network's input, by side; None: the network speaks.
        arms: indices of train and deploy.
        prefix: of the chains' names in the plan.
    """

    card: Card
    chains: Mapping[str, Chain] | None
    arms: tuple[int, int]
    prefix: str
    kind = "sound"

    def asides(self) -> dict[str, Chain]:
        """Return the chains by their names in the plan."""
        return {f"{self.prefix}{name}": chain for name, chain in (self.chains or {}).items()}

    def see(self, walk: Walk) -> SoundSeen:
        """Return what is shown of one sample; an error becomes a note and does not stop the run."""
        seen = SoundSeen()
        for side, arm in zip(SIDES, self.arms, strict=True):
            try:
                seen.sides[side] = self._heard(walk, side, arm)
            except Exception as error:  # a missing picture must not lose the results of a run
                seen.notes.append(f"{side}: not shown: {one_line(error)}")
        return seen

    def _heard(self, walk: Walk, side: str, arm: int) -> Heard:
        card = self.card
        if self.chains is None:
            sound = card.task.spoken(walk.answers()[arm].prediction)
            return _drawn_for(sound)
        if f"played {side}" not in self.chains:
            raise SampleError("it was recorded")
        sound = _unit(walk.aside(f"{self.prefix}played {side}"))
        bands = card.modality.bands(walk.aside(f"{self.prefix}input {side}"), card.spec)
        if bands is None:
            return _drawn_for(sound)
        axes = card.modality.axes(self.chains[f"input {side}"].recipes)
        known = axes is not None and len(axes.hertz) == bands.shape[0]
        return Heard(sound, bands, True, axes if known else None)

    def empty(self, *notes: str) -> SoundSeen:
        """Return the data of a sample of which nothing could be kept."""
        return SoundSeen(notes=[*notes])

    def write(
        self, shown: Sequence[Look[SoundSeen]], files: ImageWriter, workers: int, run: RunWriter
    ) -> list[dict[str, Any]]:
        """Write pictures and sounds to the run; return their entries in the summary."""
        found = []
        for number, (name, why, seen) in enumerate(shown, 1):
            entry = {"sample": name, "why": why, "notes": list(seen.notes)}
            stem = f"{LOOKS}/{number:02}-{stem_of(name, 'sound')}"
            if len(seen.sides) == len(SIDES):
                for path, content in _drawn(entry, seen.sides, files, stem).items():
                    run.write_file(path, content)
            found.append(entry)
        return found


def heard(pair: ShownPair, played: str = "resample") -> Sounds:
    """Plan the gallery of a network that hears.

    Args:
        pair: whose samples are shown.
        played: the step after which a sound is played, a :class:`simulator.contract.Sound`.
    """
    chains: dict[str, Chain] = {}
    for side, stack in zip(SIDES, pair.stacks, strict=True):
        if stack.chain.has(Boundary.FRAME) and stack.chain.has(Boundary.INPUT):  # else recorded
            chains[f"played {side}"] = _until(stack.chain, played)
            chains[f"input {side}"] = stack.chain.until(Boundary.INPUT)
    return Sounds(pair.session.card, chains, pair.arms, f"{pair.prefix}sound ")


def spoken(pair: ShownPair) -> Sounds:
    """Plan the gallery of a network that speaks."""
    return Sounds(pair.session.card, None, pair.arms, f"{pair.prefix}sound ")


def _drawn(
    entry: dict[str, Any], sides: Mapping[str, Heard], writer: ImageWriter, stem: str
) -> dict[str, bytes]:
    """Complete an entry; return its files by path."""
    train, deploy = (sides[side] for side in SIDES)
    low = float(min(heard.bands.min(initial=np.inf) for heard in sides.values()))
    high = float(max(heard.bands.max(initial=-np.inf) for heard in sides.values()))
    files = {}
    start, comparable = 0.0, train.bands.shape[0] == deploy.bands.shape[0]
    if comparable and min(train.bands.shape[1], deploy.bands.shape[1]):
        frames = min(train.bands.shape[1], deploy.bands.shape[1])
        moved = np.abs(deploy.bands[:, :frames].astype(np.float64) - train.bands[:, :frames])
        peak = float(moved.max())
        entry |= {"mean": float(moved.mean()), "peak": peak, "difference": None}
        if peak:
            entry["difference"] = f"{stem}-difference.png"
            pixels = spectrograms.difference(train.bands, deploy.bands, peak)
            files[entry["difference"]] = writer.png(pixels)
        seconds = train.sound.samples.size / train.sound.rate
        start = spectrograms.loudest(train.bands, deploy.bands, seconds)
    else:
        entry["notes"].append("the two spectrograms have different bands; no difference is shown")
    for side, heard in sides.items():
        played, shown = f"{stem}-{side}.wav", f"{stem}-{side}.png"
        files[played] = spectrograms.wav(heard.sound.samples, heard.sound.rate, start)
        files[shown] = writer.png(spectrograms.picture(heard.bands, low, high))
        seconds = heard.sound.samples.size / heard.sound.rate
        entry[side] = {
            "sound": played, "picture": shown, "seconds": seconds, "rate": heard.sound.rate,
            "bands": heard.bands.shape[0], "frames": heard.bands.shape[1],
            "hertz": list(heard.axes.hertz) if heard.axes else [],
            "hop": heard.axes.hop if heard.axes else None,
        }  # fmt: skip
    entry |= {"start": start, "own": train.own}
    return files


def _drawn_for(sound: Sound) -> Heard:
    """A sound with a spectrogram that is made for the picture."""
    hertz = mel_corners(0, sound.rate / 2, N_MELS)[1:-1]
    axes = Axes(tuple(hertz.tolist()), HOP / sound.rate)
    return Heard(sound, log_mel(sound.samples, sound.rate), False, axes)


def _until(chain: Chain, stage: str) -> Chain:
    ends = [at for at, recipe in enumerate(chain.recipes) if recipe.stage == stage]
    return Chain(chain.recipes[: ends[-1] + 1])


def _unit(sound: Sound) -> Sound:
    """A waveform of full scale 1."""
    samples = sound.samples
    if samples.size and np.abs(samples).max() > _FULL:
        samples = samples / np.float32(32768)
    return Sound(samples, sound.rate)
