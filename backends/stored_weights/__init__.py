"""Weights stored in BF16 or a few bits."""
