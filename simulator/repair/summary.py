"""The summary of a repair, and its answer as a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.experiments.session import Answers, Session
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.stack import Chosen
from simulator.profile import axes
from simulator.repair import profile
from simulator.repair.document import MEASURED
from simulator.repair.passes import Part, Passes, flips
from simulator.repair.search import Found
from simulator.repair.space import EXACT, NAME, Candidate, Pick, Picks, Space, fronts, written
from simulator.results.json_text import finite
from simulator.results.repair import (
    Change,
    Confirmation,
    Cost,
    Difference,
    Finalist,
    Repaired,
    RepairSummary,
    Rung,
    Tried,
)
from simulator.results.shared import Profile

REPAIRED = "repaired.yaml"
"""The answer as a profile, a file of the run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a repair has found.

    Attributes:
        ms: what each option whose cost is measured costs, in milliseconds.
        tried: the stacks that were searched, by name, the cheapest first.
        finalists: whether each passed in the search, the cheapest first.
        confirmed: their figures, and those of the deployment as it is.
        chosen: the cheapest that passes; None where none does.
        nearest: that stack, or else the one with the fewest flips.
        repaired: what each of its changes gives, by change and figure; empty: it was not measured.
        own: the fields of the summary that depend on how was searched.
    """

    ms: Mapping[Pick, float]
    tried: Mapping[str, Tried]
    finalists: Mapping[str, bool]
    confirmed: Mapping[str, Confirmation]
    chosen: str | None
    nearest: Candidate
    repaired: Mapping[str, Mapping[str, Repaired]]
    own: Mapping[str, Any]


def repaired_profile(
    space: Space, outcome: Outcome, chosen: Chosen, deploy: str, changes: Sequence[str]
) -> str:
    """Return the answer as a profile: what it extends, and only what is changed.

    Args:
        space: of the stacks.
        outcome: what was found.
        chosen: the deployment as it is.
        deploy: its path or name.
        changes: overrides of it, ``KEY=VALUE``.
    """
    name, nearest = chosen[0].name, outcome.nearest
    fields = written(space.repairs, nearest.picks)
    told = f"with {nearest.name}" if nearest.picks else "as it is"
    return profile.document(deploy, f"{name}-repaired", f"{name} {told}", changes, fields)


def summarized(
    session: Session,
    pair: Mapping[str, Chosen],
    space: Space,
    outcome: Outcome,
    passes: Passes,
    gate: Sequence[str],
) -> RepairSummary:
    """Return the summary, without its gate and its verdict.

    Args:
        session: the model and the samples.
        pair: training, and the deployment as it is.
        space: of the stacks.
        outcome: what was found.
        passes: what has run.
        gate: the rules as they were written.
    """
    card, nearest = session.card, outcome.nearest
    answer = outcome.confirmed[nearest.name]
    return RepairSummary(
        **outcome.own,
        model=card.spec.name,
        task=card.task.name,
        metric=card.task.headline,
        unit=card.unit,
        samples=answer.samples,
        failed=answer.failed,
        sample_unit=card.modality.unit,
        warnings=[*merged(passes.notices), *session.notes],
        train=_named(pair["train"]),
        deploy=_named(pair["deploy"]),
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
            Finalist(**dict(outcome.tried[name]), passed=passed, confirmed=outcome.confirmed[name])
            for name, passed in outcome.finalists.items()
        ],
        before=outcome.confirmed[NAME],
        tried=list(outcome.tried.values()),
        delta=answer.delta,
        flips=answer.flips,
        changes=[
            _change(space, pick, outcome.ms, outcome.repaired.get("/".join(pick), {}))
            for pick in nearest.picks
        ],
        difference=[
            Difference(axis=axis, key=key, deploy=_plain(a), repaired=_plain(b))
            for axis, key, a, b in axes.differences(pair["deploy"], nearest.chosen)
        ],
        remains=axes.differing(pair["train"], nearest.chosen),
        profile=REPAIRED,
    )


def _named(chosen: Chosen) -> Profile:
    return Profile(profile=chosen[0].name, overrides=list(chosen[0].overrides))


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def searched(space: Space, found: Found, part: Part) -> dict[str, Any]:
    """Return the fields of a summary that a search with a confirmation gives.

    Args:
        space: of the stacks.
        found: by the search.
        part: the records of the confirmation, of the finalists and the deployment as it is.
    """
    seen, unseen = found.part.answers, part.answers
    return {
        "skipped": unseen.skipped + seen.skipped,
        "skipped_in_search": seen.skipped,
        "exact": len(found.rounds) == 1,
        "rungs": [
            Rung(samples=one.samples, stacks=one.stacks, dropped=one.dropped)
            for one in found.rounds
        ],
        "searched": len(seen.items),
        "family": len(unseen.names) - 1,
        "latency_ms": {
            name: float(np.median(part.total(name))) / 1e6 for name in unseen.names
        },
    }  # fmt: skip


def through_deploy(space: Space) -> list[Notice]:
    """Return what users should know of a search that calibrates all stacks alike."""
    quantizers = (one.chosen[0].spec.precision.quantizer for one in space.candidates)
    calibrated = any(one and one.calibration for one in quantizers)
    if not calibrated:
        return []
    text = (
        "in the search INT8 is calibrated through the pixels of the deployment as it is, in the "
        "confirmation through each stack's own, and always on samples of the search half"
    )
    return [Notice(Kind.CALIBRATION, text, ("deploy",))]


def last_round(space: Space, found: Found) -> dict[str, Tried]:
    """Return the stacks of the last round of a search, by name, the cheapest first."""
    own = dict.fromkeys((one.name for one in found.candidates), found.part.answers)
    points = {
        one.name: (flips(own[one.name], one.name), space.cost(one.picks, found.ms).ms)
        for one in found.candidates
    }
    return tried(space, found.candidates, own, found.ms, fronts(points)[0])


def tried(
    space: Space,
    candidates: Sequence[Candidate],
    answers: Mapping[str, Answers],
    ms: Mapping[Pick, float],
    front: Sequence[str] = (),
) -> dict[str, Tried]:
    """Return what was seen of stacks, by name.

    Args:
        space: of the stacks.
        candidates: the stacks.
        answers: of each the records, and those of the training stack, on the samples it ran on.
        ms: see :class:`Outcome`.
        front: the stacks on Pareto's front.
    """
    return {
        one.name: Tried.model_validate(
            finite(
                {
                    "name": one.name,
                    "changes": ["/".join(pick) for pick in one.picks],
                    "cost": dict(_cost(space, one.picks, ms)),
                    "samples": len(own.items),
                    "flip_rate": flips(own, one.name),
                    "value": own.score(one.name).metrics[own.task.headline],
                    "front": one.name in front,
                }
            )
        )
        for one in candidates
        for own in (answers[one.name],)
    }


def _cost(space: Space, picks: Picks, ms: Mapping[Pick, float]) -> Cost:
    whole = space.cost(picks, ms)
    costs = [space.option(pick).cost for pick in picks]
    return Cost(
        ms=round(whole.ms, 6),
        measured=any(one.ms == MEASURED for one in costs),
        hours=whole.hours,
        memory_mib=whole.memory_mib,
        work=[one.work for one in costs if one.work],
    )


def _change(
    space: Space, pick: Pick, ms: Mapping[Pick, float], repaired: Mapping[str, Repaired]
) -> Change:
    option = space.option(pick)
    return Change.model_validate(
        {
            "axis": pick[0],
            "option": pick[1],
            "set": axes.flat(option.set_),
            "why": option.why,
            "cost": dict(_cost(space, (pick,), ms)),
            "repaired": dict(repaired),
        }
    )
