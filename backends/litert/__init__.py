"""LiteRT, its predecessor, and tools that make .tflite files."""
