"""The steps of a stack up to the network's input: ours, a recording, or code of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.contract import Stage
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.modalities.card import CardSpec
from simulator.model.card import Card
from simulator.pipeline import recorded
from simulator.pipeline.extra import with_extras
from simulator.pipeline.own_front_end import OwnFrontEnd, refuse_code
from simulator.profile.implementations import Choices, extra_stages
from simulator.profile.profile import Profile


def front_end(
    card: Card,
    profile: Profile,
    choices: Choices,
    items: Sequence[Item] = (),
    spec: CardSpec | None = None,
) -> Chain:
    """Return the steps of a profile up to the network's input.

    Args:
        card: the model card.
        profile: the stack.
        choices: the implementation of each of its stages.
        items: the samples of a run, some of which a program may take at once.
        spec: what is said of the network in place of the card.

    Raises:
        ModelError: the model does not fit the stack.
    """
    said = spec or card.spec
    if found := recorded.recording(profile, choices, Stage.FRONT_END):
        return Chain(tuple(recorded.tensors(found)))
    if Stage.FRONT_END in choices:
        refuse_code(profile, choices[Stage.FRONT_END])
        own = OwnFrontEnd(choices[Stage.FRONT_END], card.modality.feeds(said), tuple(items))
        return Chain((own,))
    recipes = card.modality.front_end(profile, choices, said)
    return with_extras(Chain(tuple(recipes)), extra_stages(profile, choices))
