"""Several models in one call: their documents are checked before the first of them is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.command.experiment import Experiment
from simulator.data import example
from simulator.errors import UserError
from simulator.experiments.job import Job, safe_name
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.pipeline.stack import ResolvedProfile


def checked(
    experiment: Experiment[Any],
    asked: Any,
    models: Sequence[str | Path | None],
    sides: Mapping[str, ResolvedProfile],
    look: Callable[[Card], None] = lambda _: None,
) -> list[Card]:
    """Return the card of every model, so that a mistake in the last one is told at once.

    Args:
        experiment: what is called.
        asked: its options; each model has a folder of its own in *out*.
        models: model cards; None is the built-in model.
        sides: the stacks.
        look: raises UserError where the job cannot be run with a card.

    Raises:
        UserError: a card or its file cannot be used, two cards have one folder, or it is taken.
    """
    cards = [Card(Path(model) if model else example.model_card()) for model in models]
    folders = []
    for model, card in zip(models, cards, strict=True):
        check(card)
        look(card)
        if asked.out:
            name, job = card.spec.name, Job(experiment, asked, model)
            folder = job.folder("", sides, below=safe_name(name))
            if folder in folders:
                raise UserError(f"two model cards are called {name!r}; rename one")
            job.refuse_taken(folder)
            folders.append(folder)
    return cards
