"""What the differences are called: of inputs, of layers, of answers, and of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.model import shape_words
from simulator.diagnose.answered import Answered
from simulator.diagnose.blame import Sample
from simulator.diagnose.declared import Declared
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.front_ends import named_by_search
from simulator.diagnose.inputs import name_inputs
from simulator.diagnose.layers.part import part as layer_by_layer
from simulator.diagnose.levels import of_training, planes
from simulator.diagnose.normalization import Numbers
from simulator.diagnose.outputs import both, name_outputs
from simulator.diagnose.parts import DEPLOY, TRAIN, input_of, outputs_of
from simulator.diagnose.registered import Registered, registered, unnamed
from simulator.diagnose.sounds import name_sounds
from simulator.diagnose.tokens import name_tokens
from simulator.diagnose.varied import Varied
from simulator.errors import UserError, one_line
from simulator.experiments.common import PLAIN
from simulator.modalities.audio.card import AudioCard
from simulator.modalities.image.card import ImageCard
from simulator.modalities.image.front_end import statistics
from simulator.modalities.text.card import TextCard
from simulator.profile.axes import axis_of
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.modality import at
from simulator.results.diagnose import PartResult
from simulator.results.layers import LayersFigures

_FILE = "precision.artifact"
SECONDS = 60
"""For searches of both front ends, where no relation of the inputs explains them."""
HALF = 0.5
"""A name that leaves more than this share of the largest difference explains nothing."""
FEW = 2
"""Names that together may be the nearest; more of them explain anything."""


@dataclass
class Names:
    """Names the differences of two stacks."""

    declared: Declared
    samples: Sequence[Sample]
    layers: LayersFigures | None = None
    notes: list[str] = field(default_factory=list)

    def findings(self, found: Sequence[PartResult]) -> list[Finding]:
        """Return the names of all that differs, in the order of the parts."""
        state = {one.part: one.state for one in found}
        names: list[Finding] = []
        if state["front end"] == "differs":
            names += self._front_end()
        if state["network"] == "differs":
            names += self._network()
        if state["postprocessing"] == "differs":
            names += self.declared.findings(Part.POSTPROCESS)
        if not names and "unknown" in state.values():
            names += Answered(self.declared, self.samples, self.notes).findings()
        return names

    def _both(self, part: Part, solved: Sequence[Finding]) -> list[Finding]:
        """What profiles declare has what to change; what was solved may have a better name."""
        declared = self.declared.findings(part)
        if not declared:
            return [*solved]
        sure = (Certainty.EXACT, Certainty.ROUNDING)
        said = [one for one in solved if one.certainty in sure or part is Part.NETWORK]
        found = [_with_change(one, declared) for one in said]
        return [*found, *(one for one in declared if not any(_axes(one) & _axes(s) for s in said))]

    def _network(self) -> list[Finding]:
        """What its outputs have otherwise; else why its layers differ, or what is declared.

        That another file was named is no name of what differs in it.
        """
        named, layers = self._outputs(), self._layers()
        if named:
            return [*named, *(one for one in layers if one.certainty is not Certainty.NEAREST)]
        found = self._both(Part.NETWORK, layers)
        own = [one for one in found if _FILE in one.change]
        if layers and own:
            return layers
        return [self._file(one) if one in own else one for one in found]

    def _file(self, one: Finding) -> Finding:
        """Say of a declared difference that it is a file of its own, and nothing more."""
        told = "With the training stack's file they are equal, which says not what differs in it."
        name = "its file is another one, and no layer says what differs in it"
        stored = at(self.declared.pair[DEPLOY][0].spec, ("precision", "storage"))
        if "precision.storage" in one.change:
            name = f"its file is stored in {stored}, and no layer is to blame alone"
        return Finding(one.part, name, (*one.evidence, told), Certainty.NEAREST)

    def _outputs(self) -> list[Finding]:
        """Slips of the outputs of both networks, fed with the training stack's input."""
        whole = both(self.samples, *(outputs_of(TRAIN, side) for side in (TRAIN, DEPLOY)))
        return name_outputs([a for a, _ in whole], [b for _, b in whole], Part.NETWORK)

    def _front_end(self) -> list[Finding]:
        """Solved from the values, as the profiles declare it, or by a search for both stacks."""
        session = self.declared.session
        card = session.card.spec
        sides: list[list[Any]] = [
            [one[input_of(side)] for one in self.samples] for side in (TRAIN, DEPLOY)
        ]
        train, deploy = sides
        if isinstance(card, TextCard):
            return self._both(Part.FRONT_END, name_tokens(train, deploy, card))
        fits = all(isinstance(one, np.ndarray) for side in sides for one in side)
        files = [session.executor.context(one).source for one in self.declared.items[: len(train)]]
        if isinstance(card, AudioCard) and fits:
            names = self._both(Part.FRONT_END, name_sounds(train, deploy, card, files))
            sure = any(one.certainty.sure for one in names)
            return names if sure else self._varied(train, deploy) or names
        if not isinstance(card, ImageCard) or not fits:
            return self.declared.findings(Part.FRONT_END)
        for a, b in zip(train, deploy, strict=True):
            if a.shape != b.shape:
                return self.declared.findings(Part.FRONT_END) or [_another_size(a, b)]
        apart = max(float(np.abs(a - b).max()) for a, b in zip(train, deploy, strict=True))
        turned = [one.orientation for one in files]
        found = name_inputs(train, deploy, card, self._numbers(card, train), turned)
        near = Certainty.NEAREST
        solved = [
            one for one in found if one.certainty is not near or (one.left or 0.0) < HALF * apart
        ]
        names = self._both(Part.FRONT_END, solved)
        if any(one.certainty.sure for one in names):
            return names
        return self._other_pixels(card, train, deploy, names, apart)

    def _other_pixels(
        self,
        card: ImageCard,
        train: Sequence[Array],
        deploy: Sequence[Array],
        solved: list[Finding],
        apart: float,
    ) -> list[Finding]:
        """Registered where images lie elsewhere; else, or for the last bits, searched."""
        session, items = self.declared.session, self.declared.items[: len(train)]
        searched: list[Finding] = []
        known: Registered | None = None
        try:
            session.show.say("where the images lie in the inputs")
            known = registered(session, items, train, deploy)
            own = known.geometries(session) if known else None
            if own is None or all(own):
                searched, tried = named_by_search(session, items, train, deploy, SECONDS, own)
                if searched and searched[0].certainty.sure:
                    return known.shown(searched) if known else searched
                self.notes.append(
                    f"{tried:,} front ends of the decoders, kernels, geometries and colors that "
                    "run here were tried, and none gives the inputs to the bit"
                )
        except UserError as error:
            self.notes.append(f"no stack was searched for: {one_line(error)}")
        if known and known.findings:
            return known.findings
        for names in (solved, searched):
            if 0 < len(names) <= FEW and (names[0].left or 0.0) < HALF * apart:
                return names
        return [unnamed(train, deploy, card, known is not None)]

    def _numbers(self, card: ImageCard, train: Sequence[Array]) -> Numbers:
        """Mean and std of the training stack: those of its profile, or that its values show."""
        profile = self.declared.pair[TRAIN][0]
        if profile.spec.front_end is None:
            return Numbers(*statistics(profile, card.input))
        return of_training([planes(one, card) for one in train], card)

    def _varied(self, train: Sequence[Any], deploy: Sequence[Any]) -> list[Finding]:
        """Names of sounds' inputs, by varying the stack that the card describes."""
        session = self.declared.session
        session.show.say("trying other front ends")
        try:
            profile = load(PLAIN["audio"])
            found = Varied(session, self.declared.items[: len(train)], (profile, choose(profile)))
            return found.findings(train, deploy)
        except UserError as error:
            self.notes.append(f"no other front end was tried: {one_line(error)}")
            return []

    def _layers(self) -> list[Finding]:
        session, stacks = self.declared.session, self.declared.parts.stacks
        session.show.say("comparing the networks layer by layer")
        mixed = any(outputs_of(TRAIN, DEPLOY) in one for one in self.samples)
        side = input_of(TRAIN if mixed else DEPLOY)
        given: list[Any] = [one[side] for one in self.samples if side in one]
        if not given or isinstance(given[0], tuple):
            return []
        try:
            compared = layer_by_layer(stacks[TRAIN], stacks[DEPLOY], given, session)
        except UserError as error:
            self.notes.append(f"layers were not compared: {one_line(error)}")
            return []
        self.layers = compared.figures
        return [*compared.findings]


def _another_size(train: Array, deploy: Array) -> Finding:
    """Say that the network gets another size, and nothing of what is in it."""
    sizes = [shape_words(one.shape) for one in (train, deploy)]
    name = f"the network's input is {sizes[1]} in place of {sizes[0]}"
    return Finding(Part.FRONT_END, name, (), Certainty.NEAREST, code="make inputs of the same size")


def _axes(one: Finding) -> set[str]:
    return {*map(axis_of, one.change)}


def _with_change(solved: Finding, declared: Sequence[Finding]) -> Finding:
    """A solved difference with what the profiles declare of the same axis."""
    own = next((one for one in declared if _axes(one) & _axes(solved)), None)
    if own is None:
        return replace(solved, change={})
    evidence = (*solved.evidence, *own.evidence)
    return replace(own, name=solved.name, evidence=evidence, code=own.code or solved.code)
