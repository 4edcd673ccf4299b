"""Two stacks cut into front end, network and postprocessing, and the mixtures of these parts.

The parts are cut from the chains that the stacks really run: the network of a mixture is the very
file of its stack, calibrated as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from simulator.contract.model import of_shape
from simulator.contract.recipe import Boundary, Chain, Recipe
from simulator.experiments.session import Session
from simulator.experiments.summary import SIDES
from simulator.model.artifact import of_one_size
from simulator.model.card import Card
from simulator.pipeline.inference import Answer, answering
from simulator.pipeline.stack import Stack
from simulator.profile.profile import Profile

TRAIN, DEPLOY = SIDES
Sides = tuple[str, str, str]
"""Whose front end, network and postprocessing a mixture has."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The parts of one stack, as far as they are known.

    Attributes:
        front: to the network's input; None where only later values were recorded.
        network: from there to the outputs; empty where these were recorded.
        outputs: the whole way to the outputs; None where only answers are known.
        answer: from the outputs to the answer; None likewise.
    """

    front: Chain | None
    network: tuple[Recipe, ...]
    outputs: Chain | None
    answer: Answer | None


def cut(session: Session, stack: Stack) -> Cut:
    """Cut a stack into its parts.

    Args:
        session: the model and the samples.
        stack: where its outputs were recorded, its input is known where a front end is named too.
    """
    chain, last = stack.chain, stack.chain.last
    front = chain.until(Boundary.INPUT) if chain.has(Boundary.INPUT) else None
    if front is None and stack.profile.spec.front_end is not None:
        named = session.builder.front_end(stack.profile, stack.choices)
        outputs = Chain(chain.recipes[:-1]) if chain.has(Boundary.OUTPUTS) else None
        return Cut(named, (), outputs, last if isinstance(last, Answer) else None)
    if not chain.has(Boundary.OUTPUTS) or not isinstance(last, Answer):
        return Cut(front, (), None, None)
    outputs = Chain(chain.recipes[:-1])
    network = outputs.recipes[len(front.recipes) :] if front else ()
    if front and stack.fed:  # a model file that takes another input: what turns one into the other
        card, of = session.card, session.card.modality
        front = Chain((*front.recipes, *of.refed(stack.fed, card.spec)))
        network = (*of.refed(card.spec, stack.fed), *network)
    return Cut(front, network, outputs, last)


@dataclass(frozen=True)
class Parts:
    """Both stacks and their parts."""

    stacks: dict[str, Stack]
    cuts: dict[str, Cut]
    card: Card

    def outputs(self, front: str, network: str) -> Chain | None:
        """Return the way to the outputs of one side's network for one side's input.

        None where a value on it is not known.
        """
        before, after = self.cuts[front], self.cuts[network]
        if before.front and after.network:
            fit = front == network or self._fits(front, network)
            return Chain((*before.front.recipes, *after.network)) if fit else None
        return before.outputs if front == network else None

    def _fits(self, front: str, network: str) -> bool:
        """Whether one side's network opens in every size that the other's front end gives."""
        modality, spec, stack = self.card.modality, self.card.spec, self.stacks[network]
        if of_one_size(stack.choices) is None:
            return True
        given, taken = (
            [modality.feeds(one)[0].shape for one in modality.sized(side.profile, spec, True)]
            for side in (self.stacks[front], stack)
        )
        return all(any(of_shape(one, port) for port in taken) for one in given)

    def answer(self, sides: Sides) -> Chain | None:
        """Return the way to the answer of a mixture; None where a value on it is not known.

        Boxes and masks go back to the sample the way that its front end came.
        """
        front, network, post = sides
        if front == network == post:
            return self.stacks[front].chain
        outputs, last = self.outputs(front, network), self.last(front, post)
        return Chain((*outputs.recipes, last)) if outputs and last else None

    def last(self, front: str, post: str) -> Answer | None:
        """Return one side's postprocessing behind the other's front end; None: it is not known."""
        found = self.cuts[post].answer
        if found is None or front == post:
            return found
        placed = self.cuts[front].answer or found
        settings = found.settings
        if found.task is self.card.task:  # and not a model file's own NMS
            ours, theirs = self.stacks[front].profile, self.stacks[post].profile
            settings = behind(ours, theirs, self.card).settings
        return replace(found, settings=settings, placing=placed.placing)

    def mixtures(self) -> Iterator[tuple[Sides, Stack]]:
        """Yield every mixture that can run, the training stack first, as a stack of its own."""
        for sides in product(SIDES, SIDES, SIDES):
            if chain := self.answer(sides):
                like = self.stacks[sides[0]]
                yield sides, replace(like, side=label(sides), chain=chain)

    def asides(self) -> dict[str, Chain]:
        """Return the ways to inputs and outputs by :func:`input_of` and :func:`outputs_of`."""
        found = {input_of(side): one.front for side, one in self.cuts.items()}
        found |= {outputs_of(*both): self.outputs(*both) for both in product(SIDES, repeat=2)}
        return {name: chain for name, chain in found.items() if chain is not None}


def parts_of(session: Session, train: Stack, deploy: Stack) -> Parts:
    """Return both stacks cut into their parts."""
    stacks = dict(zip(SIDES, (train, deploy), strict=True))
    return Parts(stacks, {side: cut(session, one) for side, one in stacks.items()}, session.card)


def behind(front: Profile, post: Profile, card: Card) -> Answer:
    """Return the postprocessing of one profile, for samples that are placed as another says.

    How boxes and masks go back from a letterbox, or from a squash, follows the front end.
    """
    spec = front.spec.model_copy(update={"postprocess": post.spec.postprocess})
    return answering(replace(front, spec=spec), card)


def label(sides: Sides) -> str:
    """Return the name of a mixture in records."""
    if len(set(sides)) == 1:
        return sides[0]
    return " ".join(
        f"{part} of {side}" for part, side in zip(("input", "network", "post"), sides, strict=True)
    )


def input_of(side: str) -> str:
    """Return the name of the way to a side's input."""
    return f"input {side}"


def outputs_of(front: str, network: str) -> str:
    """Return the name of the way to the outputs of one side's network for one side's input."""
    return f"outputs {front} {network}"
