"""A sound of 22,050 Hz is resampled to the network's 8,000 Hz, or taken as if it had them."""

import os
from pathlib import Path

import numpy as np
import soundfile
import soxr

MEL = np.load(Path(os.environ["DATA"]) / "audio" / "fsdd_mel40_8k_256.npy")
SIZE, HOP, RATE = 256, 128, 8000


def train(path):
    """Resample."""
    samples, rate = soundfile.read(path, dtype="float32")
    return log_mel(soxr.resample(samples, rate, RATE))


def deploy(path):
    """The file's rate is not looked at."""
    samples, _ = soundfile.read(path, dtype="float32")
    return log_mel(samples)


def log_mel(samples):
    """Centered frames, power, 40 bands, logarithm."""
    samples = np.pad(samples, SIZE // 2, mode="reflect")
    starts = range(0, samples.size - SIZE + 1, HOP)
    frames = np.stack([samples[at : at + SIZE] for at in starts])
    spectrum = np.fft.rfft(frames * np.hanning(SIZE + 1)[:-1])
    return np.log(MEL @ (np.abs(spectrum) ** 2).T + 1e-6)
