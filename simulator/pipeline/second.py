"""A card's second network: what is done between the two, and how it is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simulator.contract import Stage
from simulator.contract.passes import Request
from simulator.contract.recipe import Recipe
from simulator.errors import UserError
from simulator.model.artifact import build
from simulator.model.card import Card
from simulator.model.passes.rewrite import wanted
from simulator.notices import Notice
from simulator.pipeline.inference import Answer, Infer, between
from simulator.profile.artifact import own_file
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.pipeline.builder import StackBuilder
    from simulator.pipeline.stack import Pair


def refuse_second(card: Card, profile: Profile, choices: Choices, after: Sequence[Request]) -> None:
    """Refuse what is made for one network, of a card with two.

    Raises:
        ModelError: the stack has such a thing.
    """
    asked = {
        "runtime.batch takes": profile.spec.runtime.samples > 1,
        "runtime.adaptation takes": Stage.ADAPT in choices,
        "precision.artifact takes": own_file(profile) is not None,
        "a condition on weights takes": bool(after),
        **{f"graph.{axis} is fitted to": True for axis in wanted(profile.spec.graph)},
    }
    for what, is_asked in asked.items():
        if is_asked:
            card.refuse_second(what)


def behind_first(
    builder: StackBuilder, side: str, chosen: tuple[Profile, Choices], pair: Pair, infer: Infer,
    answer: Answer,
) -> tuple[tuple[Recipe, ...], list[Notice]]:  # fmt: skip
    """Return the steps between the first network and the answer, and what users should know.

    The second network is made and run as the first one is: by the same profile. What it is
    calibrated on went through the stack's own first network.

    Args:
        builder: of the second network: its card and source are those of the second.
        side: the name of the stack.
        chosen: its profile and implementations.
        pair: see :meth:`StackBuilder.stack`.
        infer: the first network.
        answer: the last step.

    Raises:
        UserError: the second network does not fit; the message begins with its file.
    """
    (profile, choices), card = chosen, builder.card
    step = between(answer)
    assert step is not None  # the card was checked
    try:
        feeds, notices = builder.feeds(profile, pair, (infer, step))
        artifact = build(card, builder.source, profile, choices, feeds)
        builder.report(f"{side}: opening {card.model.name} with {infer.choice.backend.name}")
        kept = step.handover.kept
        second, _, more = builder.opened(chosen, artifact, card.feeds, kept=kept)
    except UserError as error:
        raise type(error)(f"second network {card.model.name}: {error}") from error
    found = [replace(one, text=f"{card.model.name}: {one.text}") for one in (*notices, *more)]
    return (step, second), found
