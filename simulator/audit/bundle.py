"""Bundles: what an audit was asked, ran on and found, in one file that a second person can check.

``digests.json`` in it has the SHA-256 of every other member. Images, models and their weights are
not in it; their digests are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.audit import archive
from simulator.audit.archive import Archive
from simulator.errors import RunError
from simulator.files import hash_file, make_durable
from simulator.latency.rounds import LATENCIES
from simulator.results.json_text import JsonObject, parse_object
from simulator.results.layout import (
    BUNDLE,
    CARDS_FOLDER,
    DOCUMENT,
    MANIFEST,
    PAIRS_FOLDER,
    PROFILES_FOLDER,
    RECORDS,
    SUMMARY,
    TAILS_FOLDER,
)

DIGESTS = "digests.json"
SCHEMA = 1
REQUIRED = (DOCUMENT, MANIFEST, SUMMARY)
MOST_TEXT = 2**28
"""Bytes of a JSON or YAML member: the manifest of a million images."""
MOST_DIGESTS = 2**25
"""Bytes of the list of digests of as many members as a bundle may have."""
MOST_RECORDS = 2**31
"""Bytes of the records, or of the latencies, of one pair."""
_ALGORITHM = "sha256"
_TAKEN = {
    PROFILES_FOLDER: (".yaml",),
    CARDS_FOLDER: (".yaml",),
    PAIRS_FOLDER: (MANIFEST, SUMMARY, RECORDS),
    TAILS_FOLDER: (MANIFEST, SUMMARY, RECORDS, LATENCIES),
}
"""By folder, how the names end of those files that a bundle has."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a bundle.

    Attributes:
        members: how many there should be.
        problems: a line for each that was changed, is missing or was added; none: it is intact.
        sha256: of the whole file; who signs an audit signs this.
    """

    members: int
    problems: tuple[str, ...]
    sha256: str


def write(folder: Path, own: Mapping[str, bytes]) -> str:
    """Write the bundle of an audit's run into its folder, and return the file's SHA-256.

    Args:
        folder: the run's.
        own: members whose content is not that of the file in the folder.

    Raises:
        RunError: it cannot be written.
    """
    place = folder / BUNDLE
    draft = place.with_name(f".{BUNDLE}.part")
    try:
        names = sorted({*REQUIRED, *_below(folder)} - set(own))
        digests = {name: hash_file(folder / name) for name in names}
        digests |= {name: hashlib.sha256(content).hexdigest() for name, content in own.items()}
        archive.write(draft, folder, names, {**own, DIGESTS: listed(digests)})
        make_durable(draft)
        os.replace(draft, place)
        return hash_file(place)
    except OSError as error:
        raise RunError(f"{place}: cannot be written: {error.strerror or error}") from error


def listed(digests: Mapping[str, str]) -> bytes:
    """Return the list of digests of a bundle's members, by their names."""
    content = {"schema": SCHEMA, "algorithm": _ALGORITHM, "digests": dict(sorted(digests.items()))}
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _below(folder: Path) -> list[str]:
    return [
        place.relative_to(folder).as_posix()
        for inner, endings in _TAKEN.items()
        for place in sorted((folder / inner).rglob("*"))
        if place.is_file() and place.name.endswith(endings) and not place.name.startswith(".")
    ]


def check(packed: Archive, required: Sequence[str] = REQUIRED) -> Checked:
    """Hold every member of an open bundle against its digest.

    Args:
        packed: the bundle.
        required: members that every such bundle has; by default those of an audit.

    Raises:
        RunError: it has no list of digests that can be read, or lacks what every bundle has.
    """
    digests = _digests(packed, required)
    there = set(packed.names) - {DIGESTS}
    problems = []
    for name in sorted(there | set(digests)):
        if name not in there:
            problems.append(f"missing: {name}")
        elif name not in digests:
            problems.append(f"added: {name}")
        else:
            try:
                changed = packed.sha256(name) != digests[name]
            except RunError as error:
                problems.append(str(error).removeprefix(f"{packed.path}: "))
            else:
                problems += [f"changed: {name}"] if changed else []
    return Checked(len(digests), tuple(problems), hash_file(packed.path))


def _digests(packed: Archive, required: Sequence[str]) -> Mapping[str, str]:
    said = parse_object(packed.read(DIGESTS, MOST_DIGESTS), f"{packed.path}: {DIGESTS}")
    found = said.get("digests")
    if said.get("schema") != SCHEMA or said.get("algorithm") != _ALGORITHM:
        raise RunError(f"{packed.path}: {DIGESTS} is not of schema {SCHEMA} with {_ALGORITHM}")
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise RunError(f"{packed.path}: {DIGESTS} has no digest of each member")
    if lost := [name for name in required if name not in found]:
        raise RunError(f"{packed.path}: {DIGESTS} lacks {', '.join(lost)}, which every one has")
    return found


def read_json(packed: Archive, name: str) -> JsonObject:
    """Return a member that is a JSON object.

    Raises:
        RunError: it is not there, or is none.
    """
    return parse_object(packed.read(name, MOST_TEXT), f"{packed.path}: {name}")
