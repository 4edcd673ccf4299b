"""A log-mel spectrogram whose frames are centered, and one whose frames begin with the sound."""

import os
from pathlib import Path

import numpy as np
import soundfile

MEL = np.load(Path(os.environ["DATA"]) / "audio" / "fsdd_mel40_8k_256.npy")
SIZE, HOP = 256, 128


def train(path):
    """Half a transform of reflected samples comes before and behind the sound."""
    samples, _ = soundfile.read(path, dtype="float32")
    return log_mel(np.pad(samples, SIZE // 2, mode="reflect"))


def deploy(path):
    """As Kaldi does it where snip_edges is true."""
    samples, _ = soundfile.read(path, dtype="float32")
    return log_mel(samples)


def log_mel(samples):
    """Power, 40 bands, logarithm."""
    starts = range(0, samples.size - SIZE + 1, HOP)
    frames = np.stack([samples[at : at + SIZE] for at in starts])
    spectrum = np.fft.rfft(frames * np.hanning(SIZE + 1)[:-1])
    return np.log(MEL @ (np.abs(spectrum) ** 2).T + 1e-6)
