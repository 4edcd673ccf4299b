"""A profile as resolved: one whole document, with where each value comes from if that is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.contract import Stage
from simulator.profile.document import Key
from simulator.profile.implementations import Choices
from simulator.profile.load import Profile
from simulator.profile.text import Line, flow, render

FILLED: Mapping[Key, Stage] = {
    ("decode",): Stage.DECODE,
    ("color", "encode"): Stage.ENCODE,
    ("color", "convert"): Stage.CONVERT,
    ("resize",): Stage.RESIZE,
    ("precision", "cast"): Stage.CAST,
    ("precision", "quantizer"): Stage.QUANTIZE,
    ("runtime",): Stage.RUNTIME,
    ("runtime", "exporter"): Stage.EXPORT,
}
"""The sections that a backend fills."""
SECTIONS = (
    "decode", "color", "resize", "geometry", "normalize", "graph", "precision", "runtime",
    "postprocess",
)  # fmt: skip
"""What a stack consists of, in pipeline order."""


def resolved(profile: Profile, choices: Choices, *, origins: bool) -> str:
    """Return a profile as one document that extends nothing and means the same.

    What a backend implies stands there as a comment.

    Args:
        profile: the profile.
        choices: the implementations behind it.
        origins: behind every value, where it was written.
    """
    lines = [
        _written(profile, (name,), origins, getattr(profile.spec, name))
        for name in ("name", "summary")
    ]
    lines.insert(0, Line(0, "schema", "1"))
    for name in SECTIONS:
        inner = list(_section(profile, choices, (name,), getattr(profile.spec, name), origins))
        rest = [] if any(line.off is None for line in inner) else ["as the model has it"]
        lines += [Line(0, name, note=rest[0], off=0)] if rest else [Line(0, name), *inner]
    lines.append(Line(0, "evidence", "" if profile.spec.evidence else "{}"))
    for section, claim in profile.spec.evidence.items():
        lines.append(_written(profile, ("evidence", section), origins, claim.model_dump()))
    return render(lines)


def fields(section: BaseModel) -> dict[str, Any]:
    """Return the fields of a section with their values, those of the runtime's own included."""
    names = [*type(section).model_fields, *(section.model_extra or {})]
    return {name: getattr(section, name) for name in names}


def is_written(profile: Profile, key: Key) -> bool:
    """Whether some document, or ``--set``, says what *key* or a part of it is."""
    return any(known[: len(key)] == key for known in profile.origins)


def _section(
    profile: Profile, choices: Choices, key: Key, section: BaseModel, origins: bool
) -> Iterator[Line]:
    """The lines of a section: what is written, then what its backend implies."""
    for name, value in fields(section).items():
        here = (*key, name)
        if value is None or not is_written(profile, here):
            continue
        if isinstance(value, BaseModel) and name != "keep":
            yield Line(len(key), name)
            yield from _section(profile, choices, here, value, origins)
        else:
            plain = value.model_dump() if isinstance(value, BaseModel) else value
            yield _written(profile, here, origins, plain)
    choice = choices.get(FILLED[key]) if key in FILLED else None
    for fact in choice.facts if choice else ():
        assert choice is not None
        value = choice.options[fact]
        if isinstance(value, (str, int, float)):
            note = f"implied by {choice.backend.name}"
            yield Line(len(key), fact, flow(value), note, off=len(key))


def _written(profile: Profile, key: Key, origins: bool, value: Any) -> Line:
    note = _near(profile.where(key)) if origins else ""
    return Line(len(key) - 1, str(key[-1]), flow(value), note)


def _near(origin: str) -> str:
    """An origin by the shorter path: from here, where the file lies below."""
    here = f"{Path.cwd()}{os.sep}"
    return origin.removeprefix(here)
