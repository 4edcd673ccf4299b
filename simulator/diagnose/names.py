"""What the differences are called: of inputs, of layers, of answers, and of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from simulator.data.folder import Item
from simulator.diagnose.answers import name_classes, name_outputs, only
from simulator.diagnose.blame import Sample
from simulator.diagnose.boxes import Seen, name_boxes
from simulator.diagnose.declared import Declared
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.front_ends import named_by_search
from simulator.diagnose.inputs import name_inputs
from simulator.diagnose.layers.part import part as layer_by_layer
from simulator.diagnose.parts import DEPLOY, TRAIN, input_of, outputs_of
from simulator.diagnose.trial import values_of
from simulator.errors import UserError, one_line
from simulator.modalities.image.card import ImageCard
from simulator.profile.axes import axis_of
from simulator.results.diagnose import PartResult
from simulator.results.layers import LayersFigures
from simulator.tasks.classification.answer import Answer as ClassAnswer
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.settings import Settings, Suppression

SECONDS = 60
"""For the search of both front ends, where no relation of the inputs explains them."""
HALF = 0.5
"""A name that leaves more than this share of the largest difference explains nothing."""


@dataclass
class Names:
    """Names the differences of two stacks.

    Attributes:
        declared: finds those that two profiles declare.
        samples: inputs and outputs of the first samples.
        layers: of the networks, once they were compared.
        notes: what could not be done, and why.
    """

    declared: Declared
    samples: Sequence[Sample]
    layers: LayersFigures | None = None
    notes: list[str] = field(default_factory=list)

    def findings(self, found: Sequence[PartResult]) -> list[Finding]:
        """Return the names of all that differs, in the order of the parts.

        Args:
            found: what is known of each part.
        """
        state = {one.part: one.state for one in found}
        names: list[Finding] = []
        if state["front end"] == "differs":
            names += self._front_end()
        if state["network"] == "differs":
            names += self._both(Part.NETWORK, self._layers())
        if state["postprocessing"] == "differs":
            names += self.declared.findings(Part.POSTPROCESS)
        if not names and "unknown" in state.values():
            names += self._answers()
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

    def _front_end(self) -> list[Finding]:
        """Solved from the values, as the profiles declare it, or by a search for both stacks."""
        session = self.declared.session
        card = session.card.spec
        sides = [[one[input_of(side)] for one in self.samples] for side in (TRAIN, DEPLOY)]
        fits = all(isinstance(one, np.ndarray) for side in sides for one in side)
        if not isinstance(card, ImageCard) or not fits:
            return self.declared.findings(Part.FRONT_END)
        train: list[Any] = sides[0]
        deploy: list[Any] = sides[1]
        apart = max(float(np.abs(a - b).max()) for a, b in zip(train, deploy, strict=True))
        found = name_inputs(train, deploy, card)
        solved = [one for one in found if (one.left or 0.0) < HALF * apart]
        names = self._both(Part.FRONT_END, solved)
        if any(one.certainty is not Certainty.NEAREST for one in names):
            return names
        try:
            items = self.declared.items[: len(train)]
            found = named_by_search(session, items, train, deploy, SECONDS)
        except UserError as error:
            self.notes.append(f"no stack was searched for: {one_line(error)}")
            return names
        sure = found and found[0].certainty is not Certainty.NEAREST
        return found if sure or not names else names

    def _layers(self) -> list[Finding]:
        session, stacks = self.declared.session, self.declared.parts.stacks
        session.show.say("comparing the networks layer by layer")
        given: list[Any] = [one[input_of(TRAIN)] for one in self.samples if input_of(TRAIN) in one]
        if not given or isinstance(given[0], tuple):
            return []
        try:
            compared = layer_by_layer(stacks[TRAIN], stacks[DEPLOY], given, session)
        except UserError as error:
            self.notes.append(f"layers were not compared: {one_line(error)}")
            return []
        self.layers = compared.figures
        return [*compared.findings]

    def _answers(self) -> list[Finding]:
        """Slips of outputs or answers of which no input is known."""
        parts, session = self.declared.parts, self.declared.session
        names = [outputs_of(side, side) for side in (TRAIN, DEPLOY)]
        known = [one for one in self.samples if all(name in one for name in names)]
        task = session.card.task.name
        if known and task == "classification":
            pairs = [[only(one[name]) for one in known] for name in names]
            train, deploy = ([one for one in side if one is not None] for side in pairs)
            return name_outputs(train, deploy) if len(train) == len(deploy) > 0 else []
        items = self.declared.items
        chains = {side: stack.chain for side, stack in parts.stacks.items()}
        try:
            found = values_of(session, chains, items)
        except UserError as error:
            self.notes.append(f"answers were not compared: {one_line(error)}")
            return []
        if all(isinstance(one, ClassAnswer) for one in (*found[TRAIN], *found[DEPLOY])):
            return name_classes(found[TRAIN], found[DEPLOY])
        if all(isinstance(one, Detections) for one in (*found[TRAIN], *found[DEPLOY])):
            return self._boxes(items, found[TRAIN], found[DEPLOY])
        return []

    def _boxes(
        self, items: Sequence[Item], train: Sequence[Detections], deploy: Sequence[Detections]
    ) -> list[Finding]:
        last = self.declared.parts.cuts[TRAIN].answer
        if last is None or not isinstance(last.settings, Settings):
            return []
        seen = []
        for at, (item, one, two) in enumerate(zip(items, train, deploy, strict=True)):
            placement = last.placing(self.declared.session.executor.context(item).source)
            outputs = self.samples[at].get(outputs_of(TRAIN, TRAIN))
            again = partial(_suppressed, last, outputs, placement)
            seen.append(Seen(one, two, placement, again if outputs else None))
        return name_boxes(seen, last.settings)


def _axes(one: Finding) -> set[str]:
    return {*map(axis_of, one.change)}


def _with_change(solved: Finding, declared: Sequence[Finding]) -> Finding:
    """A solved difference with what the profiles declare of the same axis."""
    own = next((one for one in declared if _axes(one) & _axes(solved)), None)
    if own is None:
        return replace(solved, change={})
    evidence = (*solved.evidence, *own.evidence)
    return replace(own, name=solved.name, evidence=evidence)


def _suppressed(last: Any, outputs: Any, placement: Any, nms: Suppression) -> Detections:
    """The training stack's boxes with another suppression."""
    found: Detections = last.task.decode(outputs, replace(last.settings, nms=nms), placement)
    return found
