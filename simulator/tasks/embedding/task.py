"""Embedding: the texts of a sample ordered by their cosine to the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract.text import Row
from simulator.errors import ModelError, NotFinite, SampleError
from simulator.tasks.figures import Figures
from simulator.tasks.score import Record, Values, each, even_odds
from simulator.tasks.task import CHANGES, Shapes
from simulator.tasks.text import TextFlips, TextTask, VectorOutput, vector_of
from simulator.tasks.view import Told, View

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ordered:
    """What one stack says of one sample.

    Attributes:
        order: the texts after the query, the nearest first; of equal ones the first first.
        cosines: of each text to the query, in the texts' own order.
        vectors: (texts + 1, size) float64 of length 1, the query's first.
    """

    order: tuple[int, ...]
    cosines: tuple[float, ...]
    vectors: Floats = field(compare=False, repr=False)

    @classmethod
    def of(cls, vectors: Floats) -> Ordered:
        """Order texts by their cosines to the query.

        Args:
            vectors: as of the result.
        """
        cosines = vectors[1:] @ vectors[0]
        order = np.argsort(-cosines, kind="stable")
        return cls(tuple(order.tolist()), tuple(cosines.tolist()), vectors)


class EmbeddingFlips(TextFlips):
    """Nearest texts that differ, and how near the vectors of both stacks are to each other."""

    order_changed: int | None = Field(description="samples whose texts are ordered differently")
    min_cosine: float | None = Field(
        description="the smallest cosine between the vectors of one text in both stacks"
    )
    mean_cosine: float | None = Field(description="the mean of each sample's smallest cosine")


class EmbeddingView(View):
    """Answers are numbers of texts with their cosines; a line tells how near the stacks are."""

    metrics: ClassVar[Mapping[str, str]] = {"acc": "nearest right"}
    kinds: ClassVar[Mapping[str, str]] = {"order_changed": "in another order"}
    besides = ("order_changed",)
    told: ClassVar[Mapping[str, str]] = {
        "cosine of both stacks' vectors": "{min_cosine:.5f} at least, {mean_cosine:.5f} in the mean"
    }
    asks_first = True
    titles = ("right text", "train (cosine)", "deploy (cosine)")

    def picks(self, flip: Told) -> tuple[int, int, int | None]:
        """Return both nearest texts, and the right one."""
        train, deploy = flip["train"], flip["deploy"]
        return train["order"][0], deploy["order"][0], train["label"]

    def about(self, flip: Told) -> str:
        """Return the right text, counted from 1."""
        label = flip["train"]["label"]
        return "-" if label is None else f"text {label + 1}"

    def said(self, flip: Told, side: str) -> str:
        """Return the nearest text, counted from 1, with its cosine."""
        nearest = flip[side]["order"][0]
        return f"text {nearest + 1} ({flip[side]['cosines'][nearest]:.3f})"


class Embedding(TextTask):
    """The text nearest to a query, the first request; its truth is an index, or None."""

    name = "embedding"
    metrics = ("acc",)
    kinds = (*TextTask.kinds, "order_changed")
    reads = ("vectors",)
    missing = ("order", "cosines")
    tried_with = "simulator.tasks.text_specimen:sentences"
    Output = VectorOutput
    Flips = EmbeddingFlips
    View = EmbeddingView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.int32()),
        pa.field("acc", pa.float64()),
        pa.field("order", pa.list_(pa.int32())),
        pa.field("cosines", pa.list_(pa.float64())),
        pa.field("cosine", pa.float64()),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in kinds),
    )

    def check(self, shapes: Shapes) -> None:
        """Compare the output's rank with the card's pooling.

        Raises:
            ModelError: it does not fit.
        """
        (name, shape), *_ = shapes.items()
        if len(shape) != self.output.rank:
            raise ModelError(
                f"pooling: {self.output.pooling} expects an output of rank {self.output.rank}; "
                f"{name!r} is {tuple(shape)}"
            )

    def decode(self, outputs: Any, settings: Any, placement: tuple[Row, ...]) -> Ordered:
        """Return the texts in the order of their cosines to the query.

        Raises:
            SampleError: there is no text besides the query, or one has no token.
            NotFinite: a vector has NaN or an infinity, or is all zeros.
        """
        if len(placement) < 2:
            raise SampleError("a query and one text or more expected")
        vectors = np.stack([vector_of(outputs, row, self.output) for row in placement])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not lengths.all():
            raise NotFinite("the model gave a vector of zeros, which has no direction")
        return Ordered.of(vectors / lengths)

    def compared(self, prediction: Ordered) -> int:
        """Return the nearest text."""
        return prediction.order[0]

    def right(self, prediction: Ordered, truth: int) -> bool:
        """Whether the nearest text is the right one."""
        return prediction.order[0] == truth

    def record(self, prediction: Ordered, truth: int | None) -> Values:
        """Return the order, and whether the nearest text is the right one."""
        if truth is not None and not 0 <= truth < len(prediction.order):
            raise SampleError(f"the label is text {truth}, and there are {len(prediction.order)}")
        return {
            "label": truth,
            "acc": None if truth is None else float(prediction.order[0] == truth),
            "order": list(prediction.order),
            "cosines": list(prediction.cosines),
        }

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float | None:
        """Return the mean of 1 / texts over the samples that have a label."""
        return even_odds(each(records, "label"), each(records, "order"))

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether the nearest text is another one."""
        return bool(before["order"][0] != after["order"][0])

    def change(self, before: Ordered, after: Ordered, truth: int | None) -> Values:
        """Return whether the nearest text is another one, and the smallest cosine of two vectors.

        Vectors of different sizes, of two networks, have no cosine: None.
        """
        alike = before.vectors.shape == after.vectors.shape
        nearest = (before.vectors * after.vectors).sum(1).min() if alike else None
        return {
            **super().change(before, after, truth),
            "order_changed": int(before.order != after.order),
            "cosine": None if nearest is None else min(float(nearest), 1.0),
        }

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return the smallest cosine between both stacks' vectors, and the mean over samples."""
        known = [record["cosine"] for record in deploy if record["cosine"] is not None]
        mean = float(np.mean(known)) if known else None
        return {"min_cosine": min(known, default=None), "mean_cosine": mean}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how far the cosines moved at most."""
        both = np.subtract(train["cosines"], deploy["cosines"])
        return float(np.abs(both).max())

    def examples(self) -> list[tuple[Any, Any]]:
        """Return three texts, each once the nearest."""
        return [(one, Ordered.of(np.eye(3)[[one, 0, 1, 2]])) for one in range(3)]
