"""Modalities: the kinds of samples, one folder each."""
