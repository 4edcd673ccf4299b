"""Texts: what a language model reads, and what it is scored on."""
