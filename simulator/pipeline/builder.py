"""Builds stacks: makes their artifacts, opens their runtimes and reads back what is in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from simulator.conditions.condition import AppliedCondition
from simulator.contract import Effective, Stage
from simulator.contract.passes import Fitting, Request
from simulator.contract.recipe import Chain, Recipe
from simulator.data.folder import Dataset, Item
from simulator.errors import ModelError
from simulator.modalities.card import CardSpec
from simulator.modalities.modality import Feed
from simulator.model.artifact import Artifact, Feeds, before_export, build
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.model.passes.rewrite import wanted
from simulator.notices import Kind, Notice
from simulator.pipeline import adapted, in_force, recorded
from simulator.pipeline.batched import Batched
from simulator.pipeline.beside import FollowBeside
from simulator.pipeline.calibration import Asked, Calibrator
from simulator.pipeline.feeding import feeding, in_sizes, of_batch
from simulator.pipeline.float_runtime import in_fp32
from simulator.pipeline.front_end import front_end
from simulator.pipeline.inference import Follow, Infer, answering, finishing
from simulator.pipeline.look import Looked, look, outputs_of, probe
from simulator.pipeline.own_front_end import own_stack
from simulator.pipeline.runtimes import RuntimePool, key_of
from simulator.pipeline.same_network import Same
from simulator.pipeline.second import behind_first, refuse_second
from simulator.pipeline.stack import Needs, Pair, ResolvedProfile, Stack
from simulator.pipeline.tried import Tried
from simulator.profile.artifact import own_file
from simulator.profile.implementations import Choice, Choices
from simulator.profile.precision import Calibration
from simulator.profile.profile import Profile

Report = Callable[[str], None]
Look = Callable[[Choice, Artifact, Sequence[Feed], Needs, int], Looked]


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
        self._adapting: set[adapted.Adapted] = set()
        self._tried = Tried(card, source, self.runtimes)
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

    def close(self) -> None:
        """Close every runtime."""
        self.runtimes.close()

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
            recorded.refuse_unreached(side, chosen, under)
        given = side, chosen, self.card, self.source, self.dataset.items
        if found := recorded.recording(profile, choices, Stage.RUNTIME):
            return recorded.recorded_stack(found, *given)
        if choices[Stage.RUNTIME].offer.make.takes == "sample":
            return own_stack(*given)
        fed, spec, told = feeding(profile, choices, self.card)
        sizes = in_sizes(self.card, self.source, fed, choices, spec)
        if found := recorded.recording(fed, choices, Stage.FRONT_END):
            recorded.check_tensors(found, self.card, self.source, self.dataset.items, spec)
        before = front_end(self.card, fed, choices, self.dataset.items, spec).recipes
        remarks = self._tried.remarks(profile, choices, self.dataset.items)
        notices = [Notice(Kind.MODEL, line) for line in remarks]
        answer = answering(profile, self.card)
        files = [item.path for item in self.dataset.items]
        format = under.condition.gives_format if under else None
        of_data = self.card.modality.remarks(answer.placing, files, choices, format)
        after = under.requests() if under else ()
        fittings, artifacts, lines = self._artifacts(side, chosen, pair, after)
        sequel = answer.task.sequel(answer.settings)
        self.report(f"{side}: opening {choices[Stage.RUNTIME].backend.name}")
        told, samples = [*profile.notes, *told], profile.spec.runtime.samples
        made = [
            self.opened(
                chosen, one, of_batch(self.card, content, samples), told, goes_on=sequel is not None
            )
            for content, one in zip(sizes, artifacts, strict=True)
        ]
        (infer, effective, _), *_ = made
        more = list(dict.fromkeys(line for *_, lines in made for line in lines))
        if len(sizes) > 1:
            shapes = [self.card.modality.feeds(content)[0].shape[1:] for content in sizes]
            infer = replace(infer, sized=tuple(zip(shapes, artifacts, strict=True)))
        notices += [*lines, *more, *(Notice(Kind.DATA, line) for line in of_data)]
        if own := own_file(profile):
            notices += self._compared(own.path.name, chosen, pair, infer, fed, spec)
        network: tuple[Recipe, ...] = (infer,)
        if self.card.second and self.card.task.takes_second(profile):
            behind, lines = behind_first(self._of_second(), side, chosen, pair, infer, answer)
            network, notices = (infer, *behind), [*notices, *lines]
        if sequel:
            if sequel.is_cached:
                self._refuse_uncached(profile, infer, sequel.moves)
            given_steps = infer, sequel, answer.placing
            follow = Follow(*given_steps)
            if sequel.neighbours:
                follow = FollowBeside(*given_steps, self.card.modality, self.order())
            network = (infer, follow)
        network, lines = self._several(side, chosen, network, fittings, bool(after))
        notices += lines
        chain = Chain((*before, *network, *finishing(profile, choices, self.card), answer))
        return Stack(
            side, profile, choices, chain, infer.artifact, effective, tuple(notices),
            None if spec is self.card.spec else spec,
        )  # fmt: skip

    def front_end(self, profile: Profile, choices: Choices) -> Chain:
        """Return the steps of a profile up to the network's input."""
        return front_end(self.card, profile, choices, self.dataset.items)

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

    def feeds(
        self, profile: Profile, pair: Pair, then: Sequence[Recipe] = (), *,
        given: Calibration | None = None,
    ) -> tuple[Feeds | None, list[Notice]]:  # fmt: skip
        """Return the calibration inputs of a profile's quantizer; None where it needs none.

        Args:
            profile: the stack.
            pair: see :meth:`stack`.
            then: the steps from the first network's input to the second's, where it is that one's.
            given: the samples, in place of the quantizer's.
        """
        quantizer = profile.spec.precision.quantizer
        if quantizer is None or (given := given or quantizer.calibration) is None:
            return None, []
        through = Chain((*self.front_end(*pair[given.through]).recipes, *then))
        asked = Asked(quantizer.gives, given.samples, given.source)
        return self._calibrator().feeds(asked, through)

    def opened(
        self, chosen: ResolvedProfile, artifact: Artifact, feeds: Sequence[Feed],
        told: Sequence[str] = (), *, goes_on: bool = False, kept: tuple[str, ...] = (),
    ) -> tuple[Infer, Effective, list[Notice]]:  # fmt: skip
        """Open a runtime, which is asked once; return its step and what is in force.

        Args:
            chosen: the stack.
            artifact: the model file.
            feeds: the inputs of one inference.
            told: what else users should know of the file.
            goes_on: see :class:`Infer`.
            kept: see :class:`Infer`.
        """
        profile, choices = chosen
        choice, runtime = choices[Stage.RUNTIME], profile.spec.runtime
        key = key_of(choice, artifact), runtime.needs, runtime.samples
        if key not in self._known:
            self._known[key] = self.look(choice, artifact, feeds, *key[1:])
        looked = self._known[key]
        outputs = outputs_of(self.card, self.source, artifact, looked.outputs)
        infer = Infer(choice, artifact, looked.inputs, outputs, goes_on, runtime.needs, kept)
        lines = [*told, *looked.lines, *artifact.notes]
        notices = in_force.notices(profile, choices, looked.effective)
        return infer, looked.effective, notices + [Notice(Kind.MODEL, line) for line in lines]

    def _refuse_uncached(self, profile: Profile, infer: Infer, moves: bool) -> None:
        """Refuse a cache that neither the network nor the runtime has, or moves keys in."""
        if moves and not infer.choice.offer.make.moves:
            raise ModelError(
                f"{profile.where(('decoding', 'shift'))}: decoding.shift: "
                f"{infer.choice.backend.name} does not move kept keys to other positions; "
                "llama_cpp does; leave it out"
            )
        runtime = profile.spec.runtime
        key = key_of(infer.choice, infer.artifact), runtime.needs, runtime.samples
        carried = self.card.carried
        if self._known[key].is_stateful or (carried and set(carried) <= set(infer.inputs)):
            return
        raise ModelError(
            f"{profile.where(('decoding', 'cache'))}: decoding.cache: kv, but "
            f"{infer.artifact.path.name} takes no past keys and values and "
            f"{infer.choice.backend.name} keeps none; make the model with simulate model new "
            "FILE.gguf --cache, or write cache: none"
        )

    def _here(
        self, choice: Choice, artifact: Artifact, feeds: Sequence[Feed], needs: Needs, size: int
    ) -> Looked:
        return look(self.runtimes, choice, artifact, feeds, size)

    def _artifacts(
        self, side: str, chosen: ResolvedProfile, pair: Pair, after: Sequence[Request]
    ) -> tuple[dict[str, Fitting], list[Artifact], list[Notice]]:
        """Make the model file, or one for each size of the input.

        Returns:
            What its graph is fitted to, the files, and what users should know.
        """
        profile, choices = chosen
        if quantizer := profile.spec.precision.quantizer:
            self.report(f"{side}: {quantizer.gives} artifact (quantized once, then cached)")
        feeds, notices = self.feeds(profile, pair)
        fittings, lines = self._fittings(profile, choices, pair)
        refuse_second(self.card, profile, choices, after)
        made = [
            build(card, self.source, profile, choices, feeds, after, fittings=fittings)
            for card in map(
                self.card.sized,
                in_sizes(self.card, self.source, profile, choices, self.card.spec),
            )
        ]
        return fittings, made, notices + lines

    def _several(
        self, side: str, chosen: ResolvedProfile, network: tuple[Recipe, ...],
        fittings: Mapping[str, Fitting], is_changed: bool,
    ) -> tuple[tuple[Recipe, ...], list[Notice]]:  # fmt: skip
        """The network's steps, in batches or adapting where a profile says so."""
        (profile, choices), notices = chosen, []
        infer, *others = network
        if (size := profile.spec.runtime.samples) > 1:
            if others:
                adapted.refuse_together(side, profile, choices, "what follows from an answer needs")
            assert isinstance(infer, Infer)
            dynamic = profile.spec.runtime.is_dynamic
            network = (Batched(infer, size, dynamic, self.card.modality, self.order()),)
            notices.append(Notice(Kind.BATCHED, _together(profile)))
        if Stage.ADAPT in choices:
            if others or is_changed:
                adapted.refuse_adapting(side, choices, "what follows or changes a network needs")
            network = (self._adapted(profile, choices, fittings),)
            notices.append(Notice(Kind.ADAPTED, adapted.told(choices[Stage.ADAPT])))
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

    def _adapted(
        self, profile: Profile, choices: Choices, fittings: Mapping[str, Fitting]
    ) -> adapted.Adapted:
        """The step of a network that adapts; it is opened once, so that it is refused early."""
        start = before_export(self.card, self.source, profile, choices, fittings)
        step = adapted.adapting(self.card, self.source, start, choices, self.dataset.items)
        if step not in self._adapting:
            step.opened(probe(*self.card.feeds))
            self._adapting.add(step)
        return step

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
        notices: list[Notice] = []
        for axis, given in needed.items():
            self.report(f"{profile.name}: graph.{axis} (fitted once, then cached)")
            asked = Asked(f"graph.{axis}", given.samples, given.source, f"graph.{axis}'s source")
            through = [self.front_end(*pair[side]) for side in given.through]
            found[axis], more = self._calibrator().fitting(asked, through, choice)
            notices += more
        return found, notices

    def _calibrator(self) -> Calibrator:
        return Calibrator(
            self.card.modality,
            next(iter(self.source.inputs)),
            self.dataset,
            self.seed,
            self.runtimes,
            self.evaluated,
        )


def _together(profile: Profile) -> str:
    """What a person should know of a stack that runs batches."""
    runtime = profile.spec.runtime
    last = (
        "the last one has what is left"
        if runtime.is_dynamic
        else "one with fewer is filled up with copies of its last sample"
    )
    return (
        f"batches of {runtime.samples} in the order of the run; {last}; a sample's time is that of "
        "its batch, divided by the samples of the batch, without the wait for them"
    )
