"""What happened to outputs or answers of which no input is known, by the kind of answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from simulator.data.folder import Item
from simulator.diagnose.answers import name_classes
from simulator.diagnose.blame import Sample
from simulator.diagnose.boxes import Seen as Boxes
from simulator.diagnose.boxes import name_boxes
from simulator.diagnose.declared import Declared
from simulator.diagnose.finding import Finding
from simulator.diagnose.masks import Seen as Masks
from simulator.diagnose.masks import name_masks
from simulator.diagnose.outputs import both, name_outputs, only
from simulator.diagnose.parts import DEPLOY, TRAIN, outputs_of
from simulator.diagnose.trial import values_of
from simulator.errors import UserError, one_line
from simulator.modalities.image.geometry import Placement
from simulator.pipeline.inference import answering
from simulator.tasks.classification.answer import Answer as ClassAnswer
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.declared import Score
from simulator.tasks.detection.settings import Settings as BoxSettings
from simulator.tasks.detection.settings import Suppression
from simulator.tasks.segmentation.card import Settings as MaskSettings


@dataclass
class Answered:
    """Names slips of outputs or answers."""

    declared: Declared
    samples: Sequence[Sample]
    notes: list[str]

    def findings(self) -> list[Finding]:
        """Return the names of outputs, or of classes, boxes or masks."""
        whole = both(self.samples, *(outputs_of(side, side) for side in (TRAIN, DEPLOY)))
        if whole:
            return name_outputs([a for a, _ in whole], [b for _, b in whole])
        parts, items = self.declared.parts, self.declared.items
        chains = {side: stack.chain for side, stack in parts.stacks.items()}
        try:
            found = values_of(self.declared.session, chains, items)
        except UserError as error:
            self.notes.append(f"answers were not compared: {one_line(error)}")
            return []
        train, deploy = found[TRAIN], found[DEPLOY]
        every = [*train, *deploy]
        if all(isinstance(one, ClassAnswer) for one in every):
            return self._classes(train, deploy)
        if all(isinstance(one, Detections) for one in every):
            return self._boxes(items, train, deploy)
        if self.declared.session.card.task.name == "segmentation":
            return self._masks(items, train, deploy)
        return []

    def _classes(
        self, train: Sequence[ClassAnswer], deploy: Sequence[ClassAnswer]
    ) -> list[Finding]:
        card = self.declared.session.card
        given = [only(one.get(outputs_of(TRAIN, TRAIN))) for one in self.samples]
        logits = [one.astype(np.float64).ravel() for one in given if one is not None]
        kinds = getattr(card.task, "output", None)
        if len(logits) < len(train) or getattr(kinds, "kind", "") != "logits":
            logits = []
        labels = card.task.network.labels
        return name_classes(train, deploy, logits, labels.names if labels else ())

    def _boxes(
        self, items: Sequence[Item], train: Sequence[Detections], deploy: Sequence[Detections]
    ) -> list[Finding]:
        last = self._last()
        if not isinstance(last.settings, BoxSettings):
            return []
        pairs = zip(train, deploy, self._again(last, _suppressed, items), strict=True)
        seen = [Boxes(one, two, placement, again) for one, two, (placement, again) in pairs]
        return name_boxes(seen, last.settings)

    def _masks(
        self, items: Sequence[Item], train: Sequence[Any], deploy: Sequence[Any]
    ) -> list[Finding]:
        last = self._last()
        if not isinstance(last.settings, MaskSettings):
            return []
        pairs = zip(train, deploy, self._again(last, _masked, items), strict=True)
        return name_masks([Masks(one, two, again) for one, two, (_, again) in pairs], last.settings)

    def _again(
        self, last: Any, decode: Callable[..., Any], items: Sequence[Item]
    ) -> Iterator[tuple[Placement, Any]]:
        """Yield where each image lies, and what decodes its outputs anew; None: not known."""
        for number, item in enumerate(items):
            placement = last.placing(self.declared.session.executor.context(item).source)
            outputs = self.samples[number].get(outputs_of(TRAIN, TRAIN))
            yield placement, partial(decode, last, outputs, placement) if outputs else None

    def _last(self) -> Any:
        """The training stack's postprocessing; of code that answers by itself, the card's."""
        session, parts = self.declared.session, self.declared.parts
        return parts.cuts[TRAIN].answer or answering(parts.stacks[TRAIN].profile, session.card)


def _suppressed(
    last: Any, outputs: Any, placement: Any, nms: Suppression, score: Score | None
) -> Detections:
    """The training stack's boxes with another suppression, and with other scores."""
    settings = replace(last.settings, nms=nms)
    if score is not None:
        settings = replace(settings, head=settings.head.model_copy(update={"score": score}))
    found: Detections = last.task.decode(outputs, settings, placement)
    return found


def _masked(
    last: Any, outputs: Any, placement: Placement, settings: MaskSettings, whole: bool
) -> Any:
    """The training stack's mask with other settings, in the image's size or the network's."""
    if not whole:
        size = placement.network_height, placement.network_width
        placement = Placement(*size, *size, 0, 0, *size)
    return last.task.decode(outputs, settings, placement)
