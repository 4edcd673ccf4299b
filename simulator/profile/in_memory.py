"""Profiles that a program in Python has in hand, as files in the user's cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from simulator import cache
from simulator.errors import ProfileError
from simulator.profile.document import Document, Key
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.own_files import movable
from simulator.profile.profile import Profile
from simulator.profile.resolved import resolved


@dataclass(frozen=True, slots=True)
class _Given(Document):
    """A dictionary as a document; its paths are relative to the current folder."""

    def where(self, key: Key) -> str:
        """Return what messages call it."""
        return str(self.path)


def written(given: Mapping[str, object] | Profile, called: str) -> Path:
    """Write a profile to the cache, in a folder that is named after its content.

    Args:
        given: as the document would be, ``extends`` included; ``schema``, ``name`` and ``summary``
            may be left out.
        called: the option, for messages; its name, where it has none.

    Raises:
        ProfileError: it is not valid, with every problem.
        RunError: the cache cannot be written.
    """
    if isinstance(given, Profile):
        name, text = given.name, resolved(given, choose(given), origins=False)
    else:
        name, text = _document(given, called)
    file = f"{''.join(one if one.isalnum() or one in '._-' else '_' for one in name)}.yaml"

    def write(folder: Path) -> None:
        (folder / file).write_text(text, encoding="utf-8")

    return cache.by_content("profiles", write) / file


def _document(given: Mapping[str, object], called: str) -> tuple[str, str]:
    """The name and the text of a dictionary's document."""
    if odd := [key for key in given if not isinstance(key, str)]:
        raise ProfileError([f"{called}: the key {odd[0]!r} is no text"])
    about = {"schema": 1, "name": called, "summary": "a dictionary in Python"}
    document = _Given(Path(called), about | dict(given), {})
    choose(load(document))
    values = movable(document)
    return str(values["name"]), yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
