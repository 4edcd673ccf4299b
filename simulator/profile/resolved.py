"""A resolved profile: one complete document, optionally with the origin of each value."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.profile.document import Key, Values
from simulator.profile.implementations import Choice, Choices
from simulator.profile.modality import IMAGE, at, filled, sections
from simulator.profile.profile import Profile
from simulator.profile.text import Line, flow, render


def resolved(profile: Profile, choices: Choices, *, origins: bool) -> str:
    """Return a profile as one equivalent document without ``extends``.

    Values that a backend implies are comments.

    Args:
        profile: the profile.
        choices: its implementations.
        origins: whether to add after each value where it was written.
    """
    lines = [
        _written(profile, (name,), origins, getattr(profile.spec, name))
        for name in ("name", "summary", "modality")
        if name != "modality" or profile.spec.modality != IMAGE
    ]
    lines.insert(0, Line(0, "schema", "1"))
    for name in sections(profile.spec.modality):
        section = at(profile.spec, (name,))
        if section is None:
            continue
        inner = list(_section(profile, choices, (name,), section, origins))
        if any(line.off is None for line in inner):
            lines += [Line(0, name), *inner]
        else:
            required = type(profile.spec).model_fields[name].is_required()
            empty = ("{}", None) if required else ("", 0)
            lines.append(Line(0, name, empty[0], "as the model has it", empty[1]))
    lines.append(Line(0, "evidence", "" if profile.spec.evidence else "{}"))
    for section, claim in profile.spec.evidence.items():
        lines.append(
            _written(profile, ("evidence", section), origins, claim.model_dump(exclude_none=True))
        )
    return render(lines)


def fields(section: BaseModel) -> Values:
    """Return the fields of a section with their values, including its backend's own fields."""
    own = {name: getattr(section, name) for name in type(section).model_fields}
    return {**own, **(section.model_extra or {})}


def behind(profile: Profile, choices: Choices, key: Key) -> Choice | None:
    """Return the implementation of the section at a key; None if it has none."""
    specs = filled(profile.spec.modality)
    return next((choices.get(spec.name) for spec in specs if spec.section == key), None)


def is_written(profile: Profile, key: Key) -> bool:
    """Whether a document or ``--set`` writes *key* or a part of it."""
    return any(known[: len(key)] == key for known in profile.origins)


def _section(
    profile: Profile, choices: Choices, key: Key, section: BaseModel, origins: bool
) -> Iterator[Line]:
    """Yield the lines of a section: the written values, then those that its backend implies."""
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
    choice = behind(profile, choices, key)
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
    """Return an origin with a path relative to the current folder, if the file is below it."""
    here = f"{Path.cwd()}{os.sep}"
    return origin.removeprefix(here)
