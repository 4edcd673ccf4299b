"""Speech synthesis: how two stacks differ that say the same text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract import Array, Sound
from simulator.contract.model import Port
from simulator.errors import DataError, ModelError
from simulator.modalities.text.sections import text_spec
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.tasks.figures import Figures, Flips
from simulator.tasks.finite import check_finite, output_of
from simulator.tasks.score import Record, Values, numbers
from simulator.tasks.settings import BackEnd
from simulator.tasks.task import CHANGES, Shapes, Task
from simulator.tasks.text_to_speech.card import Output
from simulator.tasks.text_to_speech.distance import distance
from simulator.tasks.text_to_speech.neural import Speaking
from simulator.tasks.text_to_speech.spectrogram import WAVEFORM, vocoding
from simulator.tasks.view import Told, View
from simulator.typed import Decibels

Outputs = Mapping[str, Array]
_FIGURES = ("mse", "snr", "log_mel_mse", "warped")


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """The answer for one text.

    Attributes:
        samples: (N,) float32, full scale -1 to 1.
        rate: samples a second.
        durations: frames of each phoneme; None where the model does not tell.
        spectrogram: (values, frames) as the network gives them; None where it gives a waveform.
    """

    samples: NDArray[np.float32] = field(repr=False)
    rate: int
    durations: tuple[int, ...] | None = None
    spectrogram: Array | None = field(repr=False, default=None)


class TextToSpeechFlips(Flips):
    """Durations that differ, and how far the waveforms are apart: means over the samples."""

    mse: float | None = Field(description="mean squared difference of the samples")
    snr: Decibels | None = Field(
        description="mean over the samples that differ; None where none does"
    )
    log_mel_mse: float | None = Field(description="mean squared difference of log-mel spectrograms")
    warped: float | None = Field(description="the same after dynamic time warping")
    output_mse: float | None = Field(
        description="mean squared difference of the spectrograms that the network gave; None where "
        "it gave waveforms"
    )
    waveforms: int = Field(description="texts whose waveforms differ in any bit")


class TextToSpeechView(View):
    """Lengths and distances; waveform MSE never stands alone."""

    metrics: ClassVar[Mapping[str, str]] = {"durations_right": "durations as in the truth"}
    kinds: ClassVar[Mapping[str, str]] = {"lengths": "changed lengths"}
    besides = ("lengths",)
    distances: ClassVar[Mapping[str, str]] = {
        "log_mel_mse": "log-mel MSE",
        "mse": "waveform MSE",
        "warped": "time-warped",
        "output_mse": "MSE of the output",
    }
    titles = ("durations changed", "train", "deploy")

    def said(self, flip: Told, side: str) -> str:
        """Return the length; behind the second one the distance of the spectrograms."""
        length = f"{flip[side]['seconds']:.2f} s"
        if side == "train":
            return length
        return f"{length}, log-mel MSE {flip['log_mel_mse']:.2g}, {flip['warped']:.2g} warped"

    def lines(self, summary: Told) -> list[tuple[str, str]]:
        """Return the distances, in the mean over the texts."""
        flips = summary["flips"]
        if flips["mse"] is None:
            return []
        words = f"MSE {flips['mse']:.2g}"
        if flips["snr"] is not None:
            words += f", SNR {flips['snr']:.1f} dB"
        mels = f"MSE {flips['log_mel_mse']:.2g}, {flips['warped']:.2g} after time warping"
        differ = f"waveforms that differ {flips['waveforms']:,}, changed lengths {flips['lengths']}"
        found = [("", differ), ("waveform", words), ("log-mel", mels)]
        own = flips["output_mse"]
        return found if own is None else [*found, ("network's spectrogram", f"MSE {own:.2g}")]

    def findings(self, summary: Told) -> list[str]:
        """Warn where the waveforms no longer run in step, so that their MSE tells nothing more."""
        flips = summary["flips"]
        if flips["snr"] is None or flips["snr"] > 0:
            return []
        return [
            f"waveform SNR: {flips['snr']:.1f} dB; durations or phases moved, and the MSE of "
            "waveforms has no more to say; read the log-mel MSE and the changed durations"
        ]


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
    pictures = ("simulator.experiments.pictures.sounds:spoken",)
    several = True
    answer = ("samples",)  # a record has no durations
    firm = ("samples", "waveform")
    shown = ("seconds",)
    shown_once = (*_FIGURES, "changed", "units")
    tried_with = "simulator.tasks.text_to_speech.specimen:tones"
    Output = Output
    Flips = TextToSpeechFlips
    View = TextToSpeechView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("durations_right", pa.float64()),
        pa.field("samples", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("waveform", pa.string()),
        *(pa.field(name, pa.float64()) for name in (*_FIGURES, "output_mse")),
        pa.field("lengths", pa.int64()),
        *CHANGES,
    )

    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the card names; none where the model's first one is meant."""
        asked: Output = self.output
        return asked.vocoder.outputs() if asked.vocoder else asked.own

    def handed(self) -> tuple[str, ...]:
        """Return the first network's outputs, where a second one speaks."""
        return self.output.own if self.output.vocoder else ()

    def check_handed(self, shapes: Shapes, inputs: Mapping[str, Port], outputs: Shapes) -> None:
        """Compare the second network's input with the bands of the first."""
        mel, vocoder = self.output.spectrogram, self.output.vocoder
        assert mel and vocoder
        _check_sequences(shapes, mel.outputs)
        vocoder.check(mel.n_mels, inputs)

    def handover(self, settings: Any) -> Speaking | None:
        """Return how mel bands are passed on."""
        mel, vocoder = self.output.spectrogram, self.output.vocoder
        return Speaking(vocoder, mel, self.output.own) if mel and vocoder else None

    def takes_second(self, profile: Profile) -> bool:
        """Say whether the card's second network speaks, or a vocoder of the stack."""
        asked = text_spec(profile).vocoder
        return asked is None or asked.method != "griffin_lim"

    def back_end(self, profile: Profile, choices: Choices) -> BackEnd | None:
        """Return the vocoder, where the network gives a spectrogram."""
        asked = self.output
        speaks = asked.vocoder if self.takes_second(profile) else None
        spectrogram = speaks.spectrogram if speaks else asked.spectrogram
        return vocoding(profile, choices, spectrogram, asked.trained, asked.rate)

    def check(self, shapes: Shapes) -> None:
        """Expect a waveform of one text, in whatever rank."""
        spoken = self.output.vocoder or self.output
        _check_sequences(shapes, spoken.spectrogram.outputs if spoken.spectrogram else ())

    def truth_of(self, text: str, where: str) -> list[int]:
        """Read the frames of each phoneme: whole numbers, blanks between them."""
        words = text.split()
        if not words or not all(word.isascii() and word.isdigit() for word in words):
            raise DataError(f"{where}: frames of each phoneme expected, as 3 12 5, got {text!r}")
        return list(map(int, words))

    def decode(self, outputs: Outputs | Sequence[Outputs], settings: Any, placing: Any) -> Speech:
        """Read the waveform and the durations; several sentences are joined."""
        parts = [outputs] if isinstance(outputs, Mapping) else list(outputs)
        asked, spoken = self.output.spectrogram, self.output.vocoder or self.output
        name = WAVEFORM if WAVEFORM in parts[0] else spoken.waveform
        samples = _joined(parts, name).astype(np.float32)
        values = None
        if asked:
            values = np.concatenate([np.concatenate(asked.values(part)) for part in parts], axis=1)
        durations = None
        if self.output.durations:
            frames = _joined(parts, self.output.durations)
            if np.any(frames != np.rint(frames)) or np.any(np.abs(frames) > 2**31):
                raise ModelError(f"output {self.output.durations!r}: whole frames expected")
            durations = tuple(int(frame) for frame in frames)
        return Speech(samples, self.output.rate, durations, values)

    def record(self, prediction: Speech, truth: Sequence[int] | None) -> Values:
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

    def change(self, before: Speech, after: Speech, truth: Any) -> Values:
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
        figures["output_mse"] = _apart(before.spectrogram, after.spectrogram)
        return {"changed": changed, "units": units, "lengths": lengths, **figures}

    def spoken(self, prediction: Speech) -> Sound:
        """Return the waveform."""
        return Sound(prediction.samples, prediction.rate)

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return the means of the distances, and how many waveforms differ."""
        means = {}
        for name in (*_FIGURES, "output_mse"):
            total, known = numbers(deploy, name)
            means[name] = float(total.sum() / known.sum()) if known.any() else None
        return {**means, "waveforms": sum(r["warped"] > 0 or r["mse"] > 0 for r in deploy)}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return the distance after time warping: how different it sounds."""
        return float(deploy["warped"])

    def examples(self) -> list[tuple[Any, Any]]:
        """Return the durations of two texts, and of one that has none."""
        wave = np.linspace(-1, 1, 512, dtype=np.float32)
        return [
            ([2, 3], Speech(wave, self.output.rate, (2, 3))),
            ([4], Speech(-wave, self.output.rate, (4,))),
            ([], Speech(wave[:0], self.output.rate, ())),
        ]


def _check_sequences(shapes: Shapes, spectrogram: Sequence[str]) -> None:
    for name, shape in shapes.items():
        if name not in spectrogram and sum(size not in (1, None) for size in shape) > 1:
            raise ModelError(f"output {name!r}: one sequence expected, got {tuple(shape)}")


def _apart(one: Array | None, other: Array | None) -> float | None:
    """The mean squared difference of two spectrograms; the end of the longer one is left out."""
    if one is None or other is None:
        return None
    frames = min(one.shape[1], other.shape[1])
    return float(np.mean((one[:, :frames].astype(np.float64) - other[:, :frames]) ** 2))


def _joined(parts: Sequence[Outputs], name: str | None) -> Array:
    """The numbers of an output of all sentences."""
    return np.concatenate([_sequence(*output_of(part, name)) for part in parts])


def _sequence(name: str, values: Array) -> Array:
    """The numbers of an output with at most one dimension that is not 1."""
    if values.size != max(values.shape, default=1) or values.dtype.kind not in "fiu":
        got = f"{values.dtype} {values.shape}"
        raise ModelError(f"output {name!r}: one sequence of numbers expected, got {got}")
    check_finite(values, f" in output {name!r}")
    return values.reshape(-1)
