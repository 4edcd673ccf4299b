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

import pyarrow as pa
from pydantic import BaseModel

from simulator.contract import Array, Encoded, Panel
from simulator.data.folder import Dataset
from simulator.data.labels import Labels
from simulator.errors import DataError, UserError
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.statistics.bootstrap import Resamples, effect
from simulator.tasks.figures import Flips
from simulator.tasks.score import Record, Score, flip_rate, total

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

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of its input."""
        return self.height, self.width

    @property
    def classes(self) -> int:
        """How many classes there are, for tasks whose cards must name them."""
        assert self.labels is not None
        return len(self.labels)

    def label(self, index: int) -> str:
        """Return a class's name, or its index where the card names no label file."""
        return self.labels.name(index) if self.labels else str(index)


class Task(ABC):
    """One task, for one model.

    Attributes:
        name: as model cards write it.
        unit: what flips are counted in, in the singular.
        metrics: those that a comparison gives deltas of; the first one is the headline.
        columns: what its records hold, :data:`CHANGES` among them.
        drawn: whether a change is worth a picture; see :meth:`panels`.
        needs_labels: whether a card without a label file is refused.
        kinds: the kinds of flips that ``flips`` of a comparison counts, with their titles.
        titles: of the columns of the worst flips, after the image's name.
        resamples: how often its headline metric is resampled.
        Output: the schema of a card's ``output`` section.
        Flips: the type of ``flips`` of a comparison.

    Args:
        output: that section, checked.
        network: the model around it.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[pa.Field, ...]]
    drawn: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True
    kinds: ClassVar[Mapping[str, str]]
    titles: ClassVar[tuple[str, str, str]]
    resamples: ClassVar[int]
    Output: ClassVar[type[BaseModel]]
    Flips: ClassVar[type[Flips]] = Flips

    def __init__(self, output: Any, network: Network) -> None:
        self.output, self.network = output, network

    @property
    def headline(self) -> str:
        """The first metric."""
        return self.metrics[0]

    def vocabulary(self) -> dict[str, Sequence[str]]:
        """Return the names that a comparison's dictionaries have as keys, by kind of name.

        ``metric``: of either stack; ``delta``: those that are compared; ``flips``: kinds of flips;
        ``class``: the classes. See :class:`simulator.typed.Keys`.
        """
        labels = self.network.labels
        return {
            "metric": self.metrics,
            "delta": self.metrics,
            "flips": tuple(self.kinds),
            "class": labels.names if labels else (),
        }

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

    def recorded(self, prediction: int, score: float, margin: float) -> Any:
        """Return the prediction of a recorded class index; score and margin may be NaN.

        Raises:
            UserError: the task's predictions are more than that.
        """
        raise UserError(f"kind: predictions are class indices; of {self.name} record the outputs")

    def example(self) -> Dataset:
        """Return the built-in images.

        Raises:
            UserError: there are none for this task.
        """
        raise UserError(
            f"the model does {self.name}, and the built-in images are for classification; give "
            "--data"
        )

    @staticmethod
    def findings(summary: Mapping[str, Any]) -> list[str]:
        """Return what the person should know about the figures of a comparison."""
        return []

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

    def opened(self, truth: Any, image: Encoded | None = None) -> Any:
        """Return a truth ready for :meth:`record` and :meth:`change`; read once an image.

        Args:
            truth: what people have annotated.
            image: the file, whose size a truth may be held against.

        Raises:
            SampleError: this image's truth cannot be used.
        """
        return truth

    @abstractmethod
    def late(self, record: Record) -> dict[str, Any]:
        """Return a record as though its answer had come too late: it counts as wrong.

        Source:
            Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.
        """

    @abstractmethod
    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure one stack.

        Args:
            records: one an image.
            truths: what people have annotated, of the same images in the same order.
        """

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> dict[str, Any]:
        """Compare two stacks on the images that went through both.

        Args:
            train: the training stack.
            deploy: the deployment stack, on the same images.
            draws: of the bootstrap.

        Returns:
            Parts of ``summary.json``: ``labelled``, ``train``, ``deploy``, ``delta``, ``flips``.
            Metrics, rates and deltas are fractions, None where they cannot be known; a delta is
            deploy minus train; intervals are [lower, upper], and None for a flip rate of 0: a
            bootstrap draws from what was seen.

        Raises:
            DataError: there is no image.
        """
        if not train.records:
            raise DataError("no sample went through both stacks")
        deltas: dict[str, Any] = {}
        for metric in self.metrics:
            old, new = train.metrics[metric], deploy.metrics[metric]
            plain = None if old is None or new is None else {"value": new - old}
            deltas[metric] = plain and {**plain, "ci95": None, "p": None}
        before, after = (score.drawn(self.headline, draws) for score in (train, deploy))
        for metric in before.keys() & after.keys():
            found = effect(after[metric] - before[metric])
            deltas[metric] = {
                "value": found.value, "ci95": list(found.ci95), "p": found.p,
                "method": "bootstrap over images",
            }  # fmt: skip
        changed = effect(flip_rate(deploy.records, draws))
        return {
            "labelled": train.labelled,
            "train": {"metric": dict(train.metrics)},
            "deploy": {"metric": dict(deploy.metrics)},
            "delta": deltas,
            "flips": {
                "count": sum(r["changed"] for r in deploy.records),
                "units": sum(r["units"] for r in deploy.records),
                "rate": changed.value,
                "ci95": list(changed.ci95) if changed.value > 0 else None,
                **{kind: total(deploy.records, kind) for kind in self.kinds},
                **self.more(deploy.records),
            },
        }

    def more(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return figures of the changes that are no counts, for ``flips``."""
        return {}

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
        """Return a picture of a change.

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
    def records(
        self, predictions: Sequence[Any], truth: Any, image: Encoded | None = None
    ) -> list[dict[str, Any]]:
        """Return the records of all stacks' answers to one image; the first stack is the measure.

        Raises:
            SampleError: this image's truth cannot be used.
        """
        first, known = predictions[0], self.opened(truth, image)
        return [self.record(one, known) | self.change(first, one, known) for one in predictions]
