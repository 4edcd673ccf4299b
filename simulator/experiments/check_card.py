"""How right a model card is: the headline metric of one stack, beside that of a guess."""

from __future__ import annotations

from pathlib import Path

from simulator.command.options import Progress
from simulator.errors import UserError
from simulator.experiments.common import TRAIN
from simulator.experiments.guessing import Guessing, guessing
from simulator.experiments.session import Session, Variant
from simulator.model.card import Card
from simulator.pipeline.stack import ResolvedProfile


def accuracy(
    card: Card, chosen: ResolvedProfile, data: str | Path, limit: int | None, progress: Progress
) -> Guessing:
    """Run samples through one stack, and hold its answers against a guess.

    Args:
        card: the model; fields of it may still be open.
        chosen: the stack, as the network was trained.
        data: a folder of samples, or a data card.
        limit: take a random subset of this many samples.
        progress: called as the run goes on.

    Raises:
        UserError: the data cannot be used, or have no labels; or a guess of this task has no level.
    """
    with Session.open(card, data, limit, 0, None, None, progress) as session:
        stack = session.stack(Variant(TRAIN, chosen, {"train": chosen, "deploy": chosen}))
        score = session.run(session.plan([stack])).answers(TRAIN).score(TRAIN)
        found = guessing(card.task, session.source.outputs, score, session.seed)
    if found is None:
        raise UserError(
            f"{data}: {card.task.headline} of {card.task.name} cannot be held against a guess; "
            "give data with a label for each sample"
        )
    return found
