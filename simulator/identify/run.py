"""``simulate identify``: which stack made this recording?"""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator.command.experiment import Experiment
from simulator.data.capture import Capture
from simulator.data.folder import Item
from simulator.data.recording import Recording, load_recording
from simulator.errors import DataError, ProfileError, SampleError, UserError
from simulator.experiments.common import chosen, manifest, refuse_missing, variants
from simulator.experiments.job import Job, Result
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session
from simulator.experiments.summary import head
from simulator.identify import answer, arithmetic
from simulator.identify.affine import ULPS
from simulator.identify.composer import Composer, Point
from simulator.identify.experiment import IdentifyOptions
from simulator.identify.kit import all_probes
from simulator.identify.numbers import Solver
from simulator.identify.search import Found, Search, blocks
from simulator.identify.space import Space, load_space, space
from simulator.identify.target import Target
from simulator.identify.trials import Trials
from simulator.modalities.image.card import ImageCard
from simulator.notices import Kind, Notice, merged
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_together
from simulator.profile.derived import derived
from simulator.profile.reference import read_code
from simulator.report.verdict import concluded
from simulator.results.identify import IdentifySummary, Telling
from simulator.results.shared import Profile

PROFILE = "identified.yaml"
"""The profile that was found, in the run's folder."""
NAME = "identified"
_BEGUN = 10_000
"""Combinations at most of which one is looked for that is possible."""
_READ = 4
"""Recorded tensors from whose values the order of arithmetic is read."""
_TOLD = 40
"""Stacks at most that a probe image is tried on."""


def identify(experiment: Experiment[Any], asked: IdentifyOptions) -> Result[IdentifySummary]:
    """Search the space of profiles for the one that made a recording."""
    minutes, space = asked.minutes, asked.space
    if minutes is not None and minutes <= 0:
        raise UserError(f"minutes must be above 0, got {minutes:g}")
    ends = None if minutes is None else time.monotonic() + 60 * minutes
    job = Job(experiment, asked)
    code = read_code(str(asked.recording))
    found = None if code else load_recording(Path(asked.recording))
    document = None if space is None else load_space(space)
    start = chosen(document.base if document else asked.base, [])
    refuse_together("base", *start, "a search needs")
    folder = job.folder("identify", {"base": start})
    job.refuse_taken(folder)
    request = job.request()
    with job.session() as opened, tempfile.TemporaryDirectory() as scratch:
        job.refuse_taken(folder)
        card = opened.card
        card.refuse_second("identify searches the stack of")
        if not isinstance(card.spec, ImageCard):
            raise UserError(
                f"identify finds the stack of images, and {card.path} is for "
                f"{card.modality.name}; give --model a card of images"
            )
        card.spec.input.one_size("identify")
        found = found or _of_code(opened, str(asked.recording), scratch)
        session, notes, absent = recorded_only(opened, found)
        whole = document or _offered(session, found, asked.base)
        target, whole = ready(session, found, whole)
        result, trials, items = searched(session, target, whole, ends)
        target = trials.target
        if target.kind == "tensors":
            notes.append(
                Notice(Kind.FINDING, arithmetic.told(target, trials.arithmetic(result.best)))
            )
        text = _profile(trials.composer, result, found)
        place = Path(scratch) / PROFILE
        place.write_text(text, encoding="utf-8")
        stack = chosen(str(place), [])
        refuse_missing([stack])
        stacks = session.stacks(variants({NAME: stack}).values())
        begin = manifest(stacks, session, []) | {"request": request}
        with job.writer(folder, begin, session) as run:
            (folder / PROFILE).write_text(text, encoding="utf-8")
            done = run_and_keep(session, session.plan(stacks), run, timed=False)
            notices = merged(notice for one in stacks for notice in one.labelled_notices)
            summary = IdentifySummary(
                **head(session.card, len(done.ran), len(done.skipped)),
                recording=found.spec.name,
                device=found.spec.device,
                kind=found.spec.kind,
                after=found.spec.after,
                base=Profile(profile=start[0].name),
                exact=result.exact,
                ulps=target.ulps,
                equal=result.score.equal,
                mean=answer.finite(result.score.mean),
                largest=answer.finite(result.score.largest),
                axes=answer.axes(result, trials, items),
                runners_up=answer.runners_up(result, trials, items),
                equal_stacks=len({trials.key(point) for point in result.equal}),
                telling=_telling(session, result, trials),
                compared=trials.tried,
                combinations=whole.size,
                stopped=result.stopped,
                refused=trials.composer.refused,
                absent=absent,
                warnings=[*notes, *notices, *session.notes],
            )
            took = {"seconds": job.seconds(), "workers": session.workers}
            summary = concluded(summary.model_copy(update={"seconds": took["seconds"]}))
            run.finish(summary, took | session.ran())
    return Result(summary, folder)


def _of_code(session: Session, reference: str, folder: str) -> Recording:
    """Record what code makes of the images.

    Raises:
        UserError: it makes the network's input of none.
    """
    profile, choices = chosen(reference, [])
    (step,) = session.builder.front_end(profile, choices).recipes
    run, count, why = step.open(session.base_builder.runtimes), 0, ""
    with Capture(
        profile.name, "tensors", "this machine", session.source.digest, folder=folder
    ) as made:
        for item in session.dataset.items:
            try:
                tensor = run(None, session.executor.context(item))
            except SampleError as error:
                why = why or str(error)
            else:
                made.add(item.name, np.asarray(tensor, np.float32))
                count += 1
    if not count:
        raise UserError(why)
    return load_recording(Path(folder) / "recording.yaml")


def recorded_only(session: Session, found: Recording) -> tuple[Session, list[Notice], int]:
    """Keep only the images of a session that were recorded and can be read, in order of size.

    Returns:
        The session over these images, notices on others, and how many were not recorded.

    Raises:
        DataError: it is a recording of another model, or has none of the images, or has
            predictions of a model that is no classifier.
    """
    if found.spec.kind == "predictions":
        try:
            session.card.task.recorded(0, math.nan, math.nan)
        except UserError as error:
            raise DataError(f"{found.path}: {error}") from error
    outputs = tuple(session.source.wanted(session.card))
    every = session.dataset.items
    there = [item for item in every if found.holds(item, outputs)]
    found.check(session.source.digest, there or every, outputs)
    target = Target(found, outputs)
    sizes: dict[str, int] = {}
    notes = []
    for item in there:
        try:
            target.of(item)
            source = session.executor.context(item).source
            sizes[item.name] = source.height * source.width
        except SampleError as error:
            notes.append(Notice(Kind.DATA, f"{item.name} was left out: {error}"))
    kept = [item for item in there if item.name in sizes]
    if not kept:
        raise DataError(f"{found.path}: no image of it can be used; {notes[0].text}")
    if target.kind == "tensors":
        recorded.check_shape(found, session.card, kept[0], session.card.spec)
    return session.subset(kept), notes, len(every) - len(there)


def _offered(session: Session, found: Recording, base: str) -> Space:
    """All options that run here."""
    session.show.say("listing the options that run here")
    return space(base, session.card, found.spec.kind, found.spec.after)


def searched(
    session: Session,
    target: Target,
    whole: Space,
    ends: float | None = None,
    near: Point | None = None,
) -> tuple[Found, Trials, Sequence[Item]]:
    """Search a space for the stack that made a recording.

    Args:
        session: its images are those of the recording, see :func:`recorded_only`.
        target: the recording, see :func:`ready`.
        whole: the space, likewise.
        ends: see :class:`~simulator.identify.trials.Trials`.
        near: a point where the search begins, if it is one of the space.

    Raises:
        ProfileError: no stack of the space is possible.
    """
    composer = Composer(whole.base, whole.axes, session)
    execution = frozenset(blocks(whole.axes).get("execution", ()))
    own = whole.axes.values()
    known = near is not None and all(one in some for one, some in zip(near, own, strict=False))
    begun = (
        (one, Trials(session, composer, target, execution, one, ends))
        for one in itertools.chain([near] if near and known else [], starts(composer))
    )
    start, trials = next((pair for pair in begun if pair[1].steps(pair[0])), (None, None))
    if start is None or trials is None:
        where = f"the model of {session.card.path} runs on"
        raise ProfileError([f"{whole.name}: {whole.base} makes no stack that {where}"])

    def area(item: Item) -> int:
        source = session.executor.context(item).source
        return int(source.height * source.width)

    items, say = sorted(session.sealed(), key=area), session.show.say
    if target.kind != "tensors":
        return Search(trials, items, start, say).run(), trials, items
    solver = Solver(session, composer, target, items)
    placed = Search(trials, items, start, say).placed()
    solved = solver.solve(placed[0])
    if solved is not None and solved.arithmetic and target.ulps:
        exact = replace(target, ulps=0)
        trials = Trials(session, composer, exact, execution, start, ends)
    return Search(trials, items, start, say, solver.solve).run(placed), trials, items


def ready(session: Session, found: Recording, whole: Space) -> tuple[Target, Space]:
    """Return the target, and the space with the tensor's order of arithmetic where values tell."""
    target = Target(found, tuple(session.source.wanted(session.card)))
    spec = session.card.spec
    if target.kind != "tensors" or not isinstance(spec, ImageCard):
        return target, whole
    order = arithmetic.solved(target, session.dataset.items[:_READ], whole, spec)
    if order is None:
        target = replace(target, ulps=ULPS)
    return target, arithmetic.settled(whole, order)


def starts(composer: Composer) -> Iterator[Point]:
    """Yield points to begin at; which of them are possible is not known.

    First that of the base: of each axis the option that changes nothing, or else its first one.
    Then combinations of options, and at last the base itself.
    """
    count, options = len(composer.names), [list(axis) for axis in composer.axes.values()]
    own = []
    for at, some in enumerate(options):
        alone = [(*[None] * at, one, *[None] * (count - at - 1)) for one in some]
        same = filter(composer.same, alone)
        alike = filter(composer.alike, alone)
        own.append(next(itertools.chain(same, alike, alone))[at])
    yield tuple(own)
    yield from itertools.islice(itertools.product(*options), _BEGUN)
    yield (None,) * count


def _profile(composer: Composer, found: Found, recording: Recording) -> str:
    spec = recording.spec
    how = (
        f"{found.score.equal} of {found.score.images} images have the recorded {spec.kind}"
        if found.score.equal
        else f"the nearest to the recorded {spec.kind}: mean difference {found.score.mean:.4g}"
    )
    source = f"simulate identify, recording {spec.name} of {spec.device}: {how}"
    says = f"identified from recording {spec.name} of {spec.device}: {how}"
    before, after = composer.values((None,) * len(found.best)), composer.values(found.best)
    return derived(composer.base, before, after, NAME, says, source)


def _telling(session: Session, found: Found, trials: Trials) -> Telling | None:
    """The probe image that parts the equal stacks into most groups."""
    if not isinstance(session.card.spec, ImageCard):
        return None
    points = list({trials.key(point): point for point in found.equal}.values())[:_TOLD]
    if len(points) < 2:
        return None
    session.show.say("which probe image would tell the rest apart")
    folder = Path(tempfile.mkdtemp(prefix="probes-"))
    try:
        best: tuple[int, Telling | None] = 1, None
        for probe in all_probes(session.card.spec):
            path = folder / probe.name
            path.write_bytes(probe.data)
            groups = trials.groups(points, Item(probe.name, path, None))
            if groups > best[0]:
                best = (
                    groups,
                    Telling(probe=probe.name, about=probe.about, groups=groups, stacks=len(points)),
                )
        return best[1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
