"""What a task is: what a model's outputs mean, and how well they fit what people have annotated.

The engine knows no task. It asks one, made from the model card, for the few methods below, and
keeps what they return: a flat record per image and stack, from which every figure is worked out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, final

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from simulator.contract import Array, Panel
from simulator.data.folder import Dataset
from simulator.data.labels import Labels
from simulator.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.resample import Effect, Floats, Resamples, effect, ratio

Record = Mapping[str, Any]
Shapes = Mapping[str, Sequence[int | None]]
CHANGES = (
    pa.field("changed", pa.int64()),
    pa.field("units", pa.int64()),
)
"""Of an answer, how many units differ from the first stack's answer, and of how many."""


class Settings(Protocol):
    """How outputs become answers: the card's words, with the profile's laid over them."""

    def identity(self) -> Any:
        """Return what tells these settings from others, as JSON."""


@dataclass(frozen=True, slots=True)
class Network:
    """What a task has to know of the model around its outputs.

    Attributes:
        height: rows of its input.
        width: columns of its input.
        labels: the classes; None where the card has no label file.
    """

    height: int
    width: int
    labels: Labels | None

    def label(self, index: int) -> str:
        """Return a class's name, or its index where the card names no label file."""
        return self.labels.name(index) if self.labels else str(index)


class Task(ABC):
    """One task, for one model.

    Attributes:
        name: as model cards write it.
        unit: what flips are counted in, in the singular.
        metrics: the metrics, fractions of 1; the first one is the headline.
        columns: what its records hold, besides :data:`CHANGES`.
        kinds: the kinds of flips that ``flips`` of a comparison counts, with their titles.
        titles: of the columns of the worst flips, after the image's name.
        resamples: how often its headline metric is resampled.
        Output: the schema of a card's ``output`` section.

    Args:
        output: that section, checked.
        network: the model around it.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[pa.Field, ...]]
    kinds: ClassVar[Mapping[str, str]]
    titles: ClassVar[tuple[str, str, str]]
    resamples: ClassVar[int]
    Output: ClassVar[type[BaseModel]]

    def __init__(self, output: Any, network: Network) -> None:
        self.output, self.network = output, network

    @property
    def headline(self) -> str:
        """The first metric."""
        return self.metrics[0]

    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the card names; none: the model's first one is meant."""

    @abstractmethod
    def check(self, shapes: Shapes) -> None:
        """Hold a model's outputs against the card.

        Args:
            shapes: of each output that :meth:`outputs` names, or of the first one.

        Raises:
            ModelError: naming the output, what was expected and what it is.
        """

    @abstractmethod
    def settings(self, asked: Postprocess) -> Settings:
        """Lay what a profile asks for over what the card says.

        Raises:
            ModelError: the two do not go together.
        """

    @abstractmethod
    def decode(self, outputs: Mapping[str, Array], settings: Any, placement: Placement) -> Any:
        """Turn one image's outputs into a prediction.

        Raises:
            ModelError: an output is not what the card promises.
            SampleError: the model gave NaN or an infinity.
        """

    @abstractmethod
    def load(self, path: Path) -> Dataset:
        """Open the annotated images at a path.

        Raises:
            DataError: they cannot be used.
        """

    @abstractmethod
    def stamp(self, truth: Any) -> Any:
        """Return what tells one image's truth from another, as JSON; None where there is none."""

    @abstractmethod
    def record(self, prediction: Any, truth: Any) -> dict[str, Any]:
        """Return a prediction's :attr:`columns`.

        Raises:
            SampleError: this image's truth cannot be used.
        """

    @abstractmethod
    def change(self, before: Any, after: Any, truth: Any) -> dict[str, Any]:
        """Return :data:`CHANGES`, and columns of the task's own that count kinds of changes."""

    @abstractmethod
    def compare(
        self,
        train: Sequence[Record],
        deploy: Sequence[Record],
        truths: Sequence[Any],
        seed: int = 0,
    ) -> dict[str, Any]:
        """Compare two stacks on the images that went through both.

        Args:
            train: one record an image.
            deploy: the records of the same images, in the same order.
            truths: what people have annotated, likewise.
            seed: of the bootstrap, where there is one.

        Returns:
            Parts of ``summary.json``: ``labelled``, ``train``, ``deploy``, ``delta``, ``flips``.
            Metrics, rates and deltas are fractions, None where they cannot be known; a delta is
            deploy minus train; intervals are [lower, upper].
        """

    @abstractmethod
    def headlines(
        self, records: Sequence[Record], truths: Sequence[Any], draws: Resamples
    ) -> Floats | None:
        """Return the headline metric, resampled; None where there is no truth."""

    @abstractmethod
    def severity(self, train: Record, deploy: Record) -> float:
        """Return how bad a change is; the worst ones are shown."""

    @abstractmethod
    def flip(self, train: Record, deploy: Record) -> dict[str, Any]:
        """Return what ``summary.json`` says of a changed answer, ``train`` and ``deploy`` in it."""

    @staticmethod
    @abstractmethod
    def words(flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return a flip in words, under :attr:`titles`."""

    @staticmethod
    @abstractmethod
    def lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return what the screen shall say besides flips, metrics and deltas; kinds of flips first.

        Each line is a title, which may be empty, and a text.
        """

    def panels(
        self, images: tuple[Array, Array], before: Any, after: Any, truth: Any
    ) -> list[Panel]:
        """Return a picture of a change; none where a word says it all.

        Args:
            images: the image as either stack decoded it, (H, W, 3) uint8.
            before: the prediction of the training stack.
            after: the prediction of the deployment stack.
            truth: what people have annotated.
        """
        return []

    @abstractmethod
    def examples(self) -> list[tuple[Any, Any]]:
        """Return a few truths, each with the prediction that is perfect for it."""

    @final
    def records(self, predictions: Sequence[Any], truth: Any) -> list[dict[str, Any]]:
        """Return the records of all stacks' answers to one image; the first stack is the measure.

        Raises:
            SampleError: this image's truth cannot be used.
        """
        first = predictions[0]
        return [self.record(one, truth) | self.change(first, one, truth) for one in predictions]


def flip_rate(records: Sequence[Record], draws: Resamples) -> Floats:
    """Return the share of units that differ from the first stack's answers, resampled."""
    changed, units = (
        np.array([record[name] for record in records], np.float64) for name in ("changed", "units")
    )
    return draws.of(ratio(changed, units))


def flips(records: Sequence[Record], draws: Resamples) -> dict[str, Any]:
    """Return ``count``, ``units``, ``rate`` and its bootstrap interval."""
    found: Effect = effect(flip_rate(records, draws))
    return {
        "count": sum(r["changed"] for r in records),
        "units": sum(r["units"] for r in records),
        "rate": found.value,
        "ci95": list(found.ci95),
    }


def delta(train: Floats | None, deploy: Floats | None) -> dict[str, Any] | None:
    """Return deploy minus train with its paired bootstrap interval and p-value."""
    if train is None or deploy is None:
        return None
    found = effect(deploy - train)
    return {
        "value": found.value,
        "ci95": list(found.ci95),
        "p": found.p,
        "method": "bootstrap over images",
    }
