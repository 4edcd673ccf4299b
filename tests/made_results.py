"""Manifests and summaries that tests make up: whole ones, as the models want them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simulator.results.json_text import finite
from simulator.results.manifest import RunManifest
from simulator.results.suites import StepSummary
from simulator.results.summaries import shape_of

AXIS = {
    "values": {"backend": "pillow"}, "evidence": "native", "source": "PIL/Image.py",
    "claimed": True,
}  # fmt: skip


def manifest(
    command: str = "run", sides: Iterable[str] = ("train",), names: Sequence[str] = ("a.jpg",)
) -> dict[str, Any]:
    """What a finished run says of itself."""
    return {
        "schema": 1, "status": "complete", "created": "2026-11-21T15:05:20+0000", "seed": 0,
        "batch": 1, "limit": None, "overrides": [],
        "request": {"command": command, "arguments": {"model": None, "limit": len(names)}},
        "machine": {
            "cpu": {"model": "a processor", "flags": []}, "cores": 2, "usable_cores": [0, 1],
            "platform": "Linux", "python": "3.11.7", "versions": {"numpy": "2.4.6"},
        },
        "model": {
            "card": "/model.yaml", "spec": {"name": "colors"}, "sha256": "0" * 64,
            "labels": ["red", "green"],
        },
        "data": {
            "root": "/data", "images": dict.fromkeys(names, "1" * 64),
            "truth": dict.fromkeys(names),
        },
        "stacks": {
            side: {
                "profile": {"name": f"{side}_fp32"}, "artifact": {"key": "", "sha256": "2" * 64},
                "choices": [], "recordings": {}, "effective": {"compute": "fp32"},
                "axes": {"decoder": dict(AXIS)},
            }
            for side in sides
        },
    }  # fmt: skip


def start(**changed: Any) -> RunManifest:
    """A manifest as a job begins a run with."""
    return RunManifest.model_validate(manifest() | {"status": "running"} | changed)


def step(**values: float) -> StepSummary:
    """The smallest summary."""
    return StepSummary(metric="top1", values=dict(values))


def notice(text: str, kind: str = "data", *about: str) -> dict[str, Any]:
    """A notice as it is in a file."""
    return {"kind": kind, "text": text, "about": list(about)}


def report(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary with what is in every one of its command, for what a test does not care about."""
    kind = "load" if summary.get("scenario") in ("Offline", "Server") else summary["command"]
    fields = shape_of(kind).model_fields
    others = {
        field.alias or name: field.get_default(call_default_factory=True)
        for name, field in fields.items()
        if not field.is_required()
    }
    return finite({**others, "seconds": 1.0, **summary})
