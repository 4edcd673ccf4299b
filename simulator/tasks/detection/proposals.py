"""Between the two networks of a detector: the boxes that the second one looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.model import Port, shape_words
from simulator.errors import ModelError, unknown
from simulator.tasks.detection.card import Proposals
from simulator.tasks.detection.decode import in_network
from simulator.tasks.detection.nms import fitting
from simulator.tasks.detection.settings import Settings


@dataclass(frozen=True, slots=True)
class Proposing:
    """Makes proposals of the first network's outputs, and passes its feature maps on.

    Attributes:
        card: the card's section.
        settings: the card's choices with the profile's in their place.
    """

    card: Proposals
    settings: Settings

    @property
    def kept(self) -> tuple[str, ...]:
        """The proposals, which boxes are told from."""
        return (self.card.input,)

    def identity(self) -> Any:
        """Return the names, and every choice."""
        return [self.card.input, list(self.card.features), self.settings.identity()]

    def feeds(self, outputs: Mapping[str, Array], placement: Any) -> dict[str, Array]:
        """Return the proposals as float32, best first, and the maps; one empty box if none is left.

        Raises:
            NotFinite: the network gave NaN or an infinity, or a box overflows.
        """
        with np.errstate(all="ignore"):  # what overflows is infinite, and refused
            boxes, labels, _ = in_network(outputs, self.settings.at(placement), 1, None)
        boxes = boxes[fitting(boxes, labels, self.settings.nms)]
        given = boxes if len(boxes) else np.zeros((1, 4))
        maps = {name: outputs[name] for name in self.card.features}
        return {**maps, self.card.input: given.astype(np.float32)}


def check_inputs(
    card: Proposals, shapes: Mapping[str, Any], inputs: Mapping[str, Port], where: str
) -> None:
    """Refuse a second network that does not take the proposals and the feature maps of its card.

    Args:
        card: the section ``proposals``.
        shapes: of the first network's outputs.
        inputs: of the second network.
        where: its file, for messages.

    Raises:
        ModelError: naming the input, what was expected and what it is.
    """
    wanted = {name: tuple(shapes[name]) for name in card.features} | {card.input: (None, 4)}
    for name, shape in wanted.items():
        if name not in inputs:
            raise ModelError(f"proposals: {where}{unknown('input', name, inputs)}")
        got = inputs[name].shape
        known = zip(got, shape, strict=False)
        same = len(got) == len(shape) and all(a == b or None in (a, b) for a, b in known)
        if not same or (name == card.input and got[0] is not None):
            raise ModelError(
                f"{where}input {name!r}: expected {shape_words(shape)}, got {shape_words(got)}"
            )
    if more := sorted(set(inputs) - set(wanted)):
        raise ModelError(
            f"{where}input {more[0]!r} is fed by nothing; name it in proposals.features"
        )
