"""torch.stft, and torchaudio's resampler and mel filters in its own formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from backends.sound.framing import check_one_frame, divisor, reflectable, transforms, window
from backends.sound.vocoders import Transform, TransformVocoder, vocoders
from simulator.contract import (
    Array,
    Evidence,
    Library,
    MelFilters,
    ModelError,
    Offer,
    Options,
    Resampler,
    Stage,
    Stft,
)

torch = Library("torch", distribution="torch", extra="pytorch")
_PADS = {"reflect": "reflect", "constant": "constant", "edge": "replicate"}


class TorchStft(Stft):
    """``torch.stft`` in float32 with one thread, called as torchaudio's ``spectrogram`` does.

    ``scaling: sqrt_n`` is ``normalized=True``; ``window_power`` is torchaudio's own division.
    """

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        options = self.options
        if options["center"]:
            reflectable(samples.size, options["pad_mode"], n_fft)
        else:
            check_one_frame(samples.size, n_fft)
        torch.set_num_threads(1)
        found = torch.stft(
            torch.from_numpy(np.array(samples)), n_fft, hop, win_length,
            window=_window(options, win_length), center=options["center"],
            pad_mode=_PADS[options.get("pad_mode", "constant")],
            normalized=options["scaling"] == "sqrt_n", return_complex=True,
        ).abs()  # fmt: skip
        if options["scaling"] == "window_power":
            found /= divisor(options, window(options, win_length, win_length))
        made: Array = (found.pow(2) if options["power"] == 2 else found).numpy()
        return made


def _window(options: Options, length: int) -> Any:
    kind = options["window"]
    if kind == "none":
        return torch.ones(length)
    make = {"hann": torch.hann_window, "hamming": torch.hamming_window}[kind]
    return make(length, periodic=options["window_symmetry"] == "periodic")


class TorchVocoder(TransformVocoder):
    """``torch.istft`` and ``torch.stft``, iterated as ``torchaudio.functional.griffinlim`` does.

    ``scaling: sqrt_n`` is ``normalized=True``. Without centred frames it refuses a Hann window,
    which is 0 at the first sample.
    """

    def _pair(self, n_fft: int, win_length: int, hop: int) -> tuple[Transform, Transform]:
        torch.set_num_threads(1)
        options, shape = self.options, _window(self.options, win_length)
        normalized = options["scaling"] == "sqrt_n"

        def forward(samples: Array) -> Array:
            mode = _PADS[options["pad_mode"]]
            found: Array = torch.stft(
                torch.from_numpy(samples), n_fft, hop, win_length, window=shape, pad_mode=mode,
                normalized=normalized, return_complex=True,
            ).numpy()  # fmt: skip
            return found

        def back(spectrum: Array) -> Array:
            found: Array = torch.istft(
                torch.from_numpy(np.array(spectrum)), n_fft, hop, win_length, window=shape,
                normalized=normalized,
            ).numpy()  # fmt: skip
            return found

        return forward, back


class TorchaudioResampler(Resampler):
    """``torchaudio.functional.resample``: a bank of windowed sinc filters as a convolution.

    Its defaults: ``lowpass_filter_width`` 6, ``rolloff`` 0.99.
    """

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        torch.set_num_threads(1)
        common = math.gcd(rate, wanted)
        before, after = rate // common, wanted // common
        kernel, width = self._kernel(before, after)
        padded = torch.nn.functional.pad(
            torch.from_numpy(np.array(samples)), (width, width + before)
        )
        found = torch.nn.functional.conv1d(padded[None, None], kernel, stride=before)
        made: Array = found.transpose(1, 2).reshape(-1).numpy()
        return made[: -(-after * samples.size // before)]

    def _kernel(self, before: int, after: int) -> tuple[Any, int]:
        base = min(before, after) * 0.99
        width = math.ceil(6 * before / base)
        turns = torch.arange(-width, width + before, dtype=torch.float64)[None, None] / before
        times = torch.arange(0, -after, -1)[:, None, None] / after + turns
        times = (times * base).clamp(-6, 6)
        shape = torch.cos(times * math.pi / 6 / 2) ** 2
        times = times * math.pi
        sinc = torch.where(times == 0, torch.tensor(1.0, dtype=times.dtype), times.sin() / times)
        return (sinc * shape * (base / before)).to(torch.float32), width


class TorchaudioFilters(MelFilters):
    """``torchaudio.functional.melscale_fbanks``, its float32 arithmetic step by step."""

    def _matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        frequencies = torch.linspace(0, rate // 2, n_fft // 2 + 1)
        low, high = (self._mel(one) for one in (fmin, fmax))
        points = self._hertz(torch.linspace(low, high, n_mels + 2))
        widths = points[1:] - points[:-1]
        slopes = points.unsqueeze(0) - frequencies.unsqueeze(1)
        down, up = -slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]
        bank = torch.max(torch.zeros(1), torch.min(down, up))
        if self.options["norm"] == "slaney":
            bank *= (2.0 / (points[2 : n_mels + 2] - points[:n_mels])).unsqueeze(0)
        if not bool(torch.isfinite(bank).all()):
            raise ModelError(f"{n_mels} mel bands are too many for {fmin:g} to {fmax:g} Hz")
        made: Array = bank.T.numpy()
        return made

    def _mel(self, hertz: float) -> float:
        if self.options["scale"] == "htk":
            return 2595.0 * math.log10(1.0 + hertz / 700.0)
        step = 200.0 / 3
        if hertz < 1000.0:
            return hertz / step
        return 1000.0 / step + math.log(hertz / 1000.0) / (math.log(6.4) / 27.0)

    def _hertz(self, mels: Any) -> Any:
        if self.options["scale"] == "htk":
            return 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
        step = 200.0 / 3
        found, corner = step * mels, 1000.0 / step
        above = mels >= corner
        found[above] = 1000.0 * torch.exp(math.log(6.4) / 27.0 * (mels[above] - corner))
        return found


OFFERS = (
    *transforms(
        TorchStft,
        "https://docs.pytorch.org/docs/stable/generated/torch.stft.html",
        scaling=("none", "sqrt_n", "window_power"),
    ),
    *vocoders(
        TorchVocoder,
        "https://docs.pytorch.org/docs/stable/generated/torch.istft.html",
        windows=("hann", "hamming", "none"),
        scaling=("none", "sqrt_n"),
        uncentred=False,
    ),
    Offer(
        Stage.RESAMPLE,
        {"quality": ("sinc_interp_hann",)},
        TorchaudioResampler,
        evidence=Evidence.EMULATED,
        source="torchaudio 2.11, functional.resample",
    ),
    Offer(
        Stage.MEL,
        {"scale": ("htk", "slaney"), "norm": ("none", "slaney"), "triangles": ("hertz",)},
        TorchaudioFilters,
        evidence=Evidence.EMULATED,
        source="torchaudio 2.11, functional.melscale_fbanks",
    ),
)
