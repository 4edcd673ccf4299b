"""``simulate robustness``: several stacks under every condition of a suite, in one plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from simulator.analysis import gate
from simulator.command.experiment import Experiment
from simulator.command.options import Asking
from simulator.conditions.condition import AppliedCondition
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.experiments.common import (
    manifest,
    named_profiles,
    refuse_missing,
    stacks_of,
    variants,
)
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result, judged, safe_name
from simulator.experiments.running import Recorder, run_recorded
from simulator.experiments.search.evaluate import Evaluation
from simulator.experiments.search.questions import policy_of, rules_of
from simulator.experiments.session import Session, arm_of
from simulator.experiments.several import checked
from simulator.experiments.summary import head, running
from simulator.model.card import Card
from simulator.notices import Notice, merged
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.recorded import refuse_unreached
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.report.command import Asked
from simulator.report.verdict import concluded
from simulator.results.manifest import Request, RunManifest
from simulator.results.robustness import RobustnessSummary
from simulator.robustness import attacked, raced, sequences
from simulator.robustness.document import ConditionSuite, attacks, load_suite
from simulator.robustness.experiment import RobustnessOptions
from simulator.robustness.figures import Fields, Measured, measured, table
from simulator.robustness.losses import kinds, losses
from simulator.robustness.method import method_of
from simulator.robustness.nc import not_converged
from simulator.robustness.noise import Options as NoiseOptions
from simulator.robustness.noise import SystemNoise
from simulator.robustness.noise import figures as noise_figures
from simulator.robustness.pictures import Grid, PictureWatch, grid
from simulator.robustness.records import ArmRecords
from simulator.robustness.reference import ordered
from simulator.robustness.reference import reference as held_against
from simulator.tasks.score import Score
from simulator.tasks.task import Task

LISTED = 20
"""How many skipped samples the summary lists."""


def robustness(
    experiment: Experiment[Any], asked: RobustnessOptions
) -> list[Result[RobustnessSummary]]:
    """Measure stacks under every condition of a suite, for one model or several.

    Every sample is disturbed once for each condition; all stacks get the same disturbed sample.
    """
    question = asked.until_decided
    loaded = load_suite(asked.suite, asked.only)
    named = named_profiles(asked.profiles, asked.train, asked.deploy)
    sides = stacks_of(named, asked.changes)
    rules = rules_of(asked.fail_on, question, asked.allow_failed)
    notices: list[Notice] = []
    if question:
        loaded, notices = raced.asked_of(loaded, list(named))
    noise = SystemNoise(loaded.noise, named, asked.changes) if loaded.noise else None
    refuse_missing([*sides.values(), *(noise.every() if noise else ())])
    order, base = ordered(asked.models or [None], asked.reference, question)
    alone = [rule for rule in rules if not rule.name.startswith("against.")]
    if base is None and len(order) == 1 and alone != rules:
        raise UserError("a rule on against wants a reference model: give a second --model, or "
                        "--reference")  # fmt: skip

    def look(card: Card) -> None:
        _require_answers(loaded, card.task)
        if question is None:
            gate.check(rules, RobustnessSummary, vocabulary(card.task, list(sides), loaded))
        for under in loaded.conditions():
            under.check(card.modality.name, in_pixels=card.task.in_pixels)

    checked(experiment, asked, order, sides, look)
    results: list[Result[RobustnessSummary]] = []
    for number, model in enumerate(order, 1):
        job = Job(experiment, asked, model)
        with job.session() as session:
            session.show.stage(number, len(order), session.card.spec.name)
            folder = job.folder(loaded.spec.name, sides, below=safe_name(session.card.spec.name))
            job.refuse_taken(folder)
            session.require_truth()
            session.notes.extend(notices)
            suited = loaded.bound(session.bound)
            judging = rules if base else alone
            measured = session.shuffled() if question else session
            own = _Robustness(job, measured, suited, sides, noise, judging, base)
            known = {rule.text for rule in judging}
            request = job.request(
                suite=str(loaded.path.resolve()),
                fail_on=[text for text in asked.fail_on if text in known],
                reference=str(base.resolve()) if base else None,
            )
            results.append(
                own.race(folder, request, question) if question else own.run(folder, request)
            )
        if base is None and question is None:
            base = folder
    return results


def _require_answers(suite: ConditionSuite, task: Task) -> None:
    if suite.sequences and sequences.ANSWER not in (column.name for column in task.columns):
        raise UserError(
            f"{suite.spec.name} has sequences, which compare one class from frame to frame; "
            f"{task.name} answers with something else"
        )


def vocabulary(task: Task, sides: Sequence[str], suite: ConditionSuite) -> dict[str, Sequence[str]]:
    """Return the names of a run's figures, to check gate rules before it is run."""
    budgets = max((len(series.levels) for series in suite.series), default=0)
    return {
        **task.vocabulary(),
        "stack": sides,
        "other stack": sides[1:],
        "condition": [series.name for series in suite.series],
        "clean or condition": ["clean", *(series.name for series in suite.series)],
        "sequence": [sequence.name for sequence in suite.sequences],
        "option": [".".join(option[:2]) for option in suite.noise.options()] if suite.noise else (),
        "category": list(attacks(suite.series)),
        "kind of noise": list(kinds(suite)),
        "any category": list(suite.categories()),
        "budget": [str(one + 1) for one in range(budgets)],
    }


@dataclass(frozen=True, slots=True)
class _Robustness:
    """One model's part of a robustness run."""

    job: Job
    session: Session
    suite: ConditionSuite
    sides: Mapping[str, ResolvedProfile]
    noise: SystemNoise | None
    rules: Sequence[gate.Rule]
    base: Path | None

    def run(self, folder: Path, request: Request) -> Result[RobustnessSummary]:
        stacks = self.session.stacks(variants(self.sides).values())
        rows = {series.name: series.levels[-1] for series in self.suite.series}
        frames = {sequence.name: sequence.frames[-1] for sequence in self.suite.sequences}
        pictures = grid(self.session, stacks, rows | frames)
        options = self.noise.fitted(self.session, self.sides) if self.noise else {}
        with_noise = [
            *stacks,
            *(stack for own in options.values() for stack in own.stacks.values()),
        ]
        whole = self._plan(stacks, options, pictures)
        with self.job.writer(folder, self._start(with_noise, request), self.session) as run:
            watch = PictureWatch(self.session, whole, pictures, run) if pictures else None
            recorder = Recorder(run, whole.arms, False, self.session.card.task, watch=watch)
            run_recorded(self.session, whole, [recorder])
            self.session.show.say("computing the figures")
            found, figures = self._figures(run.records.table(), whole, options)
            took = {"seconds": self.job.seconds(), "workers": self.session.workers}
            figures["pictures"] = watch and watch.shown
            summary = self._summary(stacks, len(whole.nodes), found, figures)
            of, own = Asked(request["arguments"], folder), {"seconds": took["seconds"]}
            summary = judged(summary, self.rules, own, self.job.asked.undecided, asked=of)
            run.finish(summary, took | self.session.ran())
        return Result(summary, folder)

    def race(self, folder: Path, request: Request, question: Asking) -> Result[RobustnessSummary]:
        """Run every stack under every condition while it matters for a question."""
        session, sides, conditions = self.session, list(self.sides), self.suite.conditions()
        task = session.card.task
        policy = policy_of(question, raced.cells(sides, conditions), self.rules, task)
        stacks = session.stacks(variants(self.sides).values())
        cells = Evaluation(session, raced.arms(stacks, conditions, self._chain), policy)
        with self.job.writer(folder, self._start(stacks, request), session) as run:
            cells.run(run)
            session.show.say("computing the figures")
            found = raced.measured(session, cells, sides)
            nc = self._not_converged(found)
            figures = table(found, self.suite, sides, nc=sides) | {"nc": nc}
            figures["cells"] = raced.figures(cells, task.headline, nc)
            samples = len(session.dataset.items)
            figures |= policy.fields(samples, self.job.asked.undecided, session.notes)
            figures["warnings"] = policy.notices()
            summary = self._summary(stacks, len(cells.plan.nodes), found, figures)
            took = {"seconds": self.job.seconds(), "workers": session.workers}
            summary = concluded(summary.model_copy(update={"seconds": took["seconds"]}))
            run.finish(summary, took)
        return Result(summary, folder)

    def _start(self, stacks: Sequence[Stack], request: Request) -> RunManifest:
        return manifest(stacks, self.session, self.job.asked.changes) | {
            "request": request,
            "conditions": [condition.described() for condition in self.suite.conditions()],
        }

    def _items(self, condition: str) -> Sequence[Item]:
        """The samples, with truth that follows the condition."""
        session, levels = self.session, {one.condition.text: one for one in self.suite.conditions()}
        under = levels.get(condition)
        if under is None or under.warp is None or not session.card.task.in_pixels:
            return session.dataset.items
        return session.moved(under.warp)

    def _plan(
        self, stacks: Sequence[Stack], options: Mapping[str, NoiseOptions], pictures: Grid | None
    ) -> Plan:
        """One plan of all arms; the stacks under one condition are compared with one another."""
        arms: dict[Arm, Chain] = {arm_of(stack.side, None): stack.chain for stack in stacks}
        for under in self.suite.conditions():
            for stack in stacks:
                arms[arm_of(stack.side, under)] = self._chain(stack, under)
        count = len(stacks)
        groups = [tuple(range(first, first + count)) for first in range(0, len(arms), count)]
        for under in attacked.baselines(self.suite.series):
            groups.append(tuple(range(len(arms), len(arms) + count)))
            arms |= {arm_of(stack.side, under): self._chain(stack, under) for stack in stacks}
        for under in self.suite.conditions():
            for name, chain in attacked.own_chains(under, self.session.card.task).items():
                groups.append((len(arms),))
                arms[arm_of(name, under)] = chain
        for own in options.values():
            groups.append(tuple(range(len(arms), len(arms) + len(own.stacks))))
            arms |= {arm_of(one.side, None): one.chain for one in own.stacks.values()}
        asides = pictures.asides() if pictures else {}
        moving = [under.warp for under in self.suite.conditions()]
        warps = (None, *moving, *[None] * (len(groups) - 1 - len(moving)))
        whole = plan(arms, TaskJudge(self.session.card.task, tuple(groups), warps), asides)
        self.session.show.planned(whole)
        return whole

    def _chain(self, stack: Stack, under: AppliedCondition) -> Chain:
        """A stack's chain under a condition, which may need an artifact of its own."""
        if under.requests():
            stack = self.session.stack(variants(self.sides)[stack.side], under)
        else:
            refuse_unreached(stack.side, self.sides[stack.side], under)
        return under.disturbed(stack.chain)

    def _figures(
        self, records: pa.Table, whole: Plan, options: Mapping[str, NoiseOptions]
    ) -> tuple[Measured, Fields]:
        """Return what the records say, and the figures of the summary."""
        arms = [(arm.stack, arm.condition) for arm in whole.arms]
        session, suite, sides = self.session, self.suite, list(self.sides)
        own = ArmRecords(records, arms, self._items, session.card.task, session.seed)
        found = measured(own, sides, suite.only_frames(), self._doubt)
        nc = self._not_converged(found)
        against = None
        if self.base is not None:
            against = held_against(self.base, own, suite, sides, found)
        figures = table(found, suite, sides, nc, against) | {"nc": nc}
        if against is not None:
            figures["against"] = against.table(suite, [side for side in sides if side not in nc])
        moved = sequences.measured(own, sides, suite) if suite.sequences else {}
        if suite.sequences:
            figures["sequences"] = sequences.table(moved, suite, found.resamples, nc, against)
        if self.noise is not None:
            figures["system_noise"] = noise_figures(self.noise.suite, options, found, nc)
        figures["attacks"] = attacked.figures(own, suite.series, sides, nc)
        figures["losses"] = losses(found, suite, sides, nc, options, moved)
        return found, figures

    def _not_converged(self, found: Measured) -> dict[str, str]:
        profiles = {side: profile for side, (profile, _) in self.sides.items()}
        return not_converged(self.session, found.metrics, profiles)

    def _doubt(self, score: Score) -> None:
        self.session.notes.extend(doubt(self.session, score))

    def _summary(
        self, stacks: Sequence[Stack], unique: int, found: Measured, figures: Fields
    ) -> RobustnessSummary:
        card, own = self.session.card, figures.pop("warnings", [])
        notices = merged(notice for stack in stacks for notice in stack.labelled_notices)
        shown = {
            stack.side: {
                **running(stack),
                "method": method,
                "bits": bits,
                **figures["stacks"][stack.side],
            }
            for stack in stacks
            for method, bits in [method_of(card.spec, stack.profile)]
        }
        skipped = [{"sample": name, "why": why} for name, why in found.skipped.items()]
        return RobustnessSummary(
            **{**figures, "stacks": shown, **found.failed},
            suite=self.suite.spec.name,
            where=self.suite.spec.where,
            **head(card, found.samples, len(found.skipped)),
            unit=card.unit,
            skipped_samples=skipped[:LISTED],
            warnings=[*notices, *self.session.notes, *own],
            unique_steps=unique,
        )
