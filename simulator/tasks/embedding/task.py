"""Embedding: the texts of a sample ordered by their cosine to the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract.text import Row
from simulator.errors import ModelError, NotFinite, SampleError
from simulator.profile.section import Section
from simulator.tasks.embedding.answer import Ordered
from simulator.tasks.embedding.figures import EmbeddingFlips
from simulator.tasks.embedding.view import EmbeddingView
from simulator.tasks.finite import check_finite
from simulator.tasks.score import Record, each
from simulator.tasks.task import CHANGES, Shapes
from simulator.tasks.text import TextTask, array_of

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen

Floats = NDArray[np.float64]


class Output(Section):
    """What a model of sentences gives."""

    vectors: str | None = Field(
        default=None, description="the output with the vectors; without it the first one"
    )
    pooling: Literal["none", "mean", "first", "last"] = Field(
        description="none: the output is one vector a text; else how those of its tokens become one"
    )


class Embedding(TextTask):
    """The text nearest to a query, the first request; its truth is an index, or None."""

    name = "embedding"
    metrics = ("acc",)
    kinds = ("right_to_wrong", "wrong_to_right", "order_changed")
    Output = Output
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

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return three texts and a query, as vectors and as states of tokens."""
        from simulator.tasks.text_specimen import sentences

        return sentences(cls)

    def outputs(self) -> tuple[str, ...]:
        """Return the output that the card names, if it names one."""
        return (self.output.vectors,) if self.output.vectors else ()

    def check(self, shapes: Shapes) -> None:
        """Compare the output's rank with the card's pooling.

        Raises:
            ModelError: it does not fit.
        """
        (name, shape), *_ = shapes.items()
        if len(shape) != self._rank:
            raise ModelError(
                f"pooling: {self.output.pooling} expects an output of rank {self._rank}; "
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
        vectors = np.stack([self._vector(outputs, row) for row in placement])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not lengths.all():
            raise NotFinite("the model gave a vector of zeros, which has no direction")
        vectors = vectors / lengths
        cosines = vectors[1:] @ vectors[0]
        order = tuple(np.argsort(-cosines, kind="stable").tolist())
        return Ordered(order, tuple(cosines.tolist()), vectors)

    def record(self, prediction: Ordered, truth: int | None) -> dict[str, Any]:
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
        known = zip(each(records, "acc"), each(records, "order"), strict=True)
        shares = [1 / len(order) for acc, order in known if acc is not None]
        return fmean(shares) if shares else None

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether the nearest text is another one."""
        return bool(before["order"][0] != after["order"][0])

    def change(self, before: Ordered, after: Ordered, truth: int | None) -> dict[str, Any]:
        """Return whether the nearest text is another one, and the smallest cosine of two vectors.

        Vectors of different sizes, of two networks, have no cosine: None.
        """
        changed = before.order[0] != after.order[0]
        known = truth is not None
        alike = before.vectors.shape == after.vectors.shape
        nearest = (before.vectors * after.vectors).sum(1).min() if alike else None
        return {
            "changed": int(changed),
            "units": 1,
            "right_to_wrong": int(changed and before.order[0] == truth) if known else None,
            "wrong_to_right": int(changed and after.order[0] == truth) if known else None,
            "order_changed": int(before.order != after.order),
            "cosine": None if nearest is None else min(float(nearest), 1.0),
        }

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record without an answer, which is wrong where there is a label."""
        return {**super().late(record), "order": None, "cosines": None}

    def more(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return the smallest cosine between both stacks' vectors, and the mean over samples."""
        known = [record["cosine"] for record in records if record["cosine"] is not None]
        if not known:
            return {"min_cosine": None, "mean_cosine": None}
        return {"min_cosine": min(known), "mean_cosine": float(np.mean(known))}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how far the cosines moved at most."""
        both = np.subtract(train["cosines"], deploy["cosines"])
        return float(np.abs(both).max())

    def examples(self) -> list[tuple[Any, Any]]:
        """Return three texts, each once the nearest."""
        found = []
        for nearest in range(3):
            vectors = np.eye(3)[[nearest, 0, 1, 2]]
            cosines = vectors[1:] @ vectors[0]
            order = tuple(np.argsort(-cosines, kind="stable").tolist())
            found.append((nearest, Ordered(order, tuple(cosines.tolist()), vectors)))
        return found

    @property
    def _rank(self) -> int:
        return 2 if self.output.pooling == "none" else 3

    def _vector(self, outputs: Any, row: Row) -> Floats:
        values = array_of(outputs, row, self._rank, self.output.vectors)
        if self.output.pooling != "none":
            last = row.first + len(row.tokens.ids)
            values = values[row.first : last]
            if not len(values):
                raise SampleError("a text has no token")
            if len(values) < last - row.first:
                raise ModelError(f"states of {last} tokens expected, got {len(values) + row.first}")
        found: Floats = values.astype(np.float64)
        check_finite(found)
        if self.output.pooling == "mean":
            return np.asarray(found.mean(0))
        picked: Floats = {"none": found, "first": found[0], "last": found[-1]}[self.output.pooling]
        return picked
