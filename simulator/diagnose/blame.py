"""Which part of two stacks is to blame: each one alone, fed with the same values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from simulator.analysis.attribute import shapley
from simulator.contract.recipe import Boundary
from simulator.diagnose.finding import Part
from simulator.diagnose.gap import INPUT_ROUNDING, OUTPUT_ROUNDING, Apart, answers_apart
from simulator.diagnose.parts import DEPLOY, TRAIN, Parts, Sides, input_of, label, outputs_of
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES
from simulator.pipeline.inference import Answer
from simulator.pipeline.walk import Walk
from simulator.profile.modality import at
from simulator.results.diagnose import PartResult, State
from simulator.statistics.bootstrap import Floats
from simulator.tasks.score import Record, numbers

PARTS = tuple(Part)
_ASSUMED = "Of the device only the input was recorded: what it does with it is not known."
Sample = dict[str, object]
"""Inputs and outputs of one sample, by the names of their ways."""


@dataclass(slots=True)
class Values:
    """Collects how far the values of both stacks are apart, and those of the first samples."""

    session: Session
    parts: Parts
    kept: int
    inputs: Apart = field(init=False)
    networks: dict[str, Apart] = field(init=False)
    both: Apart = field(init=False)
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        card = self.session.card
        self.inputs = Apart(INPUT_ROUNDING, card.modality.levels_of(card.spec))
        self.networks = {side: Apart(OUTPUT_ROUNDING) for side in SIDES}
        self.both = Apart(OUTPUT_ROUNDING)

    def see(self, walk: Walk) -> None:
        """Take one sample."""
        known = walk.plan.asides
        found: Sample = {name: walk.aside(name) for name in known}
        found = {name: getattr(value, "outputs", value) for name, value in found.items()}
        card, plain = self.session.card, np.ones(1)
        scale = card.modality.scale(self.parts.stacks[TRAIN].profile, card.spec)
        pairs = {(TRAIN, TRAIN, DEPLOY, DEPLOY): self.both}
        pairs |= {(side, TRAIN, side, DEPLOY): self.networks[side] for side in SIDES}
        if all(input_of(side) in found for side in SIDES):
            self.inputs.add(found[input_of(TRAIN)], found[input_of(DEPLOY)], scale)
        for (a, b, c, d), apart in pairs.items():
            one, two = outputs_of(a, b), outputs_of(c, d)
            if one in found and two in found:
                apart.add(found[one], found[two], plain)
        if len(self.samples) < self.kept:
            self.samples.append(found)


@dataclass(frozen=True)
class Blame:
    """The answers of all mixtures, and what the values say.

    Attributes:
        session: the model and the samples.
        parts: both stacks.
        values: how far they are apart.
        done: the records of every mixture, by :func:`label`.
        mixtures: those that ran.
    """

    session: Session
    parts: Parts
    values: Values
    done: RecordStore
    mixtures: frozenset[Sides]

    @property
    def changed(self) -> tuple[int, int]:
        """How many answers of the deployment stack differ from the training stack's, and of all."""
        deploy = self.done.records(DEPLOY)
        return self._changed((DEPLOY, DEPLOY, DEPLOY)), int(numbers(deploy, "units")[0].sum())

    @property
    def answers(self) -> State:
        """Whether the two stacks' answers differ."""
        return self._apart([((TRAIN,) * 3, (DEPLOY,) * 3)])

    def results(self) -> list[PartResult]:
        """Return what is known of each part."""
        inputs_only = any(
            at(stack.profile.spec, ("front_end", "recording")) is not None
            and stack.chain.has(Boundary.INPUT)
            for stack in self.parts.stacks.values()
        )
        found = [self._front_end(), self._network(), self._postprocess()]
        found = [
            one.model_copy(update={"assumed": True, "told": [*one.told, _ASSUMED]})
            if one.same and inputs_only
            else one
            for one in found
        ]
        return [self._shared(number, one) for number, one in enumerate(found)]

    def _front_end(self) -> PartResult:
        inputs = self.values.inputs
        gap, part = inputs.gap, Part.FRONT_END
        if gap is None:
            return self._unknown(part, "input of the network")
        if inputs.state == "equal":
            told = "Both stacks give the network the same input, to the bit."
        elif gap.mean is None:
            told = "The inputs have other shapes."
        else:
            how = "differ" if inputs.state == "differs" else "are equal up to rounding"
            told = (
                f"The inputs {how}: mean {gap.mean:.3g} {gap.unit}, at most {gap.largest:.3g}, in "
                f"{100 * gap.values:.1f} % of the values."
            )
        return PartResult(part=part.value, state=inputs.state, told=[told], gap=gap)

    def _network(self) -> PartResult:
        part = Part.NETWORK
        tried = {side: one for side, one in self.values.networks.items() if one.gap}
        if not tried:
            return self._unknown(part, "input of the network")
        order: list[State] = ["equal", "rounding", "differs"]
        side = max(tried, key=lambda side: order.index(tried[side].state))
        apart = tried[side]
        gap = apart.gap
        fed = "the same input" if len(tried) > 1 else f"the {_named(side)} stack's input"
        train, deploy = (self.parts.cuts[one].network for one in SIDES)
        same = train == deploy
        if same:
            told = "Both stacks run the same file in the same runtime."
        elif apart.state == "equal":
            told = f"Fed {fed}, both networks give the same outputs, to the bit."
        elif gap is None or gap.largest is None or gap.relative is None:
            told = f"Fed {fed}, the networks give outputs of other shapes, or no numbers."
        else:
            how = (
                "both networks agree to" if apart.state == "rounding" else "the networks differ by"
            )
            told = f"Fed {fed}, {how} {gap.largest:.2g}: {gap.relative:.2g} of the largest output."
        return PartResult(part=part.value, state=apart.state, told=[told], gap=gap, same=same)

    def _postprocess(self) -> PartResult:
        part = Part.POSTPROCESS
        pairs = [
            ((front, network, TRAIN), (front, network, DEPLOY))
            for front, network in product(SIDES, repeat=2)
            if {(front, network, side) for side in SIDES} <= self.mixtures
        ]
        if not pairs:
            return self._unknown(part, "outputs of the network")
        state = self._apart(pairs)
        told = {
            "equal": "The same outputs give the same answers through both.",
            "rounding": "The same outputs give the same answers through both, up to rounding.",
            "differs": "The same outputs give other answers through the other postprocessing.",
        }[state]
        one, two = (self.parts.last(TRAIN, side) for side in SIDES)
        same = one is not None and two is not None and _settings(one) == _settings(two)
        if same:
            told = "Both stacks have the same settings of it."
        return PartResult(part=part.value, state=state, told=[told], same=same)

    def _unknown(self, part: Part, what: str) -> PartResult:
        cuts = self.parts.cuts
        lacks = [
            side
            for side, cut in cuts.items()
            if (cut.outputs is None if part is Part.POSTPROCESS else cut.front is None)
        ]
        told = [
            f"Not known: of the {_named(side)} stack there is no {what}." for side in lacks
        ] or ["Not known: neither network runs on the other stack's input."]
        same = self.values.both.state
        if part is not Part.POSTPROCESS and same in ("equal", "rounding"):
            how = "to the bit" if same == "equal" else "up to rounding"
            told = [f"Not to blame: the outputs of both stacks are equal {how}."]
            return PartResult(part=part.value, state=same, told=told)
        return PartResult(part=part.value, state="unknown", told=told)

    def _shared(self, at: int, found: PartResult) -> PartResult:
        """A part with what it does to the answers, as far as the mixtures ran."""
        only = _swapped({at})
        others = _swapped({0, 1, 2} - {at})
        update: dict[str, object] = {}
        if only in self.mixtures:
            update["alone"] = self._changed(only)
        if others in self.mixtures:
            update["repaired"] = self.changed[0] - self._changed(others)
        if len(self.mixtures) == 2 ** len(PARTS):
            update["share"] = self._shares[at]
        return found.model_copy(update=update)

    @property
    def _shares(self) -> list[float]:
        names = [part.value for part in PARTS]

        def game(chosen: frozenset[str]) -> Floats:
            sides = _swapped({names.index(name) for name in chosen})
            return np.array([float(self._changed(sides))])

        return [round(float(one), 6) for one in shapley(names, game).values[:, 0]]

    def _changed(self, sides: Sides) -> int:
        return int(numbers(self.done.records(label(sides)), "changed")[0].sum())

    def _apart(self, pairs: Iterable[tuple[Sides, Sides]]) -> State:
        task = self.session.card.task
        counts = {*task.kinds, "changed", "units"}
        fractions = [c.name for c in task.columns if c.name not in {*task.answer, *counts}]
        rows: list[tuple[Record, Record]] = []
        for one, two in pairs:
            rows += zip(*(self.done.records(label(sides)) for sides in (one, two)), strict=True)
        return answers_apart(rows, task.answer, fractions)


def _swapped(parts: Iterable[int]) -> Sides:
    """The training stack with some parts of the deployment stack."""
    chosen = {*parts}
    front, network, post = (DEPLOY if at in chosen else TRAIN for at in range(3))
    return front, network, post


def _settings(one: Answer) -> object:
    return one.task.name, one.settings.identity()


def _named(side: str) -> str:
    return "training" if side == TRAIN else "deployment"
