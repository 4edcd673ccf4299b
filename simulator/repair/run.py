"""``simulate repair``: of what a device can do, the cheapest stack that passes the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator.command.experiment import Experiment
from simulator.data.folder import Item
from simulator.errors import RunError, UserError
from simulator.experiments.common import pair_of, refuse_missing, unasked_notices
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result
from simulator.experiments.job import judged as judged_by_gate
from simulator.experiments.search.gate import SequentialGate
from simulator.experiments.search.steps import Steps
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES
from simulator.notices import Kind, Notice
from simulator.pipeline.adapted import refuse_adapting
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes
from simulator.repair import calibration, confirm, raced
from simulator.repair import space as spaces
from simulator.repair.confirm import Gate
from simulator.repair.document import Repairs, load_repairs
from simulator.repair.experiment import RepairOptions
from simulator.repair.offered import offered
from simulator.repair.passes import Passes, flip_rate, flips, latency
from simulator.repair.search import Halving, Search
from simulator.repair.space import NAME, Space, fronts
from simulator.repair.summary import REPAIRED, Outcome, repaired_profile, summarized
from simulator.report.command import Asked
from simulator.report.verdict import concluded
from simulator.results.repair import Repaired, RepairSummary, judged

OPTIONS = "options.yaml"
"""The document that was used, a file of the run."""
THROUGH = (
    "in the search INT8 is calibrated through the pixels of the deployment as it is, in the "
    "confirmation through each stack's own, and always on samples of the search half"
)
SEARCH, CONFIRM, PARTS = "search", "confirm", "parts"
"""Passes: of the search half; of the other one the finalists, and what each change of the answer
gives."""


def repair(experiment: Experiment[Any], asked: RepairOptions) -> Result[RepairSummary]:
    """Find the cheapest change of a deployment that passes a gate.

    One half of the samples is searched, the finalists are confirmed on the other half; with
    *until_decided* all samples judge all stacks, each until it is decided.

    Examples:
        >>> result = repair("pillow_fp32", "pillow_fp32", gate=["flip_rate < 1%"],
        ...     overrides=["deploy.color.order=bgr"], limit=8)
        >>> result.summary.chosen, result.summary.verdict.decision  # four images confirm little
        ('color/as_trained', 'undecided')
    """
    job, overrides = Job(experiment, asked), asked.overrides
    rules = Gate(confirm.read(asked.gate, asked.allow_failed), asked.undecided)
    if not rules.rules:
        raise UserError("give --gate: what must hold, for example 'flip_rate < 2%'")
    document = load_repairs(asked.repairs) if asked.repairs else None
    train, deploy = (
        given or getattr(document and document.spec, side, None)
        for side, given in (("train", asked.train), ("deploy", asked.deploy))
    )
    if train is None or deploy is None:
        raise UserError("give --train and --deploy; the document of --options names no such stack")
    pair = pair_of(train, deploy, overrides)
    axes.refuse_recorded(*(loaded for loaded, _ in pair.values()))
    refuse_missing(pair.values())
    _refuse_adapting(pair)
    changes = [one.partition(".")[2] for one in overrides if one.startswith("deploy.")]
    folder = job.folder("repair", pair)
    job.refuse_taken(folder)
    request = job.request(
        train=train, deploy=deploy,
        repairs=str(document.path.resolve()) if document and document.path else None,
    )  # fmt: skip
    with ExitStack() as held:
        session = held.enter_context(job.session())
        known = {**session.card.task.vocabulary(), "stack": SIDES}
        rules = rules.checked(judged(session.card.task.Flips), known)
        if asked.until_decided:
            SequentialGate(rules.rules, session.card.task)  # refuses what has no bound at any time
        steps = Steps(job, folder, request, "flip_rate", flip_rate, True, overrides)
        held.enter_context(steps.writing(session))
        document = document or _made(folder, pair, deploy, changes, asked.resume)
        _write(folder / OPTIONS, document.text)
        space = spaces.space(document, deploy, changes)
        refuse_missing([candidate.chosen for candidate in space.candidates])
        _refuse_adapting({candidate.name: candidate.chosen for candidate in space.candidates})
        session.notes.extend(unasked_notices(pair))
        passes = Passes(steps, session, pair["train"], pair["deploy"])
        repair = _Repair(session, space, passes, rules)
        outcome, decision = repair.raced() if asked.until_decided else (repair.halved(), None)
        _write(folder / REPAIRED, repaired_profile(outcome.nearest, deploy))
        found = summarized(session, pair, space, outcome, passes, asked.gate)
        took = {"seconds": job.seconds(), "under": session.condition}
        given = Asked(request["arguments"], folder)
        summary = judged_by_gate(found, rules.rules, took, asked.undecided, decision, given)
        if decision is None:
            p = outcome.confirmed[outcome.nearest.name].p_holm
            told = {"gate": confirm.settled(summary.gate, p, asked.undecided)}
            summary = concluded(summary.model_copy(update=told), given)
        step = raced.RACE if asked.until_decided else CONFIRM
        steps.finish(summary, step, seconds=summary.seconds)
    return Result(summary, folder)


def _refuse_adapting(stacks: Mapping[str, ResolvedProfile]) -> None:
    """Refuse networks that adapt: their answers depend on the samples before."""
    for name, (_, choices) in stacks.items():
        refuse_adapting(name, choices, "a repair needs")


def _made(
    folder: Path,
    pair: Mapping[str, ResolvedProfile],
    deploy: str,
    changes: Sequence[str],
    resumed: bool,
) -> Repairs:
    """The document of an earlier attempt, or one that is made from what differs."""
    before = folder / OPTIONS
    if resumed and before.is_file():
        return load_repairs(str(before))
    return offered(pair["train"], pair["deploy"], deploy, changes)


def _write(place: Path, text: str) -> None:
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{place}: cannot be written: {error.strerror or error}") from error


def halves(items: Sequence[Item], seed: int) -> tuple[list[Item], list[Item]]:
    """Return the samples of the search in random order, and those of the confirmation.

    Raises:
        UserError: there are too few.
    """
    if len(items) < 2:
        raise UserError("a repair is searched on one half of the samples and confirmed on the "
                        f"other; {len(items)} is too few")  # fmt: skip
    order = np.random.default_rng(seed).permutation(len(items))
    middle = len(items) // 2
    return [items[at] for at in order[:middle]], [items[at] for at in sorted(order[middle:])]


@dataclass(frozen=True, slots=True)
class _Repair:
    """One call, when everything is loaded."""

    session: Session
    space: Space
    passes: Passes
    rules: Gate

    def raced(self) -> tuple[Outcome, SequentialGate]:
        """Run every stack until it can no longer be the answer; return that one's gate too."""
        session, stacks = self.session, self._stacks
        apart = calibration.drawn(stacks)
        whole = session.sealed()
        order = np.random.default_rng(session.seed).permutation(len(whole))
        count = min(apart, len(whole) // 2)
        aside, items = ([whole[at] for at in some] for some in (order[:count], order[count:]))
        self._refuse_shared(items)
        if aside:
            told = (
                f"{len(aside):,} {session.card.modality.unit}s of {len(whole):,} calibrate, and "
                "judge no stack"
            )
            session.notes.append(Notice(Kind.CALIBRATION, told))
        held_out = session.calibrating_on(aside or items, items if aside else None)
        passes = replace(self.passes, session=held_out).over(items)
        return raced.race(passes, self.space, self.rules)

    @property
    def _stacks(self) -> list[ResolvedProfile]:
        return [self.passes.train, *(candidate.chosen for candidate in self.space.candidates)]

    def _refuse_shared(self, items: Sequence[Item]) -> None:
        sources, session = calibration.folders(self._stacks), self.session
        calibration.refuse_shared(sources, items, session.digests, session.card.modality)

    def halved(self) -> Outcome:
        """Search, confirm, and tell what each change of the answer gives."""
        session, seed = self.session, self.session.seed
        seen, unseen = halves(session.sealed(), seed)
        self._refuse_shared(unseen)
        quantizers = (
            candidate.chosen[0].spec.precision.quantizer for candidate in self.space.candidates
        )
        if any(quantizer and quantizer.calibration for quantizer in quantizers):
            session.notes.append(Notice(Kind.CALIBRATION, THROUGH, ("deploy",)))
        passes = replace(self.passes, session=session.calibrating_on(seen, unseen))
        found = Search(passes.over(seen), self.space, own=False)
        halving = Halving([*found.by], found.cost, session.show)
        found.run(SEARCH, halving)
        session.show.say("choosing the finalists")
        names = confirm.finalists(found, self.rules, seed)
        stages = len(halving.rungs) + 2
        session.show.stage(stages - 1, stages, f"confirmation, {len(names)} stacks")
        by = {candidate.name: candidate for candidate in found.alive}
        passes = passes.over(unseen)
        part = passes.run(CONFIRM, [by[name] for name in dict.fromkeys([NAME, *names])])
        searched, confirmed_on = found.evaluation.shared, part.shared
        names = {name: passed for name, passed in names.items() if name in confirmed_on.names}
        session.notes.extend(doubt(session, part.reference))
        confirmed = confirm.confirmed(confirmed_on, [*names], self.rules, seed)
        best, nearest = confirm.answer(names, confirmed, list(by).index)
        picks = by[nearest].picks
        repaired: Mapping[str, Mapping[str, Repaired]] = {}
        if picks:
            session.show.stage(stages, stages, "what each change gives")
            built = {candidate.picks: candidate for candidate in self.space.candidates}
            wanted = [built[some] for some in confirm.subsets(picks) if some in built]
            repaired = confirm.repaired(passes.run(PARTS, wanted).shared, picks, seed)
        points = {
            name: (flips(searched, name), self.space.cost(candidate.picks, found.ms).ms)
            for name, candidate in by.items()
        }
        how = {
            "skipped": confirmed_on.skipped + searched.skipped,
            "skipped_in_search": searched.skipped,
            "exact": len(halving.rungs) == 1,
            "rungs": halving.rungs,
            "searched": len(searched.items),
            "family": len(confirmed_on.names) - 1,
            "latency_ms": latency(part.records, confirmed_on.names),
        }  # fmt: skip
        return Outcome(
            [*by.values()], dict.fromkeys(by, searched), fronts(points)[0], found.ms, names,
            confirmed, best, by[nearest], repaired, how,
        )  # fmt: skip
