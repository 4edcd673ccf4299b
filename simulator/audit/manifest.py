"""The manifest of an audit, and the profiles that its bundle holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator import checkout, machine, registry
from simulator.audit.document import Audit
from simulator.digests import sha256
from simulator.experiments.session import Session
from simulator.pipeline.stack import Chosen
from simulator.results.json_text import finite
from simulator.results.manifest import AuditManifest
from simulator.results.read import read_manifest
from simulator.results.taken import cannot_resume, changed
from simulator.typed import plain

_SAME = ("stacks", "models", "seed", "limit")
"""What of the manifest must not change until the audit is resumed, besides the document."""


def manifest(
    request: Mapping[str, Any],
    audit: Audit,
    chosen: Mapping[str, Chosen],
    sources: Mapping[str, tuple[Path | None, Path | None]],
    sessions: Mapping[str, Session],
) -> AuditManifest:
    """Return what is known of an audit before its first pair; its status is ``running``.

    Args:
        request: how another process can ask for it again.
        audit: what was asked.
        chosen: the stacks.
        sources: for each model its card and its images; None are the built-in ones.
        sessions: the models with their images, opened.
    """
    versions: dict[str, str | None] = {}
    for _, choices in chosen.values():
        for choice in choices.values():
            versions |= registry.versions(choice.backend)
    found: dict[str, Any] = {
        "status": "running",
        "command": request["command"],
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": checkout.commit(),
        "machine": machine.describe(versions),
        "document": {"path": str(audit.path.resolve()), "sha256": sha256(audit.path)},
        "seed": audit.spec.seed,
        "limit": audit.spec.limit,
        "models": {
            model: {
                "name": session.card.spec.name,
                "card": _place(sources[model][0]),
                "data": _place(sources[model][1]),
                "sha256": session.source.digest,
                "card_sha256": sha256(session.card.path),
            }
            for model, session in sessions.items()
        },
        "under": next((plain(one.condition) for one in sessions.values() if one.condition), None),
        "stacks": {name: resolved(own) for name, own in chosen.items()},
        "request": dict(request),
    }
    return AuditManifest.model_validate(finite(found))


def resolved(chosen: Chosen) -> dict[str, Any]:
    """Return a profile that needs no other: what it inherits and overrides is written in it.

    It extends nothing, so that what it removed of another stays removed.
    """
    profile, _ = chosen
    found: dict[str, Any] = profile.spec.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"extends"}
    )
    return found


def check_same(folder: Path, start: AuditManifest) -> str:
    """Return when an audit was begun; refuse to go on with another one.

    Args:
        folder: of its run.
        start: the manifest of the one that is asked for now.

    Raises:
        RunError: they are not the same.
    """
    old = read_manifest(folder)
    parts = changed(old, plain(start), _SAME)
    said = old.get("document")
    if not isinstance(said, Mapping) or said.get("sha256") != start.document.sha256:
        parts.insert(0, "document")
    if parts:
        raise cannot_resume(folder, parts)
    return str(old.get("created"))


def _place(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())
