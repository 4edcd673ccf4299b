"""LiteRT, its predecessor, and the ways to a .tflite file."""
