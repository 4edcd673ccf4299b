"""Whether the training stack does better than guessing; if not, nothing can be judged by it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.command.options import Progress
from simulator.errors import UserError
from simulator.experiments.common import TRAIN
from simulator.experiments.session import Session, Variant
from simulator.model.card import Card
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import ResolvedProfile
from simulator.report.words import count, share, title
from simulator.statistics import planning
from simulator.statistics.bootstrap import RATE, Resamples, interval
from simulator.statistics.paired import clopper_pearson
from simulator.tasks.score import Score, numbers
from simulator.tasks.task import Shapes, Task

FEW = 20
"""With fewer samples even a good stack may be wrong on all: the card is not blamed alone."""


@dataclass(frozen=True, slots=True)
class Guessing:
    """The headline metric of a stack beside that of a guess; fractions.

    Attributes:
        value: of the stack.
        low: of its 95 % interval.
        high: likewise.
        chance: what guessing gives.
        samples: that are annotated.
        more: how many more would tell, if the metric stays; None where none would.
    """

    value: float
    low: float
    high: float
    chance: float
    samples: int
    more: int | None = None

    @property
    def beaten(self) -> bool:
        """Whether the stack is better than a guess, by more than chance."""
        return self.low > self.chance


def guessing(task: Task, shapes: Shapes, score: Score, seed: int) -> Guessing | None:
    """Hold a stack against a guess.

    Args:
        task: of the model.
        shapes: of the model's outputs.
        score: of the stack.
        seed: of the bootstrap.

    Returns:
        The interval is exact (Clopper-Pearson) where a sample is right or wrong, and else from a
        bootstrap over samples. None without truth, or where a guess of this task has no level.
    """
    value, chance = score.metrics.get(task.headline), task.chance(shapes, score.records)
    if value is None or chance is None:
        return None
    column = task.means().get(task.headline)
    points, known = numbers(score.records, column) if column else (np.zeros(0), np.zeros(0, bool))
    if known.any() and np.isin(points[known], (0.0, 1.0)).all():
        right, of = int(points[known].sum()), int(known.sum())
        more = planning.for_rate(right, of, chance) if value > chance else None
        return Guessing(value, *clopper_pearson(right, of), chance, of, more)
    if score.figure is None:
        return None
    draws = Resamples(len(score.records), seed, task.resamples)
    drawn = score.drawn(task.headline, draws)[task.headline]
    ends = interval(drawn, draws.number, RATE, score.labelled)
    more = planning.by_root(value, ends, score.labelled, chance) if value > chance else None
    return Guessing(value, *ends, chance, score.labelled, more)


def doubt(session: Session, score: Score) -> list[Notice]:
    """Return a notice if the training stack is not shown to be better than a guess.

    Args:
        session: the model and the samples.
        score: of the training stack.
    """
    card = session.card
    found = guessing(card.task, session.source.outputs, score, session.seed)
    if found is None or found.beaten:
        return []
    return [Notice(Kind.AT_CHANCE, words(found, card.task, card.modality.unit, session.under))]


def words(found: Guessing, task: Task, unit: str, under: object = None) -> str:
    """Return in one sentence why nothing can be judged, and what may be wrong.

    Args:
        found: of the training stack.
        task: of the model.
        unit: one sample, in the singular.
        under: the condition that it was under; None: there was none.
    """
    few, wrong = found.samples < FEW, "its card or profile is wrong"
    measured = (
        f"{title(task.name, task.headline)} {share(found.value, 2)} of "
        f"{count(found.samples, unit)} (95 % interval {share(found.low, 2)} to "
        f"{share(found.high, 2)}), and guessing gives {share(found.chance, 2)}"
    )
    if under is not None:
        wrong += ", or the condition leaves nothing to judge"
    if found.more:
        return (
            f"the training stack cannot be told from guessing: {measured}; about "
            f"{count(found.more, f'more {unit}')} would tell, or {wrong}"
        )
    if few:
        wrong += f", or {count(found.samples, unit)} are too few to tell"
    below = "below" if found.high < found.chance else "at"
    return f"the training stack itself answers {below} chance: {measured}; {wrong}"


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
