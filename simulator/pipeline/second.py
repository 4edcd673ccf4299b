"""A card's second network: what is done between the two, and how it is opened."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from simulator.contract import Stage
from simulator.contract.passes import Request
from simulator.contract.recipe import Recipe
from simulator.errors import UserError
from simulator.model.artifact import Feeds, build
from simulator.model.card import Card
from simulator.model.passes.rewrite import wanted
from simulator.notices import Notice
from simulator.pipeline.inference import Answer, Infer, Join, between
from simulator.pipeline.stack import Pair, ResolvedProfile
from simulator.profile.artifact import own_file
from simulator.profile.implementations import Choices, choose
from simulator.profile.precision import Precision
from simulator.profile.profile import Profile
from simulator.tasks.settings import Beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.pipeline.builder import StackBuilder


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
    builder: StackBuilder, side: str, chosen: ResolvedProfile, pair: Pair, infer: Infer,
    answer: Answer,
) -> tuple[tuple[Recipe, ...], list[Notice]]:  # fmt: skip
    """Return the steps between the first network and the answer, and what users should know.

    The second network is made and run as the first one is: by the same profile, unless that says
    ``precision.second``. What it is calibrated on went through the stack's own first network, or is
    what it is run on once a stack.

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
    card, beside = builder.card, builder.card.task.beside(*chosen)
    own, step = _own_precision(chosen), between(answer)
    kept: tuple[str, ...] = ()
    notices: list[Notice] = []
    try:
        if beside:
            feeds = _once(own[0], beside)
        else:
            assert step is not None  # the card was checked
            feeds, notices = builder.feeds(own[0], pair, (infer, step))
            kept = step.handover.kept
        artifact = build(card, builder.source, *own, feeds)
        builder.report(f"{side}: opening {card.model.name} with {infer.choice.backend.name}")
        second, _, more = builder.opened(own, artifact, card.feeds, kept=kept)
    except UserError as error:
        raise type(error)(f"second network {card.model.name}: {error}") from error
    found = [replace(one, text=f"{card.model.name}: {one.text}") for one in (*notices, *more)]
    if beside:
        return (Join(second, beside),), found
    assert step is not None
    return (step, second), found


def _own_precision(chosen: ResolvedProfile) -> ResolvedProfile:
    """The stack of the second network: another one where it stays in FP32."""
    profile, _ = chosen
    if profile.spec.precision.second is None:
        return chosen
    update = {"precision": Precision(storage="fp32", compute="fp32")}
    own = replace(profile, spec=profile.spec.model_copy(update=update))
    return own, choose(own)


def _once(profile: Profile, beside: Beside) -> Feeds | None:
    """What a network that is run once a stack is calibrated on; None where nothing is."""
    quantizer = profile.spec.precision.quantizer
    if quantizer is None or quantizer.calibration is None:
        return None
    each = (one if isinstance(one, tuple) else (one,) for one in beside.feeds())
    parts = list(islice(chain.from_iterable(each), quantizer.calibration.samples))
    return Feeds([beside.identity(), len(parts)], lambda: iter(parts))
