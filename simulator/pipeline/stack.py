"""Stacks: a profile with its implementations, its artifact and its chain of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from simulator import registry
from simulator.command.allowed import GivesOtherwise
from simulator.conditions.condition import AppliedCondition
from simulator.contract import Effective, Stage
from simulator.contract.model import shape_words
from simulator.contract.passes import Fitting
from simulator.contract.recipe import Chain, Recipe
from simulator.data.folder import Dataset, Item
from simulator.data.recording import Recording
from simulator.errors import DataError, ModelError
from simulator.modalities.card import CardSpec
from simulator.modalities.modality import Feed
from simulator.model.artifact import Artifact, Feeds, before_export, build, digest
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.model.passes.rewrite import wanted
from simulator.notices import Kind, Notice
from simulator.pipeline import in_force, recorded
from simulator.pipeline.adapted import (
    Adapted,
    Entropy,
    ordered,
    refuse_adapting,
    refuse_together,
)
from simulator.pipeline.batched import Batched
from simulator.pipeline.calibration import Asked, Calibrator
from simulator.pipeline.feeding import feeding
from simulator.pipeline.fitted import changes
from simulator.pipeline.float_runtime import in_fp32
from simulator.pipeline.front_end import front_end, refuse_code
from simulator.pipeline.inference import Follow, Infer, answering, finishing
from simulator.pipeline.look import Looked, look, probe
from simulator.pipeline.own_front_end import (
    OwnAnswer,
    OwnOutputs,
    called,
    tried,
)
from simulator.pipeline.runtimes import RuntimePool, key_of
from simulator.pipeline.same_network import Same
from simulator.pipeline.second import behind_first, refuse_second
from simulator.profile.artifact import own_file
from simulator.profile.implementations import Choice, Choices
from simulator.profile.precision import Calibration, Quantizer
from simulator.profile.profile import Profile

Report = Callable[[str], None]
ResolvedProfile = tuple[Profile, Choices]
"""A profile with the implementation of each of its stages."""
Pair = Mapping[str, ResolvedProfile]
Needs = tuple[tuple[str, float], ...]
"""The resources of a machine, by name."""
Look = Callable[[Choice, Artifact, Sequence[Feed], Needs, int], Looked]


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, ready to run.

    Attributes:
        side: its name; in a pair ``train`` or ``deploy``.
        profile: its profile.
        choices: the implementation of each stage.
        chain: from the source of a sample to the prediction.
        artifact: the model file that its runtime opens.
        effective: the settings that are in force, as the runtime reports them.
        notices: what users should know about it.
        fed: the content of the card that its input is made of, where its own model file takes
            another than the card's network.
    """

    side: str
    profile: Profile
    choices: Choices
    chain: Chain
    artifact: Artifact
    effective: Effective
    notices: tuple[Notice, ...]
    fed: CardSpec | None = None

    @property
    def labelled_notices(self) -> Iterator[Notice]:
        """Its notices, each labelled with the name of the stack."""
        return (notice.of(self.side) for notice in self.notices)

    @property
    def versions(self) -> dict[str, str | None]:
        """The version of every library that the stack uses, in the Python that runs it."""
        found: dict[str, str | None] = {}
        for choice in self.choices.values():
            found |= registry.versions(choice.backend)
        return found


class StackBuilder:
    """Makes stacks for one model and one data set; equal runtimes are opened once.

    Args:
        card: the model card.
        source: its checked ONNX file.
        dataset: the evaluated samples; calibration may use them.
        seed: of the random choice of calibration samples.
        report: called with a line of text when a slow step begins.
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.

    Attributes:
        look: opens a runtime where it will run; in this process, unless an executor replaces it.
        order: returns the samples in the order in which they run, which batches follow.
    """

    def __init__(
        self,
        card: Card,
        source: ModelFile,
        dataset: Dataset,
        seed: int,
        report: Report,
        isolate: str = "auto",
    ) -> None:
        self.card, self.source, self.dataset = card, source, dataset
        self.seed, self.report = seed, report
        self.evaluated: Sequence[Item] | None = None
        self.runtimes = RuntimePool(isolate=isolate)
        self._known: dict[tuple[str, Needs, int], Looked] = {}
        self.look: Look = self._here
        self._adapting: set[Adapted] = set()
        self._remarked: dict[str, list[str]] = {}
        self.order: Callable[[], tuple[Item, ...]] = lambda: self.dataset.items

    def ordered(self, order: Callable[[], tuple[Item, ...]]) -> StackBuilder:
        """Return the same builder for samples that run in another order."""
        other = copy(self)
        other.order = order
        return other

    def _of_second(self) -> StackBuilder:
        """Return the same builder for the card's second network."""
        other = copy(self)
        assert self.card.second and self.source.second
        other.card, other.source = self.card.second, self.source.second
        return other

    def calibrating_on(
        self, items: Iterable[Item], evaluated: Sequence[Item] | None
    ) -> StackBuilder:
        """Return the same builder for other samples; see :meth:`Session.calibrating_on`."""
        other = copy(self)
        other.dataset = replace(self.dataset, items=tuple(items))
        other.evaluated = evaluated
        return other

    def stack(
        self, side: str, chosen: ResolvedProfile, pair: Pair, under: AppliedCondition | None = None
    ) -> Stack:
        """Build a stack's artifact, open its runtime and read back what is in force.

        Args:
            side: the name of the stack.
            chosen: its profile and implementations.
            pair: the profiles called ``train`` and ``deploy``; calibration samples go through the
                preprocessing of one of them.
            under: the condition that it is under; its chain has none of it, its artifact may.

        Raises:
            UserError: a library is missing, or the model does not fit.
        """
        profile, choices = chosen
        self.refuse_other_samples(profile)
        if under:
            recorded.refuse_recorded(side, chosen, under)
        if found := recorded.recording(profile, choices, Stage.RUNTIME):
            return self._recorded(side, chosen, found)
        if choices[Stage.RUNTIME].offer.make.takes == "sample":
            return self._own(side, chosen)
        fed, spec, told = feeding(profile, choices, self.card)
        taken = self._sized(spec, profile.spec.runtime.samples)
        before = self._before(fed, choices, spec)
        notices = [Notice(Kind.MODEL, line) for line in self._remarks(profile, choices)]
        feeds = None
        if quantizer := profile.spec.precision.quantizer:
            self.report(f"{side}: {quantizer.gives} artifact (quantized once, then cached)")
            if quantizer.calibration is not None:
                through = self.front_end(*pair[quantizer.calibration.through])
                feeds, notices = self.feeds(quantizer, quantizer.calibration, through)
        fittings, lines = self._fittings(profile, choices, pair)
        notices += lines
        after = under.requests() if under else ()
        refuse_second(self.card, profile, choices, after)
        artifact = build(self.card, self.source, profile, choices, feeds, after, fittings=fittings)
        choice = choices[Stage.RUNTIME]
        self.report(f"{side}: opening {choice.backend.name}")
        needs, size = profile.spec.runtime.needs, profile.spec.runtime.samples
        looked = self.looked(choice, artifact, taken, needs, size)
        outputs = self.names(artifact, looked.outputs)
        notices += in_force.notices(profile, choices, looked.effective)
        told = [*profile.notes, *told, *looked.lines, *artifact.notes]
        notices += [Notice(Kind.MODEL, line) for line in told]
        answer = answering(profile, self.card)
        files = [item.path for item in self.dataset.items]
        remarks = self.card.modality.remarks(answer.placing, files)
        notices += [Notice(Kind.DATA, line) for line in remarks]
        sequel = answer.task.sequel(answer.settings)
        infer = Infer(choice, artifact, looked.inputs, outputs, sequel is not None, needs)
        if own := own_file(profile):
            notices += self._compared(own.path.name, chosen, pair, infer, fed, spec)
        network: tuple[Recipe, ...] = (infer,)
        if self.card.second:
            more, lines = behind_first(self._of_second(), side, chosen, pair, infer, answer)
            network, notices = (infer, *more), [*notices, *lines]
        if sequel:
            network = (infer, Follow(infer, sequel, answer.placing))
        network, lines = self._several(side, chosen, network, fittings, bool(after))
        notices += lines
        chain = Chain((*before, *network, *finishing(profile, choices, self.card), answer))
        return Stack(
            side, profile, choices, chain, artifact, looked.effective, tuple(notices),
            None if spec is self.card.spec else spec,
        )  # fmt: skip

    def _several(
        self, side: str, chosen: ResolvedProfile, network: tuple[Recipe, ...],
        fittings: Mapping[str, Fitting], is_changed: bool,
    ) -> tuple[tuple[Recipe, ...], list[Notice]]:  # fmt: skip
        """The network's steps, in batches or adapting where a profile says so."""
        (profile, choices), notices = chosen, []
        infer, *others = network
        if (size := profile.spec.runtime.samples) > 1:
            if others:
                refuse_together(side, profile, choices, "what follows from an answer needs")
            assert isinstance(infer, Infer)
            dynamic = profile.spec.runtime.is_dynamic
            network = (Batched(infer, size, dynamic, self.card.modality, self.order()),)
            notices.append(Notice(Kind.BATCHED, _together(profile)))
        if Stage.ADAPT in choices:
            if others or is_changed:
                refuse_adapting(side, choices, "what follows or changes a network needs")
            network = (self._adapted(profile, choices, fittings),)
            notices.append(Notice(Kind.ADAPTED, _adapting(choices[Stage.ADAPT])))
        return network, notices

    def _compared(
        self, name: str, chosen: ResolvedProfile, pair: Pair, infer: Infer, fed: Profile,
        spec: CardSpec,
    ) -> list[Notice]:  # fmt: skip
        """Say how near a file that was made elsewhere is to the card's, where both run here."""
        runtime = chosen[0].spec.runtime
        mixed = all(one is not chosen for one in pair.values())
        replayed = recorded.recording(*chosen, Stage.FRONT_END)
        if mixed or replayed or runtime.needs or runtime.samples > 1:
            return []
        same = Same(
            self.card, self.source, self.runtimes, self.dataset.items, infer, spec, fed,
            lambda profile, card: front_end(
                self.card, profile, chosen[1], self.dataset.items, card
            ).recipes,
        )  # fmt: skip
        runtimes = [made[Stage.RUNTIME] for _, made in (*pair.values(), chosen)]
        return [same.notice(name, runtimes)]

    def front_end(self, profile: Profile, choices: Choices) -> Chain:
        """Return the steps of a profile up to the network's input."""
        return front_end(self.card, profile, choices, self.dataset.items)

    def close(self) -> None:
        """Close every runtime."""
        self.runtimes.close()

    def refuse_other_samples(self, profile: Profile) -> None:
        """Refuse a profile of another kind of samples than the model's.

        Raises:
            ModelError: it is one.
        """
        modality = self.card.modality
        if profile.spec.modality != modality.name:
            own = profile.spec.front_end is not None
            remedy = "; say what it extends: --set STACK.extends=PROFILE" if own else ""
            raise ModelError(
                f"{profile.name} takes {profile.spec.modality}s, and "
                f"{self.card.path} is of a model that takes {modality.name}s{remedy}"
            )

    def _before(self, profile: Profile, choices: Choices, spec: CardSpec) -> tuple[Recipe, ...]:
        if found := recorded.recording(profile, choices, Stage.FRONT_END):
            found.check(self.source.digest, self.dataset.items)
            (feed,) = self.card.modality.feeds(spec)
            shape = found.array(self.dataset.items[0]).shape
            if shape != feed.shape:
                raise DataError(
                    f"{found.path}: the model card expects float32 tensors of shape {feed.shape}; "
                    f"that of {self.dataset.items[0].name} is {shape}"
                )
        return front_end(self.card, profile, choices, self.dataset.items, spec).recipes

    def _remarks(self, profile: Profile, choices: Choices) -> list[str]:
        """What users should know of a front end that is not ours; it is tried, once."""
        choice = choices.get(Stage.FRONT_END)
        if choice is None:
            return []
        lines = []
        if self.card.task.in_pixels:
            lines.append(
                "where its pixels lie, and so its boxes or masks, is taken from the sections that "
                "describe it: geometry, and exif of decode"
            )
        if choice.offer.make.runs_code:
            lines += self._tried(profile, choice)
        return lines

    def _tried(self, profile: Profile, choice: Choice) -> list[str]:
        """What a front end that is code makes of its tensors to fit them; it is tried, once."""
        key = digest(choice.identity())
        if key not in self._remarked:
            try:
                found = tried(choice, self.card, self.source, self.dataset.items, self.runtimes)
            except GivesOtherwise as error:
                error.reference = profile.where(())
                raise
            self._remarked[key] = changes(found, self.card.modality.feeds(self.card.spec))
        return [f"{called(choice)} gives {change}" for change in self._remarked[key]]

    def _adapted(
        self, profile: Profile, choices: Choices, fittings: Mapping[str, Fitting]
    ) -> Adapted:
        """The step of a network that adapts; it is opened once, so that it is refused early."""
        feeds = self.card.modality.feeds(self.card.spec)
        if len(feeds) != 1:
            raise ModelError(f"{self.card.path}: adaptation is for networks with one input")
        names = tuple(self.source.wanted(self.card))
        kind = getattr(getattr(self.card.task, "output", None), "kind", None)
        classifies = len(names) == 1 and kind in ("logits", "probabilities")
        step = Adapted(
            choices[Stage.ADAPT],
            before_export(self.card, self.source, profile, choices, fittings),
            {name: name for name in names},
            Entropy(names[0] if classifies else None, kind == "probabilities"),
            self.card.modality,
            ordered(choices[Stage.ADAPT], self.dataset.items),
        )
        if step not in self._adapting:
            step.opened(probe(feeds[0]))
            self._adapting.add(step)
        return step

    def _recorded(self, side: str, chosen: ResolvedProfile, found: Recording) -> Stack:
        """A stack whose predictions were recorded; nothing of it is run."""
        wanted = self.source.wanted(self.card)
        found.check(self.source.digest, self.dataset.items, tuple(wanted))
        effective = Effective({}, {"device": found.spec.device}, {"recording": found.spec.name})
        lines = [f"recorded on {found.spec.device}; its other sections describe it only"]
        if not found.stages:
            lines.append("its outputs were recorded without latencies")
        notices = tuple(Notice(Kind.RECORDED, line) for line in lines)
        artifact = Artifact(found.path, found.digest, "recording")
        chain = Chain(tuple(recorded.answers(found, *chosen, self.card, tuple(wanted))))
        return Stack(side, *chosen, chain, artifact, effective, notices)

    def _own(self, side: str, chosen: ResolvedProfile) -> Stack:
        """A stack that is not ours up to the outputs of the network, or to the answer."""
        profile, choice = chosen[0], chosen[1][Stage.RUNTIME]
        refuse_code(profile, choice)
        name = called(choice)
        if choice.options["gives"] == "answer":
            chain = Chain((OwnAnswer(choice, self.card.task, self.dataset.items),))
            what = "the answer: nothing of its profile is run"
        else:
            self.card.refuse_second(f"{name} gives the outputs of")
            outputs = self.source.wanted(self.card)
            own = OwnOutputs(choice, outputs, self.dataset.items)
            finish = finishing(profile, chosen[1], self.card)
            chain = Chain((own, *finish, answering(profile, self.card)))
            what = "the network's outputs: of its profile only what follows them is run"
        (file,) = choice.files
        artifact = Artifact(Path(choice.options[file]), digest(choice.identity()), "code")
        effective = Effective({}, {"device": choice.options["device"]}, {})
        notices = (Notice(Kind.MODEL, f"{name} gives {what}"),)
        return Stack(side, profile, chosen[1], chain, artifact, effective, notices)

    def _sized(self, spec: CardSpec, size: int) -> list[Feed]:
        """The inputs of a card's content, as a batch has them."""
        feeds = self.card.modality.feeds(spec)
        if size == 1:
            return list(feeds)
        if len(feeds) > 1 or any(feed.shape[0] != 1 or None in feed.shape for feed in feeds):
            made = " and ".join(shape_words(feed.shape) for feed in feeds)
            raise ModelError(
                f"runtime.batch: {self.card.path} takes {made}; a batch needs one input, with one "
                "row and one size for every sample: leave it out"
            )
        return [replace(feed, shape=(size, *feed.shape[1:])) for feed in feeds]

    def _here(
        self, choice: Choice, artifact: Artifact, feeds: Sequence[Feed], needs: Needs, size: int
    ) -> Looked:
        return look(self.runtimes, choice, artifact, feeds, size)

    def looked(
        self, choice: Choice, artifact: Artifact, feeds: Sequence[Feed], needs: Needs, size: int
    ) -> Looked:
        """Return what a runtime says; it is asked once."""
        key = key_of(choice, artifact), needs, size
        if key not in self._known:
            self._known[key] = self.look(choice, artifact, feeds, needs, size)
        return self._known[key]

    def names(
        self, artifact: Artifact, ports: Mapping[str, tuple[int | None, ...]]
    ) -> dict[str, str]:
        """Return the runtime's name of each output of the card; by position if it lost names."""
        if not self.source.outputs:
            return self._given(artifact, ports)
        wanted = self.source.wanted(self.card)
        if set(wanted) <= set(ports):
            names = {name: name for name in wanted}
        elif len(ports) == len(self.source.outputs):
            order = dict(zip(self.source.outputs, ports, strict=True))
            names = {name: order[name] for name in wanted}
        else:
            got = ", ".join(f"{name} {shape_words(shape)}" for name, shape in ports.items())
            raise ModelError(
                f"{artifact.path}: {len(self.source.outputs)} outputs expected "
                f"({', '.join(self.source.outputs)}), got {got}"
            )
        for name, runtime_name in names.items():
            if not _same(wanted[name], ports[runtime_name]):
                raise ModelError(
                    f"{artifact.path}: output {runtime_name!r} is "
                    f"{shape_words(ports[runtime_name])}, but {name!r} of {self.card.model} is "
                    f"{shape_words(wanted[name])}: they are different models"
                )
        return names

    def _given(
        self, artifact: Artifact, ports: Mapping[str, tuple[int | None, ...]]
    ) -> dict[str, str]:
        """The outputs of a file that only its runtime reads."""
        names = self.card.task.outputs() or tuple(ports)[:1]
        if missing := [name for name in names if name not in ports]:
            got = ", ".join(f"{name} {shape_words(shape)}" for name, shape in ports.items())
            raise ModelError(
                f"{self.card.path}: output: {artifact.path.name} has no output {missing[0]!r}; "
                f"it has {got}"
            )
        try:
            self.card.task.check({name: ports[name] for name in names})
        except ModelError as error:
            raise ModelError(f"{self.card.path}: {artifact.path.name}: {error}") from error
        return {name: name for name in names}

    def feeds(
        self, quantizer: Quantizer, given: Calibration, through: Chain
    ) -> tuple[Feeds, list[Notice]]:
        """Return the calibration inputs of a quantizer, at the end of a chain."""
        asked = Asked(quantizer.gives, given.samples, given.source)
        feeds, lines = self._calibrator().feeds(asked, through)
        return feeds, [Notice(Kind.CALIBRATION, line) for line in lines]

    def _fittings(
        self, profile: Profile, choices: Choices, pair: Pair
    ) -> tuple[dict[str, Fitting], list[Notice]]:
        """What the rewrites of the graph are fitted to, by axis."""
        needed = wanted(profile.spec.graph)
        if not needed:
            return {}, []
        runtimes = [one[Stage.RUNTIME] for one in (choices, *(made for _, made in pair.values()))]
        choice = in_fp32(runtimes, f"graph.{next(iter(needed))}")
        found: dict[str, Fitting] = {}
        lines: list[str] = []
        for axis, given in needed.items():
            self.report(f"{profile.name}: graph.{axis} (fitted once, then cached)")
            asked = Asked(f"graph.{axis}", given.samples, given.source, f"graph.{axis}'s source")
            through = [self.front_end(*pair[side]) for side in given.through]
            found[axis], more = self._calibrator().fitting(asked, through, choice)
            lines += more
        return found, [Notice(Kind.CALIBRATION, line) for line in lines]

    def _calibrator(self) -> Calibrator:
        return Calibrator(
            self.card.modality,
            next(iter(self.source.inputs)),
            self.dataset,
            self.seed,
            self.runtimes,
            self.evaluated,
        )


def _adapting(choice: Choice) -> str:
    """What a person should know of a stack that adapts."""
    options = choice.options
    reset = f", reset: {options['reset']}" if "reset" in options else ""
    return (
        f"its network adapts ({options['method']}, batches of {options['batch']}{reset}), so that "
        "an answer depends on other samples and their order; its time is that of a batch, divided "
        "by the samples of the batch, without the wait for them"
    )


def _together(profile: Profile) -> str:
    """What a person should know of a stack that runs batches."""
    runtime = profile.spec.runtime
    last = (
        "the last one has what is left"
        if runtime.is_dynamic
        else ("one with fewer is filled up with copies of its last sample")
    )
    return (
        f"batches of {runtime.samples} in the order of the run; {last}; a sample's time is that of "
        "its batch, divided by the samples of the batch, without the wait for them"
    )


def _same(shape: Sequence[int | None], other: Sequence[int | None]) -> bool:
    """Whether two shapes are compatible, ignoring the batch and sizes of 1.

    A converter may drop dimensions of size 1, and a runtime may know that a free one is 1.
    """
    whole = shape[1:], other[1:]
    squeezed = tuple([side for side in dims if side != 1] for dims in whole)
    return any(
        len(mine) == len(theirs)
        and all(None in (a, b) or a == b for a, b in zip(mine, theirs, strict=True))
        for mine, theirs in (whole, squeezed)
    )
