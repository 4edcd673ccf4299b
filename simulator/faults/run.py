"""``simulate faults``: a campaign of faults on several stacks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, get_args

from simulator.analysis import gate
from simulator.contract.injection import Injector, Target
from simulator.data.folder import Item
from simulator.errors import UserError, unknown
from simulator.experiments.common import (
    load_stacks,
    manifest,
    pair_for,
    refuse_missing,
    run_and_keep,
)
from simulator.experiments.job import Job, Options, Result, judged
from simulator.experiments.keywords import explicit
from simulator.experiments.session import Session, Variant
from simulator.faults.campaign import Campaign, load_campaign
from simulator.faults.clip import with_clips
from simulator.faults.draw import Population
from simulator.faults.figures import summarized, vocabulary
from simulator.faults.inject import Injection, injector_of
from simulator.faults.measured import Measured
from simulator.faults.protect import MARK, By, protected, slowdown
from simulator.faults.table import FaultTable
from simulator.pipeline.executor import DEFAULT_MEMORY
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.faults import FaultsSummary
from simulator.tasks.score import Record


@explicit("under", "trial")
def faults(
    campaign: str,
    profiles: Sequence[str] = (),
    *,
    train: str | None = None,
    deploy: str | None = None,
    model: str | Path | None = None,
    number: int | None = None,
    protect: By | None = None,
    overrides: Sequence[str] = (),
    fail_on: Sequence[str] = (),
    undecided: str = "fail",
    **options: Unpack[Options],
) -> Result[FaultsSummary]:
    """Put faults into the artifacts of stacks while they run.

    Args:
        campaign: which bits are hit: a path, or a built-in name.
        profiles: the stacks: profiles' paths or built-in names. Where the layers of another stack
            are those of the first one it gets the same faults.
        train: instead of *profiles*, a pair.
        deploy: likewise.
        model: a model card; the built-in model by default.
        number: of faults, instead of the campaign's.
        protect: also measure each stack with a range restriction, ``clip`` or ``min_max``, see
            :func:`simulator.model.range_restriction.restrict`.
        overrides: ``STACK.KEY=VALUE``.
        fail_on: gate rules, for example ``deploy.SDC > 1%``, which holds the upper end of the 95 %
            interval against the limit.
        undecided: ``pass`` or ``fail``, for a rule on a figure that the samples do not give.
        options: see :class:`simulator.Options`.

    Raises:
        UserError: anything that the caller can fix; the message says how.
    """
    for name in ("under", "trial"):
        if options.get(name):
            raise UserError(f"{name}: a campaign is a condition itself")
    if protect not in (None, *get_args(By)):
        raise UserError(f"protect: {unknown('way', protect, get_args(By))}")
    loaded = load_campaign(campaign, number)
    sides = load_stacks(profiles, train, deploy, overrides)
    rules = [gate.parse(rule) for rule in fail_on]
    refuse_missing(sides.values())
    job = Job("faults", model, options)
    asked = {
        "campaign": str(loaded.path.resolve()), "number": number, "protect": protect,
        "profiles": list(profiles), "train": train, "deploy": deploy,
        "overrides": list(overrides), "fail_on": list(fail_on), "undecided": undecided,
    }  # fmt: skip
    with job.session() as session:
        folder = job.folder(loaded.spec.name, sides)
        job.refuse_taken(folder)
        names = [*sides, *(f"{side}{MARK}" for side in sides if protect)]
        gate.check(rules, FaultsSummary, vocabulary(session.card.task, names))
        own = _Faults(job, session, loaded, sides, overrides, protect, options.get("memory"))
        summary = own.run(folder, job.request(**asked), rules, undecided)
    return Result(summary, folder)


def built(
    session: Session, sides: Mapping[str, Chosen], protect: By | None
) -> tuple[list[Stack], list[Stack]]:
    """Build the stacks of a campaign, and each with a range restriction if that is asked for."""
    variants = [Variant(side, chosen, pair_for(sides, chosen)) for side, chosen in sides.items()]
    stacks = session.stacks(variants)
    if protect is None:
        return stacks, []
    session.show.say("finding the ranges of activations")
    items = session.dataset.items
    return stacks, [protected(session, one, items, protect) for one in stacks]


@dataclass(frozen=True, slots=True)
class _Faults:
    """One call."""

    job: Job
    session: Session
    campaign: Campaign
    sides: Mapping[str, Chosen]
    overrides: Sequence[str]
    protect: By | None
    memory: int | None

    def run(
        self, folder: Path, request: dict[str, Any], rules: Sequence[gate.Rule], undecided: str
    ) -> FaultsSummary:
        session = self.session
        plain, guarded = built(session, self.sides, self.protect)
        stacks = [*plain, *guarded]
        start = manifest(stacks, session, self.overrides) | {"request": request}
        with ExitStack() as open_ones:
            injectors = [open_ones.enter_context(closing(injector_of(one))) for one in stacks]
            for one in injectors:  # refuses before anything is run
                Population(one.sites, self.campaign)
            with self.job.writer(folder, start, session) as run:
                done = run_and_keep(session, session.plan(stacks), run, timed=False)
                ran = [one for one in done if one.skipped is None]
                items = [one.item for one in ran]
                clean = [[one.outcomes[at].record for one in ran] for at in range(len(stacks))]
                table = FaultTable(run, session.card.task)
                found = [
                    self._stack(at, stack, injector, items, clean[at], table)
                    for at, (stack, injector) in enumerate(zip(stacks, injectors, strict=True))
                ]
                session.show.say("computing the figures")
                table.finish([one.rows for one in found])
                summary = summarized(session, self.campaign, found, len(done) - len(items))
                summary = self._compared(summary, plain, guarded, items)
                summary = with_clips(session, found, summary, run)
                took = {"seconds": self.job.seconds(), "workers": session.workers}
                summary = judged(summary, rules, {"seconds": took["seconds"]}, undecided)
                run.finish(summary, took)
        return summary

    def _compared(
        self,
        summary: FaultsSummary,
        stacks: Sequence[Stack],
        guarded: Sequence[Stack],
        items: Sequence[Item],
    ) -> FaultsSummary:
        """Add what a range restriction costs in time."""
        slower = {
            two.side: slowdown(self.session, one, two, items)
            for one, two in zip(stacks, guarded, strict=False)
        }
        return summary.model_copy(update={"slowdown": slower})

    def _stack(
        self,
        at: int,
        stack: Stack,
        injector: Injector,
        items: Sequence[Item],
        clean: Sequence[Record],
        table: FaultTable,
    ) -> Measured:
        """Run the campaign on one stack."""
        session, started = self.session, time.perf_counter()
        population = Population(injector.sites, self.campaign)
        injection = Injection(stack, injector, session.card.task, session.executor, session.workers)
        with closing(injection):
            session.show.say(f"{stack.side}: does a flipped bit reach every layer?")
            injection.canary(self._stored(injector, population), items)
            drawn = population.drawn(session.seed, len(items))
            memory = self.memory * 2**20 if self.memory else DEFAULT_MEMORY
            works = list(injection.works(drawn, len(items), items[0], memory // 2))
            total = sum(len(work.jobs) for work in works)
            session.show.say(f"{stack.side}: {self.campaign.spec.name}")
            ran = new = 0
            for work in works:
                if not table.has(at, work.name):
                    table.add(at, work.name, injection.rows(work, items))
                    new += len(work.jobs)
                ran += len(work.jobs)
                session.show.advance(ran, total)
            rows = table.read(at, [work.name for work in works])
        rate = new / (time.perf_counter() - started) if new == total else None
        sizes = [injection.size(item) for item in items]
        return Measured(stack, injector, population, items, clean, sizes, rows, rate)

    @staticmethod
    def _stored(injector: Injector, population: Population) -> list[int]:
        return [
            index
            for index in population.chosen
            if injector.sites[index].target in (Target.WEIGHTS, Target.BIASES)
        ]
