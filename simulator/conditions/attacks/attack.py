"""What all attacks share: the model, the budget, and the way from a file to the attacked file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from simulator import registry
from simulator.conditions.attacks import view
from simulator.conditions.attacks.asked import Asked, OpenedAsked
from simulator.conditions.attacks.options import (
    COMMON,
    EACH,
    FLOAT,
    SAVED,
    Budget,
    Option,
    expected,
    read,
)
from simulator.conditions.attacks.record import Attacked, with_record
from simulator.conditions.attacks.steps import length
from simulator.conditions.attacks.target import Feed, Opened, Target, target_of, target_on
from simulator.conditions.condition import Condition, Parameters
from simulator.conditions.image_files import decoding, resizing, writing
from simulator.contract import U8, Decoder, Encoded, ImageWriter, Pull, Victim, inspect
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes, generator
from simulator.errors import SampleError, UserError
from simulator.modalities.image.geometry import Geometry
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.profile.implementations import Choice

F32 = NDArray[np.float32]
LEVELS = 255
NEAR = 1e-5
"""A budget of one level may be written with so much less."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The model that is attacked, and how images reach it."""

    target: Target | Asked
    geometry: Geometry


@dataclass(frozen=True, eq=False)
class Attack(Condition):
    """An untargeted attack on the card's model, away from the label of each image.

    On a stack's network it is white-box there, and by transfer on the others.

    Attributes:
        budget: how far it may move an image.
        on: the profile of the stack whose network is attacked; empty for the card's model, ``each``
            for every stack's own.
        resize: Pillow's filter, by which images get the network's size.
        saved: as what every stack gets the result: ``png``, or ``jpeg100``, a JPEG of quality 100
            and 4:4:4, for stacks that take the planes of a JPEG; its rounding is not bounded. With
            ``float`` every stack gets the card's float32 tensor in place of its own input.
        bound_to: the attacked model; None until :meth:`bound`.
        norms: whether the norm is written before the budget; else it is ``linf``.
        gradient: whether it follows the network's gradient; else it asks for answers.
        options: its own, besides the common ones; each is also a field.
    """

    budget: Budget
    on: str = ""
    resize: str = view.FILTERS[0]
    saved: str = SAVED[0]
    bound_to: Bound | None = None
    modality: ClassVar[str | None] = "image"
    moves: ClassVar[bool] = True
    norms: ClassVar[bool] = True
    gradient: ClassVar[bool] = True
    options: ClassVar[Mapping[str, Option]] = {}

    @classmethod
    def parse(cls, parameters: str) -> Self:
        """Read the budget and the options.

        Raises:
            UserError: the norm, the budget or an option is wrong.
        """
        known = {**cls.options, **COMMON}
        try:
            budget, named = read(parameters, known, norms=cls.norms)
            return cls(budget, **named)
        except ValueError:
            raise UserError(
                f"--under {cls.name}:{parameters}: {expected(cls.name, known, norms=cls.norms)}"
            ) from None

    def parameters(self) -> Parameters:
        """Return the budget and all options."""
        norm = {"norm": self.budget.norm} if self.norms else {}
        options = {name: getattr(self, name) for name in (*self.options, *COMMON)}
        return {**norm, "budget": self.budget.text, **options}

    @property
    def text(self) -> str:
        """The condition as written for ``--under``; of the options only what is not the usual."""
        norm = f"{self.budget.norm}," if self.norms else ""
        return f"{self.name}:{norm}{self.budget.text}{self.chosen}"

    @property
    def chosen(self) -> str:
        """The end of its text: the options that are not the usual ones."""
        values = {**self.options, **COMMON}.items()
        own = {
            name: getattr(self, name)
            for name, option in values
            if getattr(self, name) != option.usual
        }
        return "".join(f",{name}={value}" for name, value in own.items())

    @property
    def acts_on(self) -> Boundary:  # type: ignore[override]
        """The file, or the network's input."""
        return Boundary.INPUT if self.saved == FLOAT else Boundary.SOURCE

    @property
    def erased(self) -> str | None:
        """Why no stack gets an attacked picture: the budget is below one level of 8 bits."""
        if self.saved == FLOAT or not 0 < self.budget.size * LEVELS < 1 - NEAR:
            return None
        return (
            f"{self.text} cannot be carried by 8 bits: no picture but the clean one is within "
            f"{self.budget.text}, which is less than one level (1/255); saved=float carries it"
        )

    @abstractmethod
    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Return the attacked pixels.

        Args:
            clean: (H, W, 3) in [0, 1].
            truth: the class to move away from.
            model: gives the loss, its gradient, and the scores of such pixels.
            rng: draws what has chance in it.
        """

    def bound(self, card: Card, source: ModelFile) -> Self:
        """Return the attack on a card's model.

        Raises:
            UserError: it is no classifier, or its gradient cannot be computed.
        """
        if card.modality.name != self.modality:
            return self
        for choice in self.searches():
            registry.require(choice.backend)
        target = self.target(card, source)
        return replace(self, bound_to=Bound(target, view.geometry_of(card.spec)))

    def target(self, card: Card, source: ModelFile) -> Target | Asked:
        """Return what is attacked: a card's model with its gradient, or the network of a stack."""
        if self.on:
            return Asked(self.on, Feed.of(self.text, card))
        return target_of(self.text, card, source)

    @property
    def asks(self) -> str | None:
        """The profile of the stack whose network is attacked."""
        return None if self.asks_each else self.on or None

    @property
    def asks_each(self) -> bool:
        """Whether every stack's own network is attacked."""
        return self.on == EACH

    def asking(self, infer: Recipe) -> Self:
        """Return the attack on a network that was built.

        Raises:
            UserError: the gradient of its file cannot be computed.
        """
        bound = self.bound_to
        assert bound is not None
        if self.gradient:
            target: Target | Asked = target_on(self.text, infer, bound.target.feed)
        else:
            assert isinstance(bound.target, Asked)
            target = replace(bound.target, infer=infer)
        return replace(self, bound_to=replace(bound, target=target))

    def identity(self) -> Any:
        """Return the parameters, the model, and what decodes, resizes and writes."""
        if self.bound_to is None:
            return [self.name, self.parameters()]
        geometry, parts = (
            self.bound_to.geometry.identity(),
            [decoding(), resizing(self.resize), writing()],
        )
        model = [self.bound_to.target.identity(), geometry]
        parts += self.searches()
        return [self.name, self.parameters(), model, [choice.identity() for choice in parts]]

    def searches(self) -> list[Choice]:
        """Return the implementations that an attack has of others."""
        return []

    def applied(self, trial: int, runtimes: Runtimes | None = None) -> Apply:
        """Return the function from a file to the attacked file, with a record in it.

        With ``saved=float`` it is one from a stack's input to the attacked tensor.

        Raises:
            UserError: no model was given.
        """
        if self.bound_to is None:
            raise UserError(f"--under {self.text}: an attack needs a model; give --model")
        look = view.viewer(self.bound_to.geometry, self.resize)
        writer: ImageWriter = writing().make()
        decoder: Decoder = decoding().make()
        model = self.bound_to.target.open(runtimes)
        feed = self.bound_to.target.feed

        def found(image: Encoded, context: Context) -> tuple[view.View, F32]:
            if context.truth is None:
                raise SampleError(f"it has no label, and {self.name} moves away from the label")
            rng = generator(context.sample, self.draws, trial)
            seen = look(image)
            model.hold(seen.whole(seen.clean))
            return seen, self.attacked(seen.clean, context.truth, Seen(model, seen), rng)

        def fed(own: Any, context: Context) -> F32:
            seen, part = found(context.source, context)
            tensor = feed.tensor(seen.whole(part))
            known = (own.dtype, own.shape) if isinstance(own, np.ndarray) else None
            if known != (tensor.dtype, tensor.shape):
                raise SampleError(
                    f"saved=float: this stack's network does not take float32 of {tensor.shape}"
                )
            return tensor

        def apply(image: Encoded, context: Context) -> Encoded:
            seen, part = found(image, context)
            whole = seen.written(part, self.budget.norm, self.budget.size)
            if self.saved == SAVED[0]:
                file = writer.png(whole)
            else:
                file = writer.jpeg(whole, 100, chroma="4:4:4")
                whole = decoder.rgb(inspect(image.name, file)).rgb
            record = self._record(model, seen, part, whole)
            return inspect(image.name, with_record(file, record))

        return fed if self.saved == FLOAT else apply

    @property
    def draws(self) -> str:
        """What its draws depend on: a tensor is drawn as the picture of the same attack."""
        return replace(self, saved=SAVED[0]).text if self.saved == FLOAT else self.text

    def memory(self, source: Encoded) -> int:
        """Return roughly what a small network keeps for its gradient, spread over a suite."""
        return 2**25

    def _record(
        self, model: Opened | OpenedAsked, seen: view.View, part: F32, whole: U8
    ) -> Attacked:
        clean, rounded = seen.clean, np.asarray(whole[seen.part] / np.float32(255), np.float32)
        before, exact, after = (
            int(model.logits(seen.whole(one)).argmax()) for one in (clean, part, rounded)
        )
        lengths = (length(one - clean, self.budget.norm) for one in (part, rounded))
        return Attacked(before, exact, after, *lengths)


@dataclass(frozen=True, slots=True)
class Seen:
    """The attacked model, as a function of the pixels that may change."""

    model: Opened | OpenedAsked
    view: view.View

    def logits(self, part: F32) -> F32:
        """Return the logits of the classes."""
        return self.model.logits(self.view.whole(part))

    def at(self, part: F32) -> tuple[F32, Pull]:
        """Return the logits of the classes, and the way back to the pixels."""
        assert isinstance(self.model, Opened)
        logits, pull = self.model.at(self.view.whole(part))
        return logits, lambda cotangent: pull(cotangent)[self.view.place]

    def gradient(self, part: F32, truth: int) -> F32:
        """Return the derivative of the loss by the pixels."""
        assert isinstance(self.model, Opened)
        found = self.model.gradient(self.view.whole(part), truth).gradient
        return found[self.view.place]

    def loss(self, part: F32, truth: int) -> tuple[bool, float]:
        """Return whether the answer is wrong, and the loss: attacks prefer the greater pair."""
        assert isinstance(self.model, Opened)
        wrong = int(self.logits(part).argmax()) != truth
        return wrong, self.model.gradient(self.view.whole(part), truth).loss

    def victim(self) -> Victim:
        """Return it for an adversary; with the way back where there is one."""
        return Victim(self.logits, self.at if isinstance(self.model, Opened) else None)
