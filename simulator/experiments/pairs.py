"""Many pairs at once: every deployment stack against one training stack, in one plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.compute as pc

from simulator.analysis import gate
from simulator.contract import Encoded
from simulator.errors import RunError
from simulator.experiments.common import digests_of, done_of, manifest, rows_of
from simulator.experiments.compare import conclude
from simulator.experiments.job import Job, judged
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.pipeline.executor import Done
from simulator.pipeline.plan import Judge, Plan, plan
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.store import MANIFEST, RunWriter, changed, read_manifest, read_run
from simulator.tasks.task import Task

_HELD = ("machine", "model", "data", "seed", "limit", "stacks")
"""What of a finished run's manifest must be as it is now for the run to be kept."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pair that is to be run.

    Attributes:
        sides: the profiles of train and deploy.
        overrides: ``SIDE.KEY=VALUE``, which are in *sides* already.
        rules: of the gate.
        folder: where its run goes.
        request: how ``simulate`` would be asked for it alone.
    """

    sides: Mapping[str, Chosen]
    overrides: Sequence[str]
    rules: Sequence[gate.Rule]
    folder: Path
    request: Mapping[str, Any]


def is_complete(folder: Path) -> bool:
    """Whether a finished run is in a folder."""
    return (folder / MANIFEST).is_file() and read_manifest(folder)["status"] == "complete"


def refuse_changed(session: Session, finished: Sequence[tuple[Path, Mapping[str, Chosen]]]) -> None:
    """Make sure that finished runs are about what they would be about if they were run now.

    Args:
        session: the model and the images.
        finished: the folder of each, with the profiles of train and deploy.

    Raises:
        RunError: another image, label, model, stack, library or machine than then.
    """
    if not finished:
        return
    pairs = [_stacks(session, sides) for _, sides in finished]
    known = digests_of((stack for pair in pairs for stack in pair), session)
    for (folder, _), pair in zip(finished, pairs, strict=True):
        now = manifest(pair, session, [], known)
        if parts := changed(read_manifest(folder), now, _HELD):
            raise RunError(
                f"{folder}: cannot be kept: {', '.join(parts)} changed since it was finished, "
                "and all is judged on the same; start a new run"
            )


def run_pairs(job: Job, session: Session, wanted: Sequence[Wanted]) -> None:
    """Run the pairs that are not finished yet; what they share is computed once per image.

    Each leaves the run that ``simulate`` leaves, but for one thing: an image that cannot go
    through one of the stacks is left out of all pairs, so that all are about the same images;
    what a finished pair left out, the others leave out too. A pair that is finished stays so,
    whatever becomes of the others: see :func:`refuse_changed`.

    A pair's ``seconds`` are those of its own controls and figures, and an even share of what the
    pairs had in common; of an attempt that was interrupted nothing is counted.

    Args:
        job: that asks for them, and whose clock is read.
        session: the model and the images.
        wanted: with one training stack.
    """
    begun = job.seconds()
    left = [one for one in wanted if not is_complete(one.folder)]
    if not left:
        return
    absent = _left_out(one.folder for one in wanted if one not in left)
    pairs = [_stacks(session, one.sides) for one in left]
    merged = plan([stack.steps for pair in pairs for stack in pair], _judge(session.card.task))
    session.show.planned(merged)
    alone = [plan([stack.steps for stack in pair], session.card.task.records) for pair in pairs]
    known = digests_of((stack for pair in pairs for stack in pair), session)
    writers = [
        _writer(
            one.folder,
            manifest(pair, session, one.overrides, known)
            | {"shared_stages": own.shared(), "request": dict(one.request)},
            session,
        )
        for one, pair, own in zip(left, pairs, alone, strict=True)
    ]
    with _Open(writers) as running:
        results = _go_through(session, merged, writers, absent)
        shared = (job.seconds() - begun) / len(left)
        for one, pair, own, writer, done in zip(left, pairs, alone, writers, results, strict=True):
            begun = job.seconds()
            session.show.say(f"{one.folder.name}: controls and figures")
            found = conclude(session, pair, own, done, writer)
            seconds = round(shared + job.seconds() - begun, 3)
            took = {"seconds": seconds, "workers": session.workers}
            writer.finish(judged(found, one.rules, took), took)
            running.left.remove(writer)


def _stacks(session: Session, sides: Mapping[str, Chosen]) -> list[Stack]:
    return session.stacks([Variant(side, sides[side], sides) for side in SIDES])


def _left_out(folders: Iterable[Path]) -> dict[str, str]:
    """Return the images that finished runs have left out, each with the reason."""
    found: dict[str, str] = {}
    for folder in folders:
        _, _, records = read_run(folder)
        skipped = records.filter(pc.is_valid(records["skipped"]))
        found |= {row["sample"]: row["skipped"] for row in skipped.to_pylist()}
    return found


def _writer(folder: Path, start: dict[str, Any], session: Session) -> RunWriter:
    return RunWriter(folder, start, session.card.task.columns, overwrite=False, resume=True)


class _Open:
    """Runs that go on together; when one is stopped, those that are not finished are."""

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


def _go_through(
    session: Session, merged: Plan, writers: Sequence[RunWriter], absent: Mapping[str, str]
) -> list[list[Done]]:
    """Run every sample that one of the pairs lacks; return the samples of each pair.

    Args:
        session: the model and the images.
        merged: the plan of the pairs.
        writers: of the pairs.
        absent: images to be left out, each with the reason.
    """
    items, task = session.dataset.items, session.card.task
    kept = [
        [done_of(task, item, rows) for item, rows in zip(items, writer.kept(), strict=False)]
        for writer in writers
    ]
    start = min(map(len, kept))
    found = [list(own) for own in kept]
    place = start

    def keep(done: Done) -> None:
        nonlocal place
        why = absent.get(done.item.name)
        if why is not None:
            done = Done(done.item, (), why)
        for number, (writer, own) in enumerate(zip(writers, found, strict=True)):
            if place >= len(kept[number]):
                own.append(_part(done, number))
                writer.add(rows_of(own[-1], SIDES, timed=True))
        place += 1

    session.run(merged, keep, [_whole(parts) for parts in zip(*kept, strict=False)])
    return found


def _part(done: Done, number: int) -> Done:
    """What a sample gave in one pair."""
    if done.skipped is not None:
        return done
    return Done(done.item, done.outcomes[2 * number : 2 * number + 2])


def _whole(parts: Sequence[Done]) -> Done:
    outcomes = tuple(outcome for part in parts for outcome in part.outcomes)
    return Done(parts[0].item, outcomes, parts[0].skipped)


def _judge(task: Task) -> Judge:
    """Return what makes the records of every pair; the truth is opened once an image."""

    def judge(predictions: Sequence[Any], truth: Any, image: Encoded) -> list[dict[str, Any]]:
        known = task.opened(truth, image)
        found = []
        for at in range(0, len(predictions), 2):
            first = predictions[at]
            found += [
                task.record(one, known) | task.change(first, one, known)
                for one in predictions[at : at + 2]
            ]
        return found

    return judge
