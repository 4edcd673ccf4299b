"""How synthesized speech is shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.tasks.view import View


class TextToSpeechView(View):
    """Lengths and distances; waveform MSE never stands alone."""

    metrics: ClassVar[Mapping[str, str]] = {"durations_right": "durations as in the truth"}
    kinds: ClassVar[Mapping[str, str]] = {"lengths": "changed lengths"}
    besides = ("lengths",)
    titles = ("durations changed", "train", "deploy")

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return how many durations changed, both lengths, and the distance of the spectrograms."""
        train, deploy = (f"{flip[side]['seconds']:.2f} s" for side in ("train", "deploy"))
        apart = f", log-mel MSE {flip['log_mel_mse']:.2g}, {flip['warped']:.2g} warped"
        return f"{flip['changed']} of {flip['units']}", train, deploy + apart

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the distances, in the mean over the texts."""
        flips = summary["flips"]
        if flips["mse"] is None:
            return []
        words = f"MSE {flips['mse']:.2g}"
        if flips["snr"] is not None:
            words += f", SNR {flips['snr']:.1f} dB"
        mels = f"MSE {flips['log_mel_mse']:.2g}, {flips['warped']:.2g} after time warping"
        differ = f"waveforms that differ {flips['waveforms']:,}, changed lengths {flips['lengths']}"
        return [("", differ), ("waveform", words), ("log-mel", mels)]

    def findings(self, summary: Mapping[str, Any]) -> list[str]:
        """Warn where the waveforms no longer run in step, so that their MSE tells nothing more."""
        flips = summary["flips"]
        if flips["snr"] is None or flips["snr"] > 0:
            return []
        return [
            f"waveform SNR: {flips['snr']:.1f} dB; durations or phases moved, and the MSE of "
            "waveforms has no more to say; read the log-mel MSE and the changed durations"
        ]
