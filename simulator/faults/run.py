"""``simulate faults``: a campaign of faults on several stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from simulator.analysis import gate
from simulator.command.experiment import Experiment
from simulator.errors import UserError, unknown
from simulator.experiments.common import load_stacks, manifest, refuse_missing, variants
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result, judged
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session
from simulator.faults.campaign import MOST, Campaign, load_campaign
from simulator.faults.draw import Population
from simulator.faults.experiment import FaultsOptions
from simulator.faults.figures import summarized, vocabulary
from simulator.faults.inject import injector_of
from simulator.faults.on_stack import OnStack, Run
from simulator.faults.pictures import with_clips, with_pictures
from simulator.faults.protect import MARK, By, protected, slowdown
from simulator.faults.table import FaultTable
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.network import of_one_size
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.report.command import Asked
from simulator.results.faults import FaultsSummary
from simulator.results.manifest import Request


def faults(experiment: Experiment[Any], asked: FaultsOptions) -> Result[FaultsSummary]:
    """Put faults into the artifacts of stacks while they run."""
    protect, until = asked.protect, asked.until
    if protect not in (None, *get_args(By)):
        raise UserError(f"protect: {unknown('way', protect, get_args(By))}")
    loaded = load_campaign(asked.campaign, asked.number)
    if until is not None:
        _check_until(until, loaded)
    sides = load_stacks(asked.profiles, asked.train, asked.deploy, asked.changes)
    for side, one in sides.items():
        refuse_together(side, *one, "a campaign of faults needs")
    rules = gate.read(asked.fail_on, asked.allow_failed)
    refuse_missing(sides.values())
    job = Job(experiment, asked)
    with job.session() as session:
        session.card.refuse_second("a campaign of faults takes")
        folder = job.folder(loaded.spec.name, sides)
        job.refuse_taken(folder)
        names = [*sides, *(f"{side}{MARK}" for side in sides if protect)]
        gate.check(rules, FaultsSummary, vocabulary(session.card.task, names))
        loaded.options(session.card.task)
        if loaded.permanent and session.dataset.film:
            loaded.rule(session.dataset.rate)
        own = _Faults(job, session, loaded, sides)
        summary = own.run(folder, job.request(campaign=str(loaded.path.resolve())), rules)
    return Result(summary, folder)


def _check_until(until: float, campaign: Campaign) -> None:
    if not 0 < until < 1:
        raise UserError(f"until: a width above 0 and below 100 % expected, got {until:.4g}")
    if campaign.permanent:
        raise UserError("until: it is for transient faults")


def built(
    session: Session, sides: Mapping[str, ResolvedProfile], protect: By | None
) -> tuple[list[Stack], list[Stack]]:
    """Build the stacks of a campaign, and each with a range restriction if that is asked for."""
    stacks = [
        of_one_size(stack, session.card, "a campaign of faults")
        for stack in session.stacks(variants(sides).values())
    ]
    if protect is None:
        return stacks, []
    session.show.say("finding the ranges of activations")
    items = session.sealed()
    return stacks, [protected(session, stack, items, protect) for stack in stacks]


@dataclass(frozen=True, slots=True)
class _Faults:
    """One call."""

    job: Job
    session: Session
    campaign: Campaign
    sides: Mapping[str, ResolvedProfile]

    def run(self, folder: Path, request: Request, rules: Sequence[gate.Rule]) -> FaultsSummary:
        session, asked = self.session, self.job.asked
        plain, guarded = built(session, self.sides, asked.protect)
        stacks = [*plain, *guarded]
        start = manifest(stacks, session, asked.changes) | {
            "campaign": self.campaign.described(), "request": request,
        }  # fmt: skip
        runtimes = session.executor.runtimes
        injectors = [injector_of(one.side, one.chain, runtimes) for one in stacks]
        populations = []
        for stack, injector in zip(stacks, injectors, strict=True):  # before anything is run
            try:
                populations.append(Population(injector.sites, self.campaign))
            except UserError as error:
                raise UserError(f"{stack.side}: {error}") from error
        with self.job.writer(folder, start, session) as run:
            done = run_and_keep(session, session.plan(stacks), run, timed=False)
            items = done.ran
            clean = [list(done.records(stack.side)) for stack in stacks]
            table = FaultTable(run, session.card.task)
            shared = Run(self.campaign, session, items, table, asked.memory)
            every: list[OnStack] = []
            for at, (stack, own) in enumerate(zip(stacks, populations, strict=True)):
                leader = next(
                    (on_stack for on_stack in every if on_stack.population.alike(own)), None
                )
                every.append(OnStack(at, stack, injectors[at], own, leader, clean[at], shared))
            number = self._rounds(every)
            session.show.say("computing the figures")
            table.finish([on_stack.rows for on_stack in every])
            truths = [item.truth for item in items]
            session.notes.extend(doubt(session, session.card.task.score(clean[0], truths)))
            summary = summarized(session, self.campaign, every, number, done)
            slower = {
                two.side: slowdown(session, one, two, items)
                for one, two in zip(plain, guarded, strict=False)
            }
            summary = summary.model_copy(update={"slowdown": slower})
            summary = with_clips(session, every, summary, run)
            summary = with_pictures(session, every, summary, run)
            took = {"seconds": self.job.seconds(), "workers": session.workers}
            of = Asked(request["arguments"], folder)
            summary = judged(
                summary, rules, {"seconds": took["seconds"]}, asked.undecided, asked=of
            )
            run.finish(summary, took | session.ran())
        return summary

    def _rounds(self, every: Sequence[OnStack]) -> int:
        """Run the campaign on every stack, and further rounds until its intervals are narrow."""
        for stack in every:
            stack.canary()
        done, wanted = 0, self.campaign.spec.faults
        while done < wanted:
            for stack in every:
                stack.run(range(done, wanted))
            done = wanted
            until = self.job.asked.until
            if until is not None:
                more = max(stack.further(done, until) for stack in every)
                wanted = min(done + min(more, done), MOST)
        return done
