"""What changed between two manifests of one pair, line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.audit.trees import at, leaves
from simulator.experiments.summary import SIDES
from simulator.report.words import some
from simulator.results.json_text import JsonObject

_MACHINE = ("platform", "python", "cpu", "versions")
_STACK = ("profile", "recordings", "choices", "artifact", "effective")
_INPUTS = ("profile", "recordings")
_SILENT = re.compile(
    r"\w+ (profile\.(name|summary|extends|evidence|(decode|runtime)\.recording)"
    r"|choices\.\d+\.(versions|options\.recording))\b"
)
"""Parts of a stack that are told elsewhere, or that no answer depends on: of a recording, where it
lies."""
_TOLD = frozenset(
    {"train", "deploy", "profiles", "overrides", "model", "models", "data", "seed", "limit"}
)
"""Arguments of a request of which :func:`differences` tells the content."""
_NAMED = 5
"""Name at most this many."""
_MOST = 80
"""Characters of a value."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Differences:
    """What changed, a line each.

    Attributes:
        inputs: model, images, labels, profiles, recordings: with other inputs it is not a replay
            of the same audit.
        surroundings: versions, processor, what was made of the model, what a runtime has in force.
    """

    inputs: tuple[str, ...]
    surroundings: tuple[str, ...]


def differences(old: JsonObject, new: JsonObject, sides: Sequence[str] = SIDES) -> Differences:
    """Say which versions, hashes and values changed that the answers may depend on.

    Where something lies, when it was run, and on how many cores is nothing that they depend on.

    Args:
        old: the manifest of a pair, as recorded; whatever a stranger has written in it.
        new: of the pair as it was run again.
        sides: the stacks to look at.
    """
    inputs: list[str] = []
    for part in ("sha256", "spec", "labels"):
        inputs += _leaves(at(old, "model", part), at(new, "model", part), f"model {part}")
    inputs += _files(at(old, "data", "images"), at(new, "data", "images"), "sample")
    inputs += _files(at(old, "data", "truth"), at(new, "data", "truth"), "label")
    for part in ("seed", "limit", "batch"):
        inputs += _leaves(old.get(part), new.get(part), part)
    around: list[str] = []
    for part in _MACHINE:
        before, after = (at(one, "machine", part) for one in (old, new))
        if part == "cpu":
            around += _flags(at(before, "flags"), at(after, "flags"))
            before, after = ({"model": at(cpu, "model")} for cpu in (before, after))
        around += _leaves(before, after, {"versions": ""}.get(part, part))
    for side in sides:
        for part in _STACK:
            before, after = (at(one, "stacks", side, part) for one in (old, new))
            lines = _leaves(before, after, f"{side} {part}")
            (inputs if part in _INPUTS else around).extend(lines)
    return Differences(tuple(dict.fromkeys(inputs)), tuple(dict.fromkeys(around)))


def requested(old: JsonObject, new: JsonObject) -> list[str]:
    """Say what was asked otherwise, besides the stacks, the model and the data."""
    before, after = (at(one, "request") or {} for one in (old, new))
    asked = [
        {name: value for name, value in (at(one, "arguments") or {}).items() if name not in _TOLD}
        for one in (before, after)
    ]
    commands = _leaves(before.get("command"), after.get("command"), "command")
    return commands + _leaves(_given(asked[0]), _given(asked[1]), "")


def _given(arguments: JsonObject) -> dict[str, object]:
    """The arguments that ask for something; not those that say no, which is the default."""
    return {name: value for name, value in arguments.items() if value not in (None, False, [], 0)}


def _leaves(before: Any, after: Any, name: str) -> list[str]:
    """A line for every value of two trees that differs."""
    old, new = dict(leaves(before, name)), dict(leaves(after, name))
    return [
        f"{key}: {_short(old.get(key, _ABSENT))} → {_short(new.get(key, _ABSENT))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key, _ABSENT) != new.get(key, _ABSENT) and not _SILENT.match(key)
    ]


def _flags(before: Any, after: Any) -> list[str]:
    """Flags of the processor that came and went."""
    old, new = (set(map(str, one)) if isinstance(one, list) else set() for one in (before, after))
    lines = []
    if gone := sorted(old - new):
        lines.append(f"cpu.flags: without {_some(gone)}")
    if come := sorted(new - old):
        lines.append(f"cpu.flags: with {_some(come)}")
    return lines


def _files(before: Any, after: Any, what: str) -> list[str]:
    old, new = (one if isinstance(one, Mapping) else {} for one in (before, after))
    found = {
        "missing": [name for name in old if name not in new],
        "added": [name for name in new if name not in old],
        "changed": [name for name in old if name in new and old[name] != new[name]],
    }
    return [
        f"{len(names):,} {what}{'s' if len(names) > 1 else ''} {word}: {_some(names)}"
        for word, names in found.items()
        if names
    ]


def _some(names: list[str]) -> str:
    return some([_short(name) for name in names], _NAMED)


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    words = " ".join(str(value).split())
    return words if len(words) <= _MOST else f"{words[: _MOST - 1]}…"
