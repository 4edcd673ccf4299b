"""A profile that extends another one, and says only what differs."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from simulator.profile.document import changes
from simulator.profile.lookup import find, name_of


def derived(
    base: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
    name: str,
    summary: str,
    source: str = "",
) -> str:
    """Return a profile as YAML.

    Args:
        base: what it extends: a profile's path or name.
        before: the values of that profile, without fields that are not set.
        after: the values of the new one, likewise.
        name: of the new one.
        summary: in a sentence.
        source: what its claims cite; empty: it claims nothing of what it changes.
    """
    found = changes(before, after)
    found.pop("evidence", None)
    place = find(base)
    spec = {
        "schema": 1,
        "name": name,
        "summary": summary,
        "extends": name_of(place) or str(place.resolve()),
        **found,
    }
    if found and source:
        spec["evidence"] = {section: {"kind": "assumed", "source": source} for section in found}
    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=100)
