"""How a task's answers are shown to people: its words and its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar

from simulator.contract import Array, Panel
from simulator.tasks.figures import Figures

if TYPE_CHECKING:
    from simulator.tasks.task import Task

Told = Mapping[str, Any]
"""A part of a summary, as it is read back from its JSON."""
_LENGTH = 60
"""Characters of an answer that are shown, unless a task says another number."""
_KINDS = {
    "right_to_wrong": "right→wrong",
    "wrong_to_right": "wrong→right",
    "wrong_to_wrong": "wrong→other",
}


class View:
    """Words and pictures for one task; this one does for any task, in plain tables.

    A report makes it from the task's class alone and gives it what was read from ``summary.json``.
    A task with better words derives its own and names it as :attr:`Task.View`.

    Attributes:
        metrics: how people write a metric, where that is not its name.
        kinds: how people write a kind of flips, where that is not its column's name.
        besides: kinds that are counted by themselves; all others are parts of the changed answers.
        distances: figures of ``flips`` that stand in tables of options, with their titles; where
            there are some, the first two stand in place of the change of the metric.
        told: lines of :meth:`lines`: a title, and words with the names of figures of ``flips``, and
            ``unit``, in braces; a line is left out where one of its figures is None.
        titles: the columns of the table of the worst flips, after the sample's name.
        asks_first: whether the first text of a sample is its question, and the others are choices.
        drawn: whether :meth:`panels` draws; then the answers are about the pixels of an image.

    Args:
        task: the class.
    """

    metrics: ClassVar[Mapping[str, str]] = {}
    kinds: ClassVar[Mapping[str, str]] = {}
    besides: ClassVar[tuple[str, ...]] = ()
    distances: ClassVar[Mapping[str, str]] = {}
    told: ClassVar[Mapping[str, str]] = {}
    titles: ClassVar[tuple[str, str, str]] = ("changed", "train", "deploy")
    asks_first: ClassVar[bool] = False
    drawn: ClassVar[bool] = False

    def __init__(self, task: type[Task]) -> None:
        self.task = task

    def metric(self, name: str) -> str:
        """Return a metric as people write it."""
        return self.metrics.get(name, name)

    def kind(self, name: str) -> str:
        """Return a kind of flips as people write it."""
        return self.kinds.get(name) or _KINDS.get(name, name.replace("_", " "))

    def parts(self) -> tuple[str, ...]:
        """Return the kinds of which a changed answer has one at most."""
        return tuple(name for name in self.task.kinds if name not in self.besides)

    def counts(self, flips: Figures) -> list[tuple[str, int]]:
        """Return each kind in words with its number; what no kind holds is "other".

        Args:
            flips: ``flips`` of a summary. All numbers but those of :attr:`besides` sum to its
                ``count``.
        """
        known = {name: flips[name] for name in self.parts() if flips[name] is not None}
        found = [(self.kind(name), number) for name, number in known.items()]
        if known and (rest := flips["count"] - sum(known.values())):
            found.append(("other", rest))
        besides = [(self.kind(name), flips[name]) for name in self.besides]
        return [*found, *((words, number) for words, number in besides if number is not None)]

    def picks(self, flip: Told) -> tuple[Any, Any, Any]:
        """Return the numbers, from 0, of what train and deploy chose, and of the right choice.

        Args:
            flip: as for :meth:`words`, of samples that offer choices.
        """
        train, deploy = (flip.get(side) or {} for side in ("train", "deploy"))
        return train.get("answer"), deploy.get("answer"), flip.get("label")

    def words(self, flip: Told) -> tuple[str, str, str]:
        """Return a changed answer in words, one text for each of :attr:`titles`.

        Args:
            flip: what :meth:`Task.flip` returned, after JSON; ``picture``, a path in the run's
                folder, is in it where there is one.
        """
        return self.about(flip), self.said(flip, "train"), self.said(flip, "deploy")

    def about(self, flip: Told) -> str:
        """Return the first of the :meth:`words`; by default how many units changed."""
        return f"{flip['changed']} of {flip['units']}"

    def said(self, flip: Told, side: str) -> str:
        """Return what ``train`` or ``deploy`` answered; by default the columns that differ."""
        own, train, deploy = flip[side], flip["train"], flip["deploy"]
        differ = [name for name in train if train[name] != deploy.get(name)]
        return cut(", ".join(f"{name} {own.get(name)}" for name in differ))

    def lines(self, summary: Told) -> list[tuple[str, str]]:
        """Return what the screen shows besides flips, metrics and deltas: (title, text) each.

        The first line stands below the flips and counts their kinds; its title is empty. The others
        are those of :attr:`told`.
        """
        figures = {**summary["flips"], "unit": summary["unit"]}
        counts = [f"{words} {number:,}" for words, number in self.counts(summary["flips"])]
        told = [
            (title, words.format_map(figures))
            for title, words in self.told.items()
            if all(
                figures.get(name.partition("[")[0]) is not None
                for _, name, _, _ in Formatter().parse(words)
                if name
            )
        ]
        return [("", ", ".join(counts)), *told] if counts or told else []

    def findings(self, summary: Told) -> list[str]:
        """Return what a person must know to read the figures of a comparison."""
        return []

    def panels(
        self, task: Any, images: tuple[Array, Array], before: Any, after: Any, truth: Any
    ) -> list[Panel]:
        """Draw a change.

        Args:
            task: of this model.
            images: the image as each stack decoded it, (H, W, 3) uint8.
            before: the prediction of the training stack.
            after: the prediction of the deployment stack.
            truth: what :meth:`Task.opened` returned; None where the image has none.
        """
        return []


def cut(text: str, length: int = _LENGTH) -> str:
    """Return the first characters of a text."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
