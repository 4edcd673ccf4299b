"""The example for sounds: a voice from PyPI speaks, and a network from PyPI listens."""
