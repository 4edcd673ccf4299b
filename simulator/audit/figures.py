"""The content of an audit's ``summary.json``: what its pairs have found, and what the rules say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.audit.document import TRAIN, Asked, Audit
from simulator.errors import RunError
from simulator.pipeline.stack import Chosen
from simulator.profile import axes
from simulator.profile.modality import axes_of
from simulator.results.store import PAIRS, SUMMARY, TAILS

PAIR, TAIL = "pair", "tail"
"""What a rule is about: the answers of a pair, or its rounds."""
SHOWN = ("p50", "p90", "p99")
_FLIPS = ("count", "units", "rate", "ci95")


def summary(folder: Path, audit: Audit, chosen: Mapping[str, Chosen]) -> dict[str, Any]:
    """Return what an audit found.

    Args:
        folder: of its run, whose pairs are finished.
        audit: what was asked.
        chosen: the stacks.

    Returns:
        ``stacks``, each with its profile and the evidence of every axis; ``pairs``, one for each
        model and deployment stack; ``gate`` with the outcome of every rule as
        :func:`simulator.analysis.gate.evaluate` gives it, besides ``model``, ``deploy``, ``of``
        (``pair`` or ``tail``) and ``because``.

    Raises:
        RunError: the run of a pair is damaged.
    """
    return collect(lambda place: _read(folder / place), audit, chosen)


def collect(
    read: Callable[[str], Mapping[str, Any]], audit: Audit, chosen: Mapping[str, Chosen]
) -> dict[str, Any]:
    """Return what :func:`summary` does, where the summaries of pairs lie anywhere.

    Args:
        read: from ``pairs/MODEL/STACK`` or ``tail/MODEL/STACK`` to the summary there.
        audit: what was asked.
        chosen: the stacks.

    Raises:
        RunError: a summary is of other rules than the document's.
    """
    spec = audit.spec
    pairs, rules = [], []
    for model in spec.models:
        for deploy in spec.deploy:
            place = f"{PAIRS}/{model}/{deploy}"
            found = read(place)
            asked = [one for one in audit.rules if one.is_for(model, deploy)]
            own = _outcomes(found, asked, model, deploy, PAIR)
            timed = None
            if audit.timed(deploy):
                timed = read(f"{TAILS}/{model}/{deploy}")
                asked = [one for one in audit.tail_rules if one.is_for(model, deploy)]
                own += _outcomes(timed, asked, model, deploy, TAIL)
            pairs.append(_pair(model, deploy, found, timed))
            pairs[-1]["passed"] = not any(one["failed"] for one in own)
            rules += own
    known = axes_of(*(profile.spec for profile, _ in chosen.values()))
    return {
        "schema": 1,
        "command": "audit",
        "name": spec.name,
        "summary": spec.summary,
        "train": chosen[TRAIN][0].name,
        "stacks": {
            name: {
                "profile": one[0].name,
                "overrides": list(one[0].overrides),
                "evidence": {axis: str(axes.evidence(*one, axis)[0]) for axis in known},
                "claimed": [axis for axis in known if axes.is_claimed(one[0], axis)],
            }
            for name, one in chosen.items()
        },
        "pairs": pairs,
        "gate": {"passed": all(pair["passed"] for pair in pairs), "rules": rules},
    }


def _outcomes(
    found: Mapping[str, Any], asked: Sequence[Asked], model: str, deploy: str, of: str
) -> list[dict[str, Any]]:
    outcomes = found["gate"]["rules"]
    if [one["rule"] for one in outcomes] != [one.rule.text for one in asked]:
        raise RunError(f"{of}s/{model}/{deploy}: its rules are not those of the document")
    return [
        {"model": model, "deploy": deploy, "of": of, "because": rule.because, **outcome}
        for rule, outcome in zip(asked, outcomes, strict=True)
    ]


def _pair(
    model: str, deploy: str, found: Mapping[str, Any], timed: Mapping[str, Any] | None
) -> dict[str, Any]:
    metric, source = found["metric"], timed or found
    return {
        "model": model,
        "deploy": deploy,
        "folder": f"{PAIRS}/{model}/{deploy}",
        "tail": f"{TAILS}/{model}/{deploy}" if timed else None,
        "card": found["model"],
        "task": found["task"],
        "unit": found["unit"],
        "metric": metric,
        "samples": found["samples"],
        "skipped": found["skipped"],
        "train": found["train"]["metric"].get(metric),
        "value": found["deploy"]["metric"].get(metric),
        "delta": found["delta"].get(metric),
        "flips": {key: found["flips"][key] for key in _FLIPS},
        "latency_ms": {
            side: {key: source["latency_ms"][side]["total"].get(key) for key in SHOWN}
            for side in ("train", "deploy")
        },
        "differing": [entry["axis"] for entry in found["axes"]],
        "bit_equal": found["controls"]["self"]["bit_equal"],
        "seconds": found["seconds"] + (timed["seconds"] if timed else 0),
        "warnings": [*found["warnings"], *(timed["warnings"] if timed else ())],
    }


def _read(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: not a run, or a damaged one: {error}") from error
    return found
