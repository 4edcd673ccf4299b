"""The profile that reads rendered images and changes no pixel of them."""

from __future__ import annotations

from typing import Any

from simulator.profile.implementations import Choices, extra_stages
from simulator.profile.load import load
from simulator.profile.profile import Profile

PLAIN = "pillow_fp32"
"""The stack whose decoder reads them, and whose resizer has nothing to do."""
_RENDERED = ("decode", "color", "resize", "geometry")


def reader(profile: Profile, choices: Choices) -> dict[str, Any]:
    """Return the document of a profile that has the rest of a stack behind its pixels.

    Args:
        profile: the stack that was rendered.
        choices: its implementations.
    """
    found: dict[str, Any] = profile.spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"extends"}
    )
    plain = load(PLAIN).spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for stage, _ in extra_stages(profile, choices):  # they are in the pixels already
        found.pop(stage.section[0], None)
    color = {"format": "rgb", "order": found["color"]["order"]}
    evidence = found.get("evidence", {})
    return {
        **found,
        "schema": 1,
        "name": f"{profile.name}_rendered",
        "summary": f"reads what simulate render wrote of {profile.name}, and changes no pixel",
        "decode": plain["decode"],
        "color": color,
        "resize": plain["resize"],
        "geometry": {"kind": "squash"},
        "evidence": {name: one for name, one in evidence.items() if name not in _RENDERED},
    }
