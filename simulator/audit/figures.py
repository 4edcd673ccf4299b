"""The content of an audit's ``summary.json``: what its pairs have found, and what the rules say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from simulator.analysis.outcomes import at_chance, for_stacks
from simulator.audit.document import TRAIN, Audit, DocumentRule
from simulator.errors import RunError
from simulator.experiments.summary import SIDES, TOTAL
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes
from simulator.profile.modality import axes_of
from simulator.report.verdict import concluded
from simulator.results.audits import (
    AuditedPair,
    AuditedRule,
    AuditedStack,
    AuditGate,
    AuditSummary,
    PairFlips,
    PairLatency,
    ShownLatency,
)
from simulator.results.layout import PAIRS_FOLDER, TAILS_FOLDER
from simulator.results.pair import PairSummary
from simulator.results.shared import Summary
from simulator.results.tail import TailSummary
from simulator.typed import plain

PAIR: Literal["pair"] = "pair"
TAIL: Literal["tail"] = "tail"
"""What a rule is about: the answers of a pair, or its rounds."""
_KEPT = (
    "task", "unit", "sample_unit", "metric", "samples", "skipped", "failed", "failures",
)  # fmt: skip
"""What an audit says of a pair as the pair's own summary does."""


def collect(
    read: Callable[[str], Summary], audit: Audit, chosen: Mapping[str, ResolvedProfile]
) -> AuditSummary:
    """Return what an audit found.

    Args:
        read: from ``pairs/MODEL/STACK`` or ``tail/MODEL/STACK`` to the summary there.
        audit: what was asked.
        chosen: the stacks.

    Returns:
        One pair for each model and deployment stack, and the outcome of every rule.

    Raises:
        RunError: a summary is of another command, or of other rules than the document's.
    """
    spec = audit.spec
    pairs: list[AuditedPair] = []
    rules: list[AuditedRule] = []
    for model in spec.models:
        for deploy in spec.deploy:
            place = f"{PAIRS_FOLDER}/{model}/{deploy}"
            found = of_shape(read(place), PairSummary, place)
            asked = audit.of_pair(model, deploy)
            own = _outcomes(found, asked, model, deploy, PAIR)
            timed = None
            if audit.timed(deploy):
                place = f"{TAILS_FOLDER}/{model}/{deploy}"
                timed = of_shape(read(place), TailSummary, place)
                asked = audit.of_rounds(model, deploy)
                own += _outcomes(timed, asked, model, deploy, TAIL)
            doubtful = bool(audit.rules or audit.tail_rules) and at_chance(found.warnings)
            passed = not doubtful and not any(rule.failed for rule in own)
            pairs.append(_pair(model, deploy, found, timed, passed))
            rules += own
    known = axes_of(*(profile.spec for profile, _ in chosen.values()))
    summary = AuditSummary(
        name=spec.name,
        summary=spec.summary,
        train=chosen[TRAIN][0].name,
        stacks={
            name: AuditedStack(
                profile=one[0].name,
                overrides=list(one[0].overrides),
                evidence={axis: str(axes.evidence(*one, axis)[0]) for axis in known},
                claimed=[axis for axis in known if axes.is_claimed(one[0], axis)],
            )
            for name, one in chosen.items()
        },
        pairs=pairs,
        gate=AuditGate(passed=all(pair.passed for pair in pairs), rules=rules),
    )
    return concluded(summary)


S = TypeVar("S", bound=Summary)


def of_shape(found: Summary, shape: type[S], where: str) -> S:
    """Return a summary that must be of one command.

    Raises:
        RunError: it is of another one.
    """
    if not isinstance(found, shape):
        raise RunError(f"{where}: a summary of {found.command}")
    return found


def _outcomes(
    found: Summary,
    asked: Sequence[DocumentRule],
    model: str,
    deploy: str,
    of: Literal["pair", "tail"],
) -> list[AuditedRule]:
    outcomes = found.gate.rules
    written = [
        (each, document_rule)
        for document_rule in asked
        for each in for_stacks(document_rule.rule, found)
    ]
    if [rule_outcome.rule for rule_outcome in outcomes] != [rule.text for rule, _ in written]:
        raise RunError(f"{of}s/{model}/{deploy}: its rules are not those of the document")
    return [
        AuditedRule(model=model, deploy=deploy, of=of, because=rule.because, **plain(outcome))
        for (_, rule), outcome in zip(written, outcomes, strict=True)
    ]


def _pair(
    model: str, deploy: str, found: PairSummary, timed: TailSummary | None, passed: bool
) -> AuditedPair:
    metric = found.metric
    totals = {
        side: (timed.latency_ms[side] if timed else found.latency_ms[side])[TOTAL] for side in SIDES
    }
    return AuditedPair(
        **{name: found[name] for name in _KEPT},
        model=model,
        deploy=deploy,
        folder=f"{PAIRS_FOLDER}/{model}/{deploy}",
        tail=f"{TAILS_FOLDER}/{model}/{deploy}" if timed else None,
        card=found.model,
        train=found.train.metric.get(metric),
        value=found.deploy.metric.get(metric),
        delta=found.delta.get(metric),
        flips=PairFlips(**{key: found.flips[key] for key in PairFlips.model_fields}),
        latency_ms=PairLatency(
            **{
                side: ShownLatency(p50=total.p50, p90=total.p90, p99=total.p99)
                for side, total in totals.items()
            }
        ),
        differing=[entry.axis for entry in found.axes],
        bit_equal=found.controls.self_.bit_equal,
        seconds=(found.seconds or 0) + ((timed.seconds or 0) if timed else 0),
        warnings=[*found.warnings, *(timed.warnings if timed else ())],
        passed=passed,
    )
