"""What a model card says where a profile leaves it to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.model.card import Card
from simulator.profile import axes
from simulator.profile.implementations import Choices
from simulator.profile.modality import places
from simulator.profile.profile import Profile

LEFT = "model"
"""The value of a profile for: as the card says."""


def described(profile: Profile, choices: Choices, axis: str, card: Card) -> dict[str, Any]:
    """Return what a stack says on an axis, and what the card says where the stack leaves it to it.

    Returns:
        The fields of :func:`simulator.profile.axes.described`, and ``card``: the card's values by
        the same dotted keys; where ``kind`` is left to it, also what only the card says.
    """
    own = axes.described(profile, choices, axis)
    place = [str(part) for part in places(profile.spec.modality)[axis]]
    found: dict[str, Any] = {}
    for key in (key for key, value in own["values"].items() if value == LEFT):
        section = next((one for one in _sections(card, place) if _within(one, key)), {})
        wanted = [name for name in section if name not in own["values"]] if key == "kind" else []
        found |= {key: {}} if _within(section, key) else {}  # of several values, nothing by itself
        found |= {name: section[name] for name in (*_within(section, key), *wanted)}
    return own | {"card": found}


def _sections(card: Card, place: list[str]) -> list[dict[str, Any]]:
    """The parts of a card that may answer for a section of a profile, the nearest first, flat."""
    spec = card.spec.model_dump(mode="json")
    output = card.task.output.model_dump(mode="json")
    trained = spec.get("trained") or {}
    paths = [({"postprocess": output}, place), (trained, place), (spec, place)]
    parts = [part for root, path in paths if (part := _at(root, path)) is not None]
    return [_flat(part) for part in [*parts, spec["input"]]]


def _flat(part: Any) -> dict[str, Any]:
    """What is said, by dotted keys; of an empty table its own name."""
    empty = {key: one for key, one in part.items() if one == {}} if isinstance(part, dict) else {}
    return empty | {key: one for key, one in axes.flat(part).items() if one is not None}


def _within(section: Mapping[str, Any], key: str) -> list[str]:
    """The dotted keys of a field, and of those inside it."""
    return [name for name in section if name == key or name.startswith(f"{key}.")]


def _at(root: Any, path: list[str]) -> Any:
    for name in path:
        root = root.get(name) if isinstance(root, Mapping) else None
    return root
