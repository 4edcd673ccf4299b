"""Many pairs at once: every deployment stack against one training stack, in one plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.compute as pc

from simulator.analysis import gate
from simulator.contract.recipe import Chain
from simulator.errors import RunError
from simulator.experiments.common import done_of, manifest, notify, rows_of, variants, watching
from simulator.experiments.compare import conclude, differing
from simulator.experiments.job import Job, judged
from simulator.experiments.kept import Kept
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES
from simulator.experiments.watch import PairWatch, pair_watch
from simulator.pipeline.executor import Done
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.layout import MANIFEST
from simulator.results.parts import Rows
from simulator.results.read import read_manifest, read_run
from simulator.results.store import RunWriter
from simulator.results.taken import changed

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

    sides: Mapping[str, Chosen]
    overrides: Sequence[str]
    rules: Sequence[gate.Rule]
    folder: Path
    request: Mapping[str, Any]


def is_complete(folder: Path) -> bool:
    """Return whether a folder holds a finished run."""
    return (folder / MANIFEST).is_file() and read_manifest(folder)["status"] == "complete"


def refuse_changed(session: Session, finished: Sequence[tuple[Path, Mapping[str, Chosen]]]) -> None:
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

    Each pair leaves the same run folder as ``simulate``, with one exception: a sample that fails
    in one of the stacks is left out of all pairs, so that all pairs have the same samples; this
    holds for the samples that a finished pair left out, too. A finished pair is not run again; see
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
    absent = _left_out(one.folder for one in wanted if one not in left)
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
            | {"shared_stages": _shared(merged, watch), "request": dict(one.request)},
            session,
        )
        for one, pair, watch in zip(left, pairs, watches, strict=True)
    ]
    with ExitStack() as opened, _Open(writers) as running:
        for watch in watches:
            opened.enter_context(watch.opened)
        done = _run_samples(session, merged, writers, watches, absent)
        shared = (job.seconds() - begun) / len(left)
        for one, watch, writer in zip(left, watches, writers, strict=True):
            begun = job.seconds()
            session.show.say(f"{one.folder.name}: figures and pictures")
            found = conclude(session, watch, merged, done, writer)
            seconds = round(shared + job.seconds() - begun, 3)
            took = {"seconds": seconds, "workers": session.workers}
            summary = judged(found, one.rules, took | {"under": session.condition})
            writer.finish(summary, took | session.ran())
            running.left.remove(writer)


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


def _left_out(folders: Iterable[Path]) -> dict[str, str]:
    """Return the samples that finished runs have left out, each with the reason."""
    found: dict[str, str] = {}
    for folder in folders:
        _, _, records = read_run(folder)
        skipped = records.filter(pc.is_valid(records["skipped"]))
        found |= {row["sample"]: row["skipped"] for row in skipped.to_pylist()}
    return found


def _writer(folder: Path, start: dict[str, Any], session: Session) -> RunWriter:
    columns = session.card.task.columns
    return RunWriter(folder, start, columns, False, resume=True, note=session.show.note)


class _Open:
    """Closes the writers of several runs; an error marks all unfinished runs as interrupted."""

    def __init__(self, writers: Sequence[RunWriter]) -> None:
        self.left = list(writers)

    def __enter__(self) -> _Open:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self.left:
            writer.__exit__(kind, error, trace)


def _run_samples(
    session: Session,
    merged: Plan,
    writers: Sequence[RunWriter],
    watches: Sequence[PairWatch],
    absent: Mapping[str, str],
) -> Kept:
    """Run every sample that one of the pairs lacks; return all samples, with all outcomes.

    Args:
        session: the model and the samples.
        merged: the plan of the pairs.
        writers: of the pairs.
        watches: of the pairs.
        absent: samples that are left out, each with the reason.
    """
    items, task = session.dataset.items, session.card.task
    found = Kept(task, writers[0].folder)
    names = [session.arm(side) for side in SIDES]
    kept = [writer.kept() for writer in writers]
    finished = [0] * len(writers)
    for item, *several in zip(items, *map(_lengthened, kept), strict=False):
        for number, rows in enumerate(several):
            finished[number] += rows is not None
        if not all(several):
            continue
        one = _whole([done_of(task, item, rows) for rows in several if rows])
        notify(one, watches)
        found.append(one)
    with closing(session.stream(merged, len(found), watching(watches))) as results:
        for done in results:
            why = absent.get(done.item.name)
            one = done if why is None else Done(done.item, (), why)
            notify(one, watches)
            for number, writer in enumerate(writers):
                if len(found) >= finished[number]:
                    rows = rows_of(_part(one, watches[number].arms), names, timed=True)
                    writer.add(rows)
            found.append(one)
    session.require_some(found)
    return found


def _lengthened(samples: Iterator[Rows]) -> Iterator[Rows | None]:
    """The rows of an earlier attempt, and then None for each sample that it lacks."""
    return chain(samples, repeat(None))


def _part(done: Done, arms: Sequence[int]) -> Done:
    """A sample's outcomes in one pair."""
    return replace(done, outcomes=tuple(done.outcomes[arm] for arm in arms if done.outcomes))


def _whole(parts: Sequence[Done]) -> Done:
    """A sample's outcomes in all pairs."""
    outcomes = tuple(outcome for part in parts for outcome in part.outcomes)
    return Done(parts[0].item, outcomes, parts[0].skipped)
