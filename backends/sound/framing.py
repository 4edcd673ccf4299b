"""What several transforms share: windows, padding, frames at the end, scaling, offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.contract import Admits, Array, Evidence, Offer, Options, SampleError, Stage

F64 = np.dtype(np.float64)


def window(options: Options, length: int, n_fft: int) -> Array:
    """Return (n_fft,) float64: the window of *length* in the middle of zeros."""
    before = (n_fft - length) // 2
    return np.pad(shape(options, length), (before, n_fft - length - before))


def shape(options: Options, length: int) -> Array:
    """Return (length,) float64, the window named in the options.

    Source:
        Oppenheim, Schafer, Discrete-Time Signal Processing, 7.2.1; Povey's is Hann's to the
        power of 0.85 (Kaldi, feature-window.cc).
    """
    if options["window"] == "none" or length == 1:
        return np.ones(length)
    more = options["window_symmetry"] == "periodic"
    made = np.hamming if options["window"] == "hamming" else np.hanning
    found: Array = made(length + more)[:length]
    return found**0.85 if options["window"] == "povey" else found


def padded(samples: Array, options: Options, n_fft: int, hop: int) -> Array:
    """Return the samples, padded so that whole frames are all that there are.

    Raises:
        SampleError: the sound is too short for its reflection.
    """
    if options["center"]:
        samples = centred(samples, options["pad_mode"], n_fft)
    more = missing(samples.size, options["frames"], n_fft, hop)
    return np.pad(samples, (0, more)) if more else samples


def centred(samples: Array, pad_mode: str, n_fft: int) -> Array:
    """Return the samples with half a transform more at both ends.

    Raises:
        SampleError: the sound is too short for its reflection.
    """
    half = n_fft // 2
    reflectable(samples.size, pad_mode, n_fft)
    return np.pad(samples, half, mode=pad_mode)  # type: ignore[call-overload,no-any-return]


def reflectable(size: int, pad_mode: str, n_fft: int) -> None:
    """Refuse a sound that is too short for its reflection.

    Raises:
        SampleError: it is.
    """
    if pad_mode == "reflect" and size <= n_fft // 2:
        raise SampleError(
            f"{size} samples are too few to be reflected: more than {n_fft // 2} expected"
        )


def check_one_frame(size: int, length: int, padding: int = 0) -> None:
    """Refuse a sound that has no whole frame, with its padding.

    Raises:
        SampleError: it has none.
    """
    if size + padding < length:
        raise SampleError(f"{size} samples are too few for one frame of {length}")


def missing(size: int, frames: str, n_fft: int, hop: int) -> int:
    """Return how many zeros at the end make the frames that are asked for."""
    if frames == "every_hop":
        return max((-(-size // hop) - 1) * hop + n_fft - size, 0)
    if frames == "padded":
        return -(size - n_fft) % hop if size > n_fft else n_fft - size
    return 0


def divisor(options: Options, window: Array) -> float:
    """Return what the magnitudes are divided by."""
    scaling = options["scaling"]
    if scaling == "sqrt_n":
        return float(np.sqrt(window.size))
    if scaling == "window_power":
        return float(np.sqrt(np.square(window).sum()))
    return float(window.sum()) if scaling == "window_sum" else 1.0


def transforms(
    make: type[Any],
    source: str,
    *,
    pads: Sequence[str] = ("reflect", "constant", "edge"),
    windows: Sequence[str] = ("hann", "hamming", "none"),
    symmetry: Sequence[str] = ("periodic", "symmetric"),
    scaling: Sequence[str] = ("none",),
    frames: Sequence[str] = ("whole",),
    uncentred: bool = True,
    uncentred_frames: Sequence[str] = (),
    evidence: Evidence = Evidence.NATIVE,
    **extra: Admits,
) -> tuple[Offer, ...]:
    """Return the offers of a transform: one for each set of fields that belong together.

    Args:
        make: the implementation.
        source: where it is documented.
        pads: values of ``pad_mode``; none where it does not centre.
        windows: values of ``window``; ``none`` has no symmetry.
        symmetry: values of ``window_symmetry``.
        scaling: values of ``scaling``.
        frames: values of ``frames``.
        uncentred: whether it can leave the sound as it is.
        uncentred_frames: values of ``frames`` where it does; by default *frames*.
        evidence: how we know.
        extra: fields of its own.
    """
    ends: list[dict[str, Admits]] = []
    if pads:
        ends.append({"center": (True,), "pad_mode": tuple(pads), "frames": tuple(frames)})
    if uncentred:
        ends.append({"center": (False,), "frames": tuple(uncentred_frames or frames)})
    shapes: list[dict[str, Admits]] = []
    if curved := tuple(window for window in windows if window != "none"):
        shapes.append({"window": curved, "window_symmetry": tuple(symmetry)})
    if "none" in windows:
        shapes.append({"window": ("none",)})
    common: dict[str, Admits] = {"scaling": tuple(scaling), "power": (1, 2), **extra}
    return tuple(
        Offer(Stage.STFT, {**end, **shape, **common}, make, evidence=evidence, source=source)
        for end in ends
        for shape in shapes
    )
