"""Sessions: many stacks over the same samples, in one plan and one pass."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from simulator import registry
from simulator.closing import Closing
from simulator.command.options import Progress
from simulator.conditions.attacks.target import release
from simulator.conditions.condition import AppliedCondition
from simulator.contract.recipe import Boundary, Chain, generator
from simulator.contract.warp import Size, WarpOf
from simulator.data import example
from simulator.data.address import root_of
from simulator.data.folder import Dataset, Files, Item, subset
from simulator.digests import Digests
from simulator.errors import DataError, SampleError, UserError
from simulator.experiments.record_store import RecordStore
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile, check
from simulator.notices import Kind, Notice
from simulator.pipeline.adapted import Adapted, refuse_together
from simulator.pipeline.builder import StackBuilder
from simulator.pipeline.executor import DEFAULT_MEMORY, Executor, SampleResult
from simulator.pipeline.executor import executor as executor_of
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.recorded import refuse_unreached
from simulator.pipeline.stack import Pair, ResolvedProfile, Stack
from simulator.pipeline.walk import Watch
from simulator.places import CHANGED, moment_of
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.results.shared import ConditionDescription
from simulator.spent import Work, spending

NC = "the model card says converged: false (NC); what it answers says nothing of the stacks"


@dataclass(frozen=True, slots=True)
class Variant:
    """One stack of a session.

    Attributes:
        name: in tables and records.
        chosen: its profile and implementations.
        pair: the profiles that its calibration may refer to as ``train`` and ``deploy``.
    """

    name: str
    chosen: ResolvedProfile
    pair: Pair


@dataclass(frozen=True, eq=False)
class Session(Closing):
    """One model and one data set, opened for any number of stacks; a context manager.

    A session does not change: :meth:`subset`, :meth:`shuffled` and :meth:`calibrating_on` give
    another, which is closed with the one that was opened.

    Attributes:
        card: the model card.
        source: its checked ONNX file.
        files: which files are samples.
        dataset: the samples, in the order in which they run.
        notes: what users should know of the model and the samples; a run adds to them.
        seed: of the subset and of the calibration samples.
        limit: of how many samples a random subset was taken; None: of all.
        show: called as the run goes on.
        executor: runs the samples.
        digests: of the samples' bytes.
        base_builder: makes stacks; :attr:`builder` knows the order of the samples as well.
        under: the condition that is applied to every stack.
    """

    card: Card
    source: ModelFile
    files: Files
    dataset: Dataset
    notes: list[Notice]
    seed: int
    limit: int | None
    show: Progress
    executor: Executor
    digests: Digests
    base_builder: StackBuilder
    under: AppliedCondition | None = None

    @classmethod
    def open(
        cls,
        model: str | Path | Card | None,
        data: str | Path | None,
        limit: int | None,
        seed: int,
        workers: int | None,
        memory: int | None,
        progress: Progress | None,
        under: AppliedCondition | None = None,
        executor: str = "local",
        isolate: str = "auto",
    ) -> Self:
        """Open a model and a data set.

        Args:
            model: a model card, or the path of one; the built-in model by default.
            data: a folder of samples or a data card; the built-in images by default.
            limit: take a random subset of this many samples.
            seed: of the subset and of the calibration samples.
            workers: how many samples are processed at once; the number of cores by default.
            memory: MiB that these samples may need together; 2048 by default.
            progress: called as the run goes on.
            under: the condition that is applied to every stack.
            executor: the name of the executor, or ``NAME:PLACE``.
            isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.

        Raises:
            UserError: the model or the data cannot be used.
        """
        if workers is not None and workers < 1:
            raise UserError(f"workers must be at least 1, got {workers}")
        if memory is not None and memory < 1:
            raise UserError(f"memory must be at least 1 MiB, got {memory}")
        show = progress or Progress()
        show.say("preparing the model and the data")
        given = model if model is not None else example.model_card()
        card = given if isinstance(given, Card) else Card(Path(given), data=data)
        source = check(card)
        task, files = card.task, Files.of(card.modality)
        under = _fitted(under, card, source) if under else None
        whole = task.load(root_of(data), files) if data else task.example()
        told = card.told
        if data is not None and model is None:
            told = f"no model is given: it is the built-in {card.spec.name}"
        notes = [Notice(Kind.MODEL_CARD, told)] if told else []
        notes += [Notice(Kind.DATA, line) for line in whole.notes]
        if not card.spec.converged:
            notes.append(Notice(Kind.NOT_CONVERGED, NC))
        dataset = subset(whole, limit, seed)
        if under:
            _refuse_images(under, dataset)
        if under and under.warp and task.in_pixels:
            dataset = replace(dataset, items=_moved(card, dataset.items, under.warp))
        workers = workers or os.cpu_count() or 1
        builder = StackBuilder(card, source, dataset, seed, show.say, isolate)
        found = executor_of(
            executor,
            card.modality,
            builder.runtimes,
            workers,
            memory * 2**20 if memory else DEFAULT_MEMORY,
        )
        builder.look = found.look
        digests = Digests([item.path for item in dataset.items], workers)
        session = cls(
            card, source, files, dataset, notes, seed, limit, show, found, digests, builder
        )
        return replace(session, under=session._asking(under)) if under else session

    @cached_property
    def builder(self) -> StackBuilder:
        """Makes stacks; their batches follow the order of the samples."""
        return self.base_builder.ordered(self.sealed)

    def sealed(self) -> tuple[Item, ...]:
        """Return the samples, of which from now on no other bytes are used than those hashed."""
        if any(item.sha256 is None for item in self.dataset.items):
            items = (
                replace(one, sha256=self.digests[one.path] or "") for one in self.dataset.items
            )
            sealed = replace(self.dataset, items=tuple(items))
            object.__setattr__(self, "dataset", sealed)  # the same samples, hashed once
        return self.dataset.items

    def subset(self, items: Iterable[Item]) -> Session:
        """Return the same session over some of its samples; it is closed with this one."""
        return replace(self, dataset=replace(self.dataset, items=tuple(items), films=()))

    def shuffled(self) -> Session:
        """Return the same session with its samples in an order that says nothing of them.

        The order is the same for the same seed.
        """
        items = self.dataset.items
        order = generator("order", self.seed).permutation(len(items))
        mixed = tuple(items[at] for at in order)
        return replace(self, dataset=replace(self.dataset, items=mixed, films=()))

    def calibrating_on(self, items: Iterable[Item], unseen: Sequence[Item] | None) -> Session:
        """Return the same session; its stacks calibrate on samples held out of the evaluation.

        Args:
            items: those that may calibrate.
            unseen: the evaluated ones; None: the same, where nothing calibrates on the data.
        """
        return replace(self, base_builder=self.base_builder.calibrating_on(items, unseen))

    @property
    def workers(self) -> int:
        """How many samples are processed at once."""
        return self.executor.workers

    @property
    def condition(self) -> ConditionDescription | None:
        """The condition as results describe it; None where there is none."""
        if self.under is None:
            return None
        return ConditionDescription.model_validate(self.under.described())

    def bound(self, under: AppliedCondition) -> AppliedCondition:
        """Return a condition for the session's model.

        Raises:
            UserError: it is for another model, or for other samples.
        """
        found = _fitted(under, self.card, self.source)
        _refuse_images(found, self.dataset)
        return self._asking(found)

    def _asking(self, under: AppliedCondition) -> AppliedCondition:
        """A condition that asks a stack for answers, with that stack's network."""
        profile = under.condition.asks
        if profile is None:
            return under
        loaded = load(profile, ())
        one = loaded, choose(loaded)
        for choice in one[1].values():
            registry.require(choice.backend)
        self.card.refuse_second(f"{under.condition.name} asks")
        refuse_unreached(profile, one, under)
        refuse_together(profile, *one, f"{under.condition.name} asks")
        stack = self.builder.stack(profile, one, {"train": one, "deploy": one})
        (infer,) = (step for step in stack.chain.recipes if step.gives is Boundary.OUTPUTS)
        return replace(under, condition=under.condition.asking(infer))

    def stacks(self, variants: Iterable[Variant]) -> list[Stack]:
        """Build every stack; equal artifacts and runtimes are made once.

        What the stacks say of the data is told at once, before anything runs.
        """
        self.show.say("preparing the stacks")
        found = [self.stack(variant) for variant in variants]
        lines = (one.text for stack in found for one in stack.notices if one.kind is Kind.DATA)
        for line in dict.fromkeys(lines):
            self.show.note(line)
        return found

    def stack(self, variant: Variant, under: AppliedCondition | None = None) -> Stack:
        """Build one stack.

        Args:
            variant: the stack.
            under: the condition that it is under; by default the session's.

        Raises:
            ModelError: the model does not fit the stack.
        """
        under = under or self.under
        with spending(Work.PREPARING):
            stack = self.builder.stack(variant.name, variant.chosen, variant.pair, under)
        needs = variant.chosen[0].spec.runtime.needs
        if not needs or self.executor.finds:
            return stack
        asked = ", ".join(f"{name}: {amount:g}" for name, amount in needs)
        words = (
            f"runtime.resources {{{asked}}} were not looked for: --executor {self.executor.name} "
            "runs every stack on this machine; --executor ray finds machines"
        )
        return replace(stack, notices=(*stack.notices, Notice(Kind.ELSEWHERE, words)))

    def require_truth(self) -> None:
        """Refuse samples without ground truth, before anything is run.

        Raises:
            UserError: a sample has none, so that the headline metric cannot be measured.
        """
        bare = [item.name for item in self.dataset.items if item.truth is None]
        if bare:
            raise UserError(
                f"{self.dataset.root}: {len(bare)} of {self.files.count(len(self.dataset.items))} "
                f"have no label, the first is {bare[0]}; {self.card.task.headline} needs a label "
                "for each"
            )

    def plan(self, stacks: Sequence[Stack], asides: Mapping[str, Chain] | None = None) -> Plan:
        """Merge the stacks into one plan; predictions are compared with the first stack's.

        Args:
            stacks: all of them run on every sample.
            asides: further chains, which run only when a watch function asks for them.
        """
        self.sealed()
        merged = plan(
            {self.arm(stack.side): self.disturbed(stack.chain) for stack in stacks},
            TaskJudge(self.card.task, (tuple(range(len(stacks))),)),
            {name: self.disturbed(chain) for name, chain in (asides or {}).items()},
        )
        self.show.planned(merged)
        return merged

    def arm(self, stack: str) -> Arm:
        """Return the arm of a stack, under the condition of the session."""
        return arm_of(stack, self.under)

    def moved(self, warp: WarpOf) -> tuple[Item, ...]:
        """Return the samples with truth that follows the pixels of their images."""
        return _moved(self.card, self.dataset.items, warp)

    def disturbed(self, chain: Chain) -> Chain:
        """Return a chain with the session's condition inserted, if it acts between two steps."""
        return self.under.disturbed(chain) if self.under else chain

    def run(self, merged: Plan) -> RecordStore:
        """Run every sample through a plan, and keep all results in memory; see :meth:`stream`.

        Raises:
            DataError: every sample was skipped.
        """
        done = RecordStore(self.card.task)
        with closing(self.stream(merged, 0)) as results:
            for result in results:
                done.add(result, merged.arms)
        self.require_some(done)
        return done

    def stream(
        self, merged: Plan, start: int, watch: Watch | None = None, stop: int | None = None
    ) -> Generator[SampleResult, None, None]:
        """Run samples through a plan; nothing of a result is kept here.

        Args:
            merged: the plan of all stacks.
            start: the first sample to run.
            watch: called for every sample that was not skipped.
            stop: the first sample not to run; None: all are run.

        Yields:
            The results of the samples, in order.
        """
        items = self.sealed()
        adapts = any(isinstance(node.recipe, Adapted) for node in merged.nodes)
        self.show.say("adapting to the samples, then running" if adapts else "running")
        results = self.executor.run(merged, items[start:stop], watch)
        try:
            for number, result in enumerate(results, start + 1):
                yield result
                self.show.advance(number, len(items))
        finally:
            if isinstance(results, Generator):  # end its threads before what they use is closed
                results.close()

    def require_some(self, done: RecordStore) -> None:
        """Refuse results of which every one was skipped; note how many samples changed.

        Raises:
            DataError: with the first reason.
        """
        changed = sum(why.endswith(CHANGED) for why in done.why.values())
        whole = self.files.count(len(done))
        self.notes[:] = [note for note in self.notes if note.kind is not Kind.CHANGED]
        if changed:
            words = (
                f"{changed:,} of {whole} changed during the run and "
                f"{'is' if changed == 1 else 'are'} not used: start again on data that stays."
            )
            self.notes.insert(0, Notice(Kind.CHANGED, words))
        if len(done.why) == len(done):
            raise DataError(
                f"{self.dataset.root}: none of {whole} could go through every stack; the first: "
                f"{done.items[0].name}: {done.why[0]}"
            )

    def ran(self) -> dict[str, object]:
        """Return what a finished manifest says of where the samples ran."""
        return {"executor": self.executor.described()}

    def close(self) -> None:
        """Stop hashing, close every runtime, and forget attacked models."""
        self.digests.close()
        self.executor.close()
        self.base_builder.close()
        release()


def arm_of(stack: str, under: AppliedCondition | None) -> Arm:
    """Return the arm of a stack under a condition."""
    return Arm(stack, under.condition.text, under.trial) if under else Arm(stack)


def _fitted(under: AppliedCondition, card: Card, source: ModelFile) -> AppliedCondition:
    """A condition for a model; one that does not fit it is refused."""
    found = under.bound(card, source)
    found.check(card.modality.name, in_pixels=card.task.in_pixels)
    return found


def _refuse_images(under: AppliedCondition, dataset: Dataset) -> None:
    """Refuse a condition of clips where the samples are of none."""
    if under.condition.of_clips and not all(moment_of(item.path) for item in dataset.items):
        raise UserError(
            f"--under {under.condition.text}: it is for frames of videos; {dataset.root} is no "
            "clip and no folder of clips"
        )


def _moved(card: Card, items: Iterable[Item], warp: WarpOf) -> tuple[Item, ...]:
    def one(item: Item) -> Item:
        def size() -> Size:
            image = card.modality.read(item.name, item.path)
            return image.height, image.width

        try:
            return replace(item, truth=item.truth and card.task.moved(item.truth, warp, size))
        except SampleError:  # it cannot be read, and is skipped when its turn comes
            return item

    return tuple(map(one, items))
