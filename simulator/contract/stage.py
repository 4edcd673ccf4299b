"""Stages (to be replaced by the table)."""

from __future__ import annotations


def timed_steps(modality: str | None = None) -> tuple[str, ...]:
    """Return the steps whose time is recorded, in pipeline order."""
    return ("decode", "color", "resize", "geometry", "normalize", "infer", "postprocess")
