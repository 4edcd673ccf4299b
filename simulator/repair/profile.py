"""The answer as a profile: what it extends, and only what is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from simulator.profile.document import read_value
from simulator.profile.load import find, load, name_of
from simulator.profile.paper_names import RESIZE, kernel


def document(
    deploy: str, name: str, summary: str, changes: Sequence[str], fields: Mapping[str, Any]
) -> str:
    """Return a profile as YAML.

    Args:
        deploy: what it extends: a profile's path or name.
        name: of the new profile.
        summary: in a sentence.
        changes: overrides of *deploy*, ``KEY=VALUE``, which are written down too.
        fields: dotted keys and their values, None for what is taken away.
    """
    place = find(deploy)
    given = (change.partition("=") for change in changes)
    every = [*((key, read_value(value)) for key, _, value in given), *fields.items()]
    found: dict[str, Any] = {}
    for key, value in every:
        _put(found, key.split("."), value)
    if isinstance(found.get("resize"), dict):
        inherited = load(deploy).spec.model_dump(exclude_none=True)["resize"]
        kept = found["resize"].items()
        found["resize"] = {k: v for k, v in kept if v is not None or k in inherited}
    whole = {
        "schema": 1,
        "name": name,
        "summary": summary,
        "extends": name_of(place) or str(place.resolve()),
        **found,
    }
    return yaml.safe_dump(
        whole, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )


def _put(found: dict[str, Any], key: Sequence[str], value: Any) -> None:
    """Set a dotted key; a resize that is written as a short name becomes its fields."""
    name, *inner = key
    if name == "resize" and not inner and isinstance(value, str):
        value = kernel(value) if value in RESIZE else value
    if not inner:
        old = found.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        found[name] = {**old, **value} if both and old else value
        return
    below = found.get(name)
    if not isinstance(below, dict):
        below = found[name] = {}
    _put(below, inner, value)
