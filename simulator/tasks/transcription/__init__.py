"""Transcription: what was said, in words."""
