"""The main experiment: compare two stacks with the same model and samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from simulator.analysis import gate, outcomes
from simulator.command.experiment import Experiment
from simulator.data.video import shown_at
from simulator.errors import UserError
from simulator.experiments import controls
from simulator.experiments.by_size import by_size
from simulator.experiments.common import (
    manifest,
    pair_of,
    refuse_missing,
    unasked_notices,
    variants,
)
from simulator.experiments.compare.experiment import CompareOptions
from simulator.experiments.compare.tracking import Following
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result, judged
from simulator.experiments.moments import worst_flips
from simulator.experiments.record_store import RecordStore
from simulator.experiments.running import Recorder, run_recorded
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES, summarize, vocabulary
from simulator.experiments.watch import AXES, REPEAT, PairWatch, pair_watch
from simulator.notices import Kind, Notice
from simulator.notices import merged as merged_notices
from simulator.pipeline.plan import Plan
from simulator.pipeline.stack import Stack
from simulator.profile import axes
from simulator.report.command import Asked
from simulator.report.words import AT_ANY_TIME
from simulator.results.pair import PairSummary, pair_summary
from simulator.results.shared import STOPPED
from simulator.results.store import RunWriter
from simulator.spent import Work, spending
from simulator.tasks.task import Task

if TYPE_CHECKING:
    from simulator.experiments.search.gate import SequentialGate
    from simulator.experiments.search.questions import PassingPair


def compare(experiment: Experiment[Any], asked: CompareOptions) -> Result[PairSummary]:
    """Run the same model on the same samples through two stacks, and compare.

    Examples:
        >>> result = compare("pillow_fp32", "opencv_fp32", limit=4)
        >>> result.summary.flips.count, result.passed
        (0, None)
        >>> result.records().column_names[:2]
        ['sample', 'side']
        >>> result.report.name
        'report.html'
    """
    job = Job(experiment, asked)
    rules = gate.read(asked.fail_on, asked.allow_failed)
    sides = pair_of(asked.train, asked.deploy, asked.changes, asked.pixels)
    refuse_missing(sides.values())
    folder = job.folder("", sides)
    job.refuse_taken(folder)
    with job.session() as opened:
        session = opened.shuffled() if asked.until_decided else opened
        session.notes.extend(unasked_notices(sides))
        task = session.card.task
        gate.check(rules, pair_summary(task.Flips), vocabulary(session.card))
        following = Following.of(asked.track, session) if asked.track else None
        policy = _policy(rules, task) if asked.until_decided else None
        decision = policy.gate if policy else None
        stacks = session.stacks(variants(sides).values())
        if asked.strict:
            _refuse_differences(stacks)
        watch = pair_watch(session, stacks, differing(stacks), quick=asked.quick)
        merged = session.plan(stacks, watch.asides())
        request = job.request()
        start = manifest(stacks, session, asked.changes) | {
            "shared_stages": merged.shared(),
            "request": request,
        }
        with watch.opened, job.writer(folder, start, session) as run:
            watch.keep_in(run.alone)
            recorder = Recorder(run, merged.arms, True, task, watch=watch, policy=policy)
            run_recorded(session, merged, [recorder])
            done = recorder.done
            if decision and len(done) < len(session.dataset.items):
                session.notes.append(Notice(Kind.FEW_SAMPLES, STOPPED))
            found = conclude(session, watch, merged, done, run, decision, following)
            took = {"seconds": job.seconds(), "workers": session.workers}
            last: dict[str, object] = took | {"under": session.condition}
            if decision:
                last["decided"] = decision.decided(len(session.dataset.items))
            of = Asked(request.arguments, folder)
            summary = judged(found, rules, last, asked.undecided, decision, of)
            if asked.strict and outcomes.at_chance(summary.warnings):
                failed = summary.gate.model_copy(update={"passed": False})
                summary = summary.model_copy(update={"gate": failed})
            run.finish(summary, took | session.ran())
    return Result(summary, folder)


def _policy(rules: Sequence[gate.Rule], task: Task) -> PassingPair:
    from simulator.experiments.search.questions import PassingPair  # most pairs run to the end

    return PassingPair(rules, task)


def conclude(
    session: Session,
    watch: PairWatch,
    merged: Plan,
    done: RecordStore,
    run: RunWriter,
    decision: SequentialGate | None = None,
    following: Following | None = None,
) -> PairSummary:
    """Return the summary of a pair that has been run, without its gate; write the pictures.

    Args:
        session: the model and the samples.
        watch: what was collected about the samples.
        merged: the plan, with the arms and asides of the pair.
        done: every sample, with the outcomes of the pair.
        run: the pictures are written to it.
        decision: by which the run was stopped; its intervals hold at any time.
        following: how boxes are followed through clips; None: they are not.
    """
    session.show.say("figures and pictures")
    ran = done.ran
    train, deploy = map(done.records, SIDES)
    with spending(Work.STATISTICS):
        shown = shown_at(session.dataset)
        flips = worst_flips(ran, train, deploy, session.card.task, shown)
    watch.complete(merged, ran, flips)
    seen = [watch.seen.get(item.name, {}) for item in ran]
    with spending(Work.STATISTICS):
        summary = summarize(
            watch.stacks,
            done,
            session.card,
            watch.effects.axes,
            watch.effects.effects([one[AXES] for one in seen if AXES in one]),
            controls.self_check(one[REPEAT] for one in seen if REPEAT in one),
            session.notes,
            partial(doubt, session),
            flips,
            session.seed,
        )
        if decision:
            decision.write_bounds(summary, train, deploy, session.card.task, AT_ANY_TIME)
        which = [watch.index[item.name] for item in ran]
        summary["by_size"] = by_size(session, watch.sizes, which, deploy)
        if following:
            summary["tracking"] = following.figures(session, done)
        summary["alone"] = watch.alone.figures(ran, train, watch.records, session.seed)
    with spending(Work.PICTURES):
        watch.draw(summary, ran, run)
    return pair_summary(session.card.task.Flips).model_validate(summary)


def differing(stacks: Sequence[Stack]) -> list[str]:
    """Return the axes on which two stacks differ, in pipeline order."""
    return axes.differing(*((stack.profile, stack.choices) for stack in stacks))


def _refuse_differences(stacks: Sequence[Stack]) -> None:
    notices = merged_notices(notice for stack in stacks for notice in stack.labelled_notices)
    if lines := [notice for notice in notices if notice.is_strict]:
        raise UserError("\n".join(f"--strict: {line}" for line in lines))
