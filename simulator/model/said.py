"""What a model card says where a profile leaves it to the model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from simulator.model.card import Card
from simulator.profile import axes
from simulator.profile.document import Key, Values, inside
from simulator.profile.implementations import Choices
from simulator.profile.modality import places
from simulator.profile.profile import Profile

LEFT = "model"
"""The value of a profile for: as the card says."""


@dataclass(frozen=True, slots=True)
class AxisSettings:
    """What a stack says on an axis, how that is known, and what it leaves to the card.

    Attributes:
        values: of the profile, by dotted key.
        evidence: the kind of evidence.
        source: where that is known from.
        claimed: whether the profile itself claims it.
        card: the card's values by the same keys; where ``kind`` is left to it, also what only the
            card says.
    """

    values: Values
    evidence: str
    source: str
    claimed: bool
    card: Values

    def without(self, keys: Collection[str]) -> AxisSettings:
        """Return the same without the values of some keys."""
        own, left = (
            {key: value for key, value in part.items() if key not in keys}
            for part in (self.values, self.card)
        )
        return replace(self, values=own, card=left)


def described(profile: Profile, choices: Choices, axis: str, card: Card) -> AxisSettings:
    """Return what a stack and its model's card say on an axis."""
    values = axes.flat(axes.value(profile, choices, axis))
    kind, source = axes.evidence(profile, choices, axis)
    found: Values = {}
    for key in (key for key, value in values.items() if value == LEFT):
        sections = _sections(card, places(profile.spec.modality)[axis])
        section = next((one for one in sections if _within(one, key)), {})
        wanted = [name for name in section if name not in values] if key == "kind" else []
        found |= {key: {}} if _within(section, key) else {}  # of several values, nothing by itself
        found |= {name: section[name] for name in (*_within(section, key), *wanted)}
    if values == {"value": LEFT}:
        own = card.modality.in_force(profile, card.spec).get(axis)
        found |= {"value": {}, **own} if own else {}
    return AxisSettings(values, str(kind), source, axes.is_claimed(profile, axis), found)


def _sections(card: Card, place: Key) -> list[Values]:
    """The parts of a card that may answer for a section of a profile, the nearest first, flat."""
    spec = card.spec.model_dump(mode="json")
    output = card.task.output.model_dump(mode="json")
    trained = spec.get("trained") or {}
    roots = ({"postprocess": output}, trained, spec)
    parts = [part for root in roots if (part := inside(root, place)) is not None]
    return [_flat(part) for part in [*parts, spec["input"]]]


def _flat(part: object) -> Values:
    """What is said, by dotted keys; of an empty table its own name."""
    empty = {key: one for key, one in part.items() if one == {}} if isinstance(part, dict) else {}
    return empty | {key: one for key, one in axes.flat(part).items() if one is not None}


def _within(section: Values, key: str) -> list[str]:
    """The dotted keys of a field, and of those inside it."""
    return [name for name in section if name == key or name.startswith(f"{key}.")]
