"""Speech synthesis: how two stacks differ that say the same text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract import Array, Sound
from simulator.errors import ModelError
from simulator.profile.section import Section
from simulator.tasks.figures import Flips
from simulator.tasks.finite import check_finite
from simulator.tasks.score import Record
from simulator.tasks.task import CHANGES, Shapes, Task
from simulator.tasks.text_to_speech.answer import Speech
from simulator.tasks.text_to_speech.distance import distance
from simulator.tasks.text_to_speech.view import TextToSpeechView
from simulator.typed import Decibels

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen

Outputs = Mapping[str, Array]
_FIGURES = ("mse", "snr", "log_mel_mse", "warped")


class Output(Section):
    """What the network gives.

    Attributes:
        rate: samples a second.
        waveform: the output with the samples, full scale -1 to 1; None: the first one.
        durations: the output with the length of each phoneme in frames, where there is one.
    """

    rate: Annotated[int, Field(ge=1)]
    waveform: str | None = None
    durations: str | None = None


class TextToSpeechFlips(Flips):
    """Durations that differ, and how far the waveforms are apart: means over the samples."""

    mse: float | None = Field(description="mean squared difference of the samples")
    snr: Decibels | None = Field(
        description="mean over the samples that differ; None where none does"
    )
    log_mel_mse: float | None = Field(description="mean squared difference of log-mel spectrograms")
    warped: float | None = Field(description="the same after dynamic time warping")
    waveforms: int = Field(description="texts whose waveforms differ in any bit")


class TextToSpeech(Task):
    """Speech for a text. A unit is a phoneme's duration, or the whole length where there is none.

    The figures compare waveforms, so most need no truth. A truth is the durations that a
    reference has, or None.
    """

    name = "text_to_speech"
    unit = "duration"
    in_parts = True
    metrics = ("durations_right",)
    kinds = ("lengths",)
    speaks = True
    several = True
    Output = Output
    Flips = TextToSpeechFlips
    View = TextToSpeechView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("durations_right", pa.float64()),
        pa.field("samples", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("waveform", pa.string()),
        *(pa.field(name, pa.float64()) for name in _FIGURES),
        pa.field("lengths", pa.int64()),
        *CHANGES,
    )

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return two tones, with durations and without."""
        from simulator.tasks.text_to_speech.specimen import tones

        return {"durations": tones(cls, "w"), "waveform only": tones(cls, None)}

    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the card names; the waveform's first."""
        named = (self.output.waveform, self.output.durations)
        return tuple(name for name in named if name)

    def check(self, shapes: Shapes) -> None:
        """Expect a waveform of one text, in whatever rank."""
        for name, shape in shapes.items():
            if sum(size not in (1, None) for size in shape) > 1:
                raise ModelError(f"output {name!r}: one sequence expected, got {tuple(shape)}")

    def decode(self, outputs: Outputs | Sequence[Outputs], settings: Any, placing: Any) -> Speech:
        """Read the waveform and the durations; several sentences are joined."""
        parts = [outputs] if isinstance(outputs, Mapping) else list(outputs)
        waves = [_sequence(one, self.output.waveform or next(iter(one))) for one in parts]
        samples = np.concatenate(waves).astype(np.float32)
        durations = None
        if self.output.durations:
            frames = np.concatenate([_sequence(one, self.output.durations) for one in parts])
            if np.any(frames != np.rint(frames)) or np.any(np.abs(frames) > 2**31):
                raise ModelError(f"output {self.output.durations!r}: whole frames expected")
            durations = tuple(int(one) for one in frames)
        return Speech(samples, self.output.rate, durations)

    def record(self, prediction: Speech, truth: Sequence[int] | None) -> dict[str, Any]:
        """Return the length, and a digest of the samples."""
        samples, right = np.ascontiguousarray(prediction.samples), None
        if truth:
            own = prediction.durations or ()
            same = sum(one == other for one, other in zip(own, truth, strict=False))
            right = same / max(len(own), len(truth))
        return {
            "durations_right": right,
            "samples": samples.size,
            "seconds": samples.size / prediction.rate,
            "waveform": hashlib.blake2b(samples.data, digest_size=8).hexdigest(),
        }

    @property
    def answer(self) -> tuple[str, ...]:
        """The length; a record has no durations."""
        return ("samples",)

    def change(self, before: Speech, after: Speech, truth: Any) -> dict[str, Any]:
        """Count durations that differ, and measure how far the waveforms are apart.

        ``lengths`` is 1 where the waveforms have different lengths.
        """
        found = distance(before.samples, after.samples, before.rate)
        lengths = int(before.samples.size != after.samples.size)
        own, other = before.durations, after.durations
        if own is None or other is None:
            changed, units = lengths, 1
        else:
            units = max(len(own), len(other))
            common = sum(a == b for a, b in zip(own, other, strict=False))
            changed = units - common
        figures = {name: getattr(found, name) for name in _FIGURES}
        return {"changed": changed, "units": units, "lengths": lengths, **figures}

    def spoken(self, prediction: Speech) -> Sound:
        """Return the waveform."""
        return Sound(prediction.samples, prediction.rate)

    @property
    def firm(self) -> tuple[str, ...]:
        """What was said: the samples themselves."""
        return ("samples", "waveform")

    def more(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return the means of the distances, and how many waveforms differ."""
        means = {}
        for name in _FIGURES:
            known = [record[name] for record in records if record[name] is not None]
            means[name] = sum(known) / len(known) if known else None
        return {**means, "waveforms": sum(r["warped"] > 0 or r["mse"] > 0 for r in records)}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return the distance after time warping: how different it sounds."""
        return float(deploy["warped"])

    def flip(self, train: Record, deploy: Record) -> dict[str, Any]:
        """Return both lengths and the distances."""
        sides = {"train": train, "deploy": deploy}
        said = {side: {"seconds": one["seconds"]} for side, one in sides.items()}
        return {**said, **{name: deploy[name] for name in (*_FIGURES, "changed", "units")}}

    def examples(self) -> list[tuple[Any, Any]]:
        """Return the durations of two texts, and of one that has none."""
        wave = np.linspace(-1, 1, 512, dtype=np.float32)
        return [
            ([2, 3], Speech(wave, self.output.rate, (2, 3))),
            ([4], Speech(-wave, self.output.rate, (4,))),
            ([], Speech(wave[:0], self.output.rate, ())),
        ]


def _sequence(outputs: Outputs, name: str) -> Array:
    """The numbers of an output with at most one dimension that is not 1."""
    if name not in outputs:
        raise ModelError(f"the model gave no output {name!r}")
    values = outputs[name]
    if values.size != max(values.shape, default=1) or values.dtype.kind not in "fiu":
        got = f"{values.dtype} {values.shape}"
        raise ModelError(f"output {name!r}: one sequence of numbers expected, got {got}")
    check_finite(values, f" in output {name!r}")
    return values.reshape(-1)
