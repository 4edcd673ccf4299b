"""What a stack says on an axis, in words: ``pillow: EXIF ignored, IDCT islow, chroma fancy``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LEFT = ("keep", "model")
"""Values by which a profile leaves a choice to the model."""
_LABELS = {
    "api": "API",
    "chroma_downsampling": "chroma",
    "chroma_upsampling": "chroma",
    "exif": "EXIF",
    "idct": "IDCT",
    "io_binding": "IO binding",
    "nms": "NMS",
    "tf32": "TF32",
}
"""Fields whose names are not words; an underscore of any other becomes a space."""
_PHRASES = {
    ("exif", "apply"): "EXIF applied",
    ("exif", "ignore"): "EXIF ignored",
    ("odd_size", "drop"): "odd size dropped",
    ("odd_size", "keep"): "odd size kept",
}
_BARE = ("kind", "value")
"""Fields whose values speak for themselves; so does a backend's, which comes first."""


def said(values: Mapping[str, object], card: Mapping[str, object]) -> str:
    """Return what a stack says on an axis; empty where it says nothing.

    Args:
        values: by dotted key, as :func:`simulator.profile.axes.flat` gives them.
        card: what the model card says in place of some, or besides.
    """
    groups: dict[str, list[str]] = {}
    backends: dict[str, str] = {}
    for key, value in {**values, **card}.items():
        if value in ([], {}, ""):
            continue
        section, _, name = key.rpartition(".")
        words = groups.setdefault(section, [])
        if name == "backend":
            backends[section] = str(value)
        else:
            words.append(_option(name, value))
    return "; ".join(
        _group(section.rpartition(".")[2], backends.get(section, ""), words)
        for section, words in groups.items()
    )


def folded(number: int) -> str:
    """Return the end of a line that leaves out what the stacks have in common."""
    return f"and {number} equal option{'' if number == 1 else 's'}" if number else ""


def _group(section: str, backend: str, words: Sequence[str]) -> str:
    head = " ".join(filter(None, (section.replace("_", " "), backend)))
    return ": ".join(filter(None, (head, ", ".join(words))))


def _option(name: str, value: Any) -> str:
    if isinstance(value, str) and (name, value) in _PHRASES:
        return _PHRASES[name, value]
    label = "" if name in _BARE else _LABELS.get(name, name.replace("_", " "))
    return f"{label} {_value(value)}".strip()


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], list | tuple):
            return " / ".join("x".join(map(str, one)) for one in value)
        words = all(isinstance(one, str) for one in value)
        return (" + " if words else " / ").join(map(str, value))
    return "the model's" if value in LEFT else str(value)


UNCLAIMED = "not claimed"


def known(kind: str, claimed: bool) -> str:
    """Return the kind of evidence, as people are told it.

    Args:
        kind: of evidence.
        claimed: whether the profile itself claims it. Where it does not, a library that ran here
            says nothing of the device that the profile stands for.
    """
    return UNCLAIMED if kind == "native" and not claimed else kind
