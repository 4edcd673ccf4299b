"""The summary of a repair, and its answer as a profile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.experiments.answers import Answers
from simulator.experiments.common import named
from simulator.experiments.search.space import Pick
from simulator.experiments.session import Session
from simulator.notices import merged
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes
from simulator.profile.derived import derived
from simulator.profile.load import load
from simulator.profile.reference import BASE, read_reference
from simulator.repair.passes import Passes, flips
from simulator.repair.space import EXACT, NAME, Candidate, Space
from simulator.results.json_text import finite
from simulator.results.repair import (
    Change,
    Confirmation,
    Difference,
    Finalist,
    Repaired,
    RepairSummary,
    Tried,
)

REPAIRED = "repaired.yaml"
"""The answer as a profile, a file of the run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a repair has found.

    Attributes:
        candidates: the stacks that are told of, the cheapest first.
        seen: of each the records, and those of the training stack, on the samples it ran on.
        front: those on Pareto's front.
        ms: what each option whose cost is measured costs, in milliseconds.
        finalists: whether each passed in the search, the cheapest first.
        confirmed: their figures, and those of the deployment as it is.
        chosen: the cheapest that passes; None where none does.
        nearest: that stack, or else the one with the fewest flips.
        repaired: what each of its changes gives, by change and figure; empty: it was not measured.
        how: the fields of the summary that depend on how was searched.
    """

    candidates: Sequence[Candidate]
    seen: Mapping[str, Answers]
    front: Collection[str]
    ms: Mapping[Pick, float]
    finalists: Mapping[str, bool]
    confirmed: Mapping[str, Confirmation]
    chosen: str | None
    nearest: Candidate
    repaired: Mapping[str, Mapping[str, Repaired]]
    how: Mapping[str, Any]


def repaired_profile(nearest: Candidate, deploy: str) -> str:
    """Return the answer as a profile: what it extends, and only what is changed.

    Args:
        nearest: the answer.
        deploy: what names the deployment; code and programs extend what they say nothing of.
    """
    base = BASE if read_reference(deploy) else deploy
    before, after = (
        profile.spec.model_dump(by_alias=True, exclude_none=True)
        for profile in (load(base), nearest.chosen[0])
    )
    name, told = after["name"], f"with {nearest.name}" if nearest.picks else "as it is"
    return derived(base, before, after, f"{name}-repaired", f"{name} {told}")


def summarized(
    session: Session,
    pair: Mapping[str, ResolvedProfile],
    space: Space,
    outcome: Outcome,
    passes: Passes,
    gate: Sequence[str],
) -> RepairSummary:
    """Return the summary, without its gate and its verdict."""
    card, nearest = session.card, outcome.nearest
    answer = outcome.confirmed[nearest.name]
    tried = {candidate.name: _tried(space, candidate, outcome) for candidate in outcome.candidates}
    return RepairSummary(
        **outcome.how,
        model=card.spec.name,
        task=card.task.name,
        metric=card.task.headline,
        unit=card.unit,
        samples=answer.samples,
        failed=answer.failed,
        sample_unit=card.modality.unit,
        warnings=[*merged(passes.notices), *session.notes],
        train=named(pair["train"]),
        deploy=named(pair["deploy"]),
        rules=list(gate),
        options=space.repairs.spec.name,
        order=list(space.order),
        axes={axis: [*options] for axis, options in space.repairs.spec.axes.items()},
        combinations=len(space.candidates),
        left_out={**space.repairs.spec.left_out, **space.left_out, **passes.left_out},
        bound=EXACT,
        labelled=answer.labelled,
        chosen=outcome.chosen,
        nearest=nearest.name,
        finalists=[
            Finalist(**dict(tried[name]), passed=passed, confirmed=outcome.confirmed[name])
            for name, passed in outcome.finalists.items()
        ],
        before=outcome.confirmed[NAME],
        tried=list(tried.values()),
        delta=answer.delta,
        flips=answer.flips,
        changes=[_change(space, pick, outcome) for pick in nearest.picks],
        difference=[
            Difference(axis=axis, key=key, deploy=_plain(a), repaired=_plain(b))
            for axis, key, a, b in axes.differences(pair["deploy"], nearest.chosen)
        ],
        remains=axes.differing(pair["train"], nearest.chosen),
        profile=REPAIRED,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _tried(space: Space, candidate: Candidate, outcome: Outcome) -> Tried:
    own = outcome.seen[candidate.name]
    found = {
        "name": candidate.name,
        "changes": ["/".join(pick) for pick in candidate.picks],
        "cost": dict(space.cost(candidate.picks, outcome.ms)),
        "samples": len(own.items),
        "flip_rate": flips(own, candidate.name),
        "value": own.score(candidate.name).metrics[own.task.headline],
        "front": candidate.name in outcome.front,
    }
    return Tried.model_validate(finite(found))


def _change(space: Space, pick: Pick, outcome: Outcome) -> Change:
    option = space.option(pick)
    found = {
        "axis": pick[0],
        "option": pick[1],
        "set": axes.flat(option.set_),
        "why": option.why,
        "cost": space.cost((pick,), outcome.ms),
        "repaired": dict(outcome.repaired.get("/".join(pick), {})),
    }
    return Change.model_validate(found)
