"""Many pairs at once: every deployment stack against one training stack, in one plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.analysis import gate
from simulator.contract.recipe import Chain
from simulator.errors import RunError
from simulator.experiments.common import manifest, variants
from simulator.experiments.compare.run import conclude, differing
from simulator.experiments.job import Job, judged
from simulator.experiments.running import Recorder, run_recorded
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES
from simulator.experiments.watch import PairWatch, pair_watch
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.report.command import Asked
from simulator.results.layout import MANIFEST
from simulator.results.manifest import Request, RunManifest
from simulator.results.read import read_manifest
from simulator.results.run_folder import changed
from simulator.results.store import RunWriter

_MUST_MATCH = ("machine", "model", "data", "seed", "limit", "stacks")
"""The parts of a finished run's manifest that must be unchanged for the run to be kept."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pair that is to be run.

    Attributes:
        sides: the profiles of train and deploy.
        overrides: ``STACK.KEY=VALUE``; *sides* already include them.
        rules: of the gate.
        folder: its run folder.
        request: the call of ``simulate`` that would run this pair alone.
    """

    sides: Mapping[str, ResolvedProfile]
    overrides: Sequence[str]
    rules: Sequence[gate.Rule]
    folder: Path
    request: Request


def is_complete(folder: Path) -> bool:
    """Return whether a folder holds a finished run."""
    return (folder / MANIFEST).is_file() and read_manifest(folder)["status"] == "complete"


def refuse_changed(
    session: Session, finished: Sequence[tuple[Path, Mapping[str, ResolvedProfile]]]
) -> None:
    """Refuse finished runs that would not be repeated with the same inputs now.

    Args:
        session: the model and the samples.
        finished: the folder of each run, with the profiles of train and deploy.

    Raises:
        RunError: a sample, label, model, stack, library or the machine has changed.
    """
    if not finished:
        return
    pairs = [session.stacks(variants(sides).values()) for _, sides in finished]
    for (folder, _), pair in zip(finished, pairs, strict=True):
        now = manifest(pair, session, [])
        if parts := changed(read_manifest(folder), now, _MUST_MATCH):
            raise RunError(
                f"{folder}: cannot be kept: {', '.join(parts)} changed since it was finished, "
                "and all pairs must have the same inputs; start a new run"
            )


def run_pairs(job: Job, session: Session, wanted: Sequence[Wanted]) -> None:
    """Run the pairs that are not finished yet; what they share is computed once per sample.

    Each pair leaves the same run folder as ``simulate``: a sample on which a stack fails is left
    out of the figures of its own pair alone. A finished pair is not run again; see
    :func:`refuse_changed`.

    A pair's ``seconds`` are those of its own controls and figures, plus an equal share of the
    common work; an interrupted attempt is not counted.

    Args:
        job: the call; its clock is read.
        session: the model and the samples.
        wanted: the pairs, all with the same training stack.
    """
    begun = job.seconds()
    left = [one for one in wanted if not is_complete(one.folder)]
    if not left:
        return
    pairs = [session.stacks(variants(one.sides).values()) for one in left]
    watches = [
        pair_watch(session, pair, differing(pair), (2 * at, 2 * at + 1), f"pair {at} ")
        for at, pair in enumerate(pairs)
    ]
    merged = _merged(session, pairs, watches)
    session.show.planned(merged)
    writers = [
        _writer(
            one.folder,
            manifest(pair, session, one.overrides)
            | {"shared_stages": _shared(merged, watch), "request": one.request},
            session,
        )
        for one, pair, watch in zip(left, pairs, watches, strict=True)
    ]
    names, task = [session.arm(side) for side in SIDES], session.card.task
    with ExitStack() as opened:
        for watch in watches:
            opened.enter_context(watch.opened)
        recorders = [
            Recorder(opened.enter_context(writer), names, True, task, watch.arms, watch)
            for writer, watch in zip(writers, watches, strict=True)
        ]
        run_recorded(session, merged, recorders)
        shared = (job.seconds() - begun) / len(left)
        for one, watch, recorder in zip(left, watches, recorders, strict=True):
            begun = job.seconds()
            session.show.say(f"{one.folder.name}: figures and pictures")
            found = conclude(session, watch, merged, recorder.done, recorder.run)
            seconds = round(shared + job.seconds() - begun, 3)
            took = {"seconds": seconds, "workers": session.workers}
            asked = Asked(one.request.arguments, one.folder)
            summary = judged(found, one.rules, took | {"under": session.condition}, asked=asked)
            recorder.run.finish(summary, took | session.ran())


def _merged(
    session: Session, pairs: Sequence[Sequence[Stack]], watches: Sequence[PairWatch]
) -> Plan:
    """One plan for all pairs; what they share is computed once per sample."""
    arms: dict[Arm, Chain] = {}
    asides: dict[str, Chain] = {}
    for at, (pair, watch) in enumerate(zip(pairs, watches, strict=True)):
        for stack in pair:
            arm = replace(session.arm(stack.side), stack=f"{at}/{stack.side}")
            arms[arm] = session.disturbed(stack.chain)
        asides |= watch.asides()
    beside = {name: session.disturbed(chain) for name, chain in asides.items()}
    groups = tuple(watch.arms for watch in watches)
    return plan(arms, TaskJudge(session.card.task, groups), beside)


def _shared(merged: Plan, watch: PairWatch) -> list[str]:
    """The stages that both stacks of a pair share."""
    return replace(merged, paths=tuple(merged.paths[arm] for arm in watch.arms)).shared()


def _writer(folder: Path, start: RunManifest, session: Session) -> RunWriter:
    columns = session.card.task.columns
    return RunWriter(folder, start, columns, False, resume=True, note=session.show.note)
