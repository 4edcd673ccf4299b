"""Sounds: files, waveforms, spectrograms, and the preprocessing up to the input array."""
