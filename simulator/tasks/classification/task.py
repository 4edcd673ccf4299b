"""Classification: one class for each sample, top-1 and top-5 accuracy, McNemar's test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from simulator.contract.frame import Array
from simulator.contract.front_end import array_words
from simulator.contract.model import Port
from simulator.data import example
from simulator.data.address import Root
from simulator.data.folder import Dataset, Files
from simulator.data.folder_labels import label_of
from simulator.data.source import source_of
from simulator.errors import ModelError, SampleError, shortened
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.profile.section import Section
from simulator.statistics.bootstrap import Figure, Ratio, Resamples
from simulator.tasks.classification.answer import BEST, Answer, postprocess
from simulator.tasks.classification.compare import ClassificationFlips, compare
from simulator.tasks.classification.impact import ClassificationImpact
from simulator.tasks.classification.prompts import Matching, PromptedClasses, matching
from simulator.tasks.classification.view import ClassificationView
from simulator.tasks.figures import Comparison
from simulator.tasks.score import Record, Score, Values, numbers
from simulator.tasks.task import CHANGES, Shapes, Task

ABOVE_CHANCE = 0.1
"""A network that is not better than chance by this much has not converged (NC)."""


class Output(Section):
    """What the network gives.

    The first ``background`` classes are not in the label file and are never predicted.
    """

    kind: Literal["logits", "sigmoid", "probabilities"]
    background: Annotated[int, Field(ge=0)] = 0
    prompts: PromptedClasses | None = Field(
        None, description="the classes are texts, of which a second network makes vectors"
    )

    @model_validator(mode="after")
    def _cosines_are_logits(self) -> Output:
        if self.prompts and (self.kind == "probabilities" or self.background):
            raise ValueError("prompts: kind logits or sigmoid, and no background")
        return self


class Classification(Task):
    """One class for each sample; its truth is a class index, or None."""

    name = "classification"
    unit = "image"
    metrics = ("top1", "top5")
    kinds = ("right_to_wrong", "wrong_to_right")
    answer = ("prediction",)
    tried_with = "simulator.tasks.classification.specimen:specimens"
    Output = Output
    Flips = ClassificationFlips
    View = ClassificationView
    Impact = ClassificationImpact
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.int32()),
        pa.field("prediction", pa.int32()),
        pa.field("correct", pa.bool_()),
        pa.field("score", pa.float64()),
        pa.field("margin", pa.float64()),
        pa.field("best", pa.list_(pa.int32())),
        pa.field("top5", pa.bool_()),
        *CHANGES,
    )

    @classmethod
    def located(cls, output: Any, find: Callable[[str, str], Path]) -> Any:
        """Find the vocabularies of prompts."""
        if output.prompts is None:
            return output
        given = output.prompts.input.located(find, "output.prompts.input")
        prompts = output.prompts.model_copy(update={"input": given})
        return output.model_copy(update={"prompts": prompts})

    def outputs(self) -> tuple[str, ...]:
        """Return the output with a text's vector, where classes are prompts and it is named."""
        asked = self.output.prompts
        return (asked.text.vectors,) if asked and asked.text.vectors else ()

    def handed(self) -> tuple[str, ...]:
        """Return the output with an image's vector, where classes are prompts."""
        return (self.output.prompts.image,) if self.output.prompts else ()

    def check_handed(self, shapes: Shapes, inputs: Mapping[str, Port], outputs: Shapes) -> None:
        """Compare both towers with the card; prompts need the names of classes."""
        if self.network.labels is None:
            raise ModelError("labels: prompts need a file of class names")
        self.output.prompts.check(shapes, inputs, outputs)

    def beside(self, profile: Profile, choices: Choices) -> Matching | None:
        """Return the prompts of the classes as the stack's token ids."""
        labels, asked = self.network.labels, self.output.prompts
        return matching(profile, choices, asked, labels.names) if asked and labels else None

    def check(self, shapes: Shapes) -> None:
        """Compare the number of classes with the label file; of prompts, the rank of vectors."""
        (name, shape), *_ = shapes.items()
        labels, background = self.network.labels, self.output.background
        if asked := self.output.prompts:
            if len(shape) != asked.text.rank:
                raise ModelError(
                    f"prompts.text: pooling: {asked.text.pooling} expects an output of rank "
                    f"{asked.text.rank}; {name!r} is {tuple(shape)}"
                )
            return
        if labels is None or not shape or shape[-1] is None:
            return
        if shape[-1] - background != len(labels):
            raise ModelError(
                f"labels: {len(labels)} classes, and output {name!r} has "
                f"{shape[-1] - background} (of {shape[-1]}, less {background} background)"
            )

    def chance(self, shapes: Shapes, records: Sequence[Record] = ()) -> float | None:
        """Return 1 / classes; None for an unknown number."""
        first = next(iter(shapes.values()), ())
        classes = len(self.network.labels) if self.network.labels else None
        if first and first[-1] is not None and self.output.prompts is None:
            classes = first[-1] - self.output.background
        return 1 / classes if classes else None

    def nc_below(self, shapes: Shapes) -> float | None:
        """Return chance and :data:`ABOVE_CHANCE`; None for an unknown number of classes."""
        chance = self.chance(shapes)
        return chance + ABOVE_CHANCE if chance else None

    def decode(self, outputs: Mapping[str, Array], settings: Any, placement: Any) -> Answer:
        """Turn the model's output into an answer; see :func:`postprocess`."""
        (values,) = outputs.values()
        return postprocess(values, self.output.kind, self.output.background)

    def without_card(self, root: Root, files: Files) -> Dataset:
        """Open samples with classes in folder names, in a table, or in their shards."""
        return source_of(root, files).load_classes(root, files, self.network.labels)

    def truth_of(self, text: str, where: str) -> int:
        """Return the class that a text names."""
        return label_of(text, where, self.network.labels)

    def recorded(self, prediction: int, score: float, margin: float) -> Answer:
        """Return a recorded answer."""
        return Answer(prediction, score, margin)

    def given(self, answer: Array) -> Answer:
        """Return the answer of a class index or a label, and its score where that is given."""
        row = answer.reshape(-1)
        names = list(self.network.labels.names) if self.network.labels else []
        if row.dtype.kind == "U" and row.size in (1, 2):
            if row[0] not in names:
                label = shortened(str(row[0]))
                raise SampleError(f"gave the answer {label!r}, which is no label of the card")
            with suppress(ValueError):
                row = np.array([names.index(row[0]), *row[1:].astype(float)])
        if row.size not in (1, 2) or row.dtype.kind not in "iuf" or row[0] < 0 or row[0] % 1:
            raise SampleError(
                f"gave {array_words(answer)} as an answer; expected a class, by its index or its "
                "label, and its score where there is one"
            )
        if names and row[0] >= len(names):
            raise SampleError(f"gave the class {int(row[0])}; the card has {len(names)} labels")
        return Answer(int(row[0]), float(row[1]) if row.size == 2 else math.nan, math.nan)

    def example(self) -> Dataset:
        """Return the built-in images."""
        return example.images()

    def record(self, prediction: Answer, truth: int | None) -> Values:
        """Return the answer, whether it is right, and whether the label is among the five best.

        The latter is None of a model of five classes or fewer, which cannot be wrong.

        Raises:
            ModelError: the label is no class of the model.
        """
        classes = prediction.classes
        if truth is not None and classes is not None and not 0 <= truth < classes:
            raise ModelError(
                f"the label is class {truth}, and the model knows 0 to {classes - 1}; the labels, "
                "or the card's background, are of another model"
            )
        best = prediction.best
        listed = truth is not None and best is not None and (classes or 0) > BEST
        return {
            "label": truth,
            "prediction": prediction.prediction,
            "correct": None if truth is None else prediction.prediction == truth,
            "score": prediction.score,
            "margin": prediction.margin,
            "best": None if best is None else list(best),
            "top5": truth in best if listed and best else None,
        }

    def change(self, before: Answer, after: Answer, truth: int | None) -> Values:
        """Return whether the class is another one."""
        return {"changed": int(before.prediction != after.prediction), "units": 1}

    @property
    def firm(self) -> tuple[str, ...]:
        """What was answered; in which order the runners-up stand is how surely."""
        return tuple(name for name in super().firm if name != "best")

    def late(self, record: Record) -> Values:
        """Return the record without an answer, which is wrong where there is a label."""
        wrong = {name: None if record[name] is None else False for name in ("correct", "top5")}
        return {**record, "prediction": None, "best": None, **wrong}

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure top-1 and top-5 where they are known; resampled where they are of all samples."""
        metrics: dict[str, float | None] = {}
        figures: dict[str, Figure] = {}
        for metric, column in ("top1", "correct"), ("top5", "top5"):
            right, known = numbers(records, column)
            count = int(known.sum())
            metrics[metric] = int(right.sum()) / count if count else None
            if count and count == len(records):
                figures[metric] = Ratio(right, np.ones(count))
        labelled = int(numbers(records, "label")[1].sum())
        return Score(records, labelled, metrics, figures.pop("top1", None), figures)

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> Comparison:
        """Compare two stacks by exact tests, without a bootstrap; see :mod:`.compare`."""
        return compare(train.records, deploy.records)

    def means(self) -> dict[str, str]:
        """Return the columns of top-1 and top-5."""
        return {"top1": "correct", "top5": "top5"}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how sure both stacks were: a change between two sure answers is worse."""
        return float(train["margin"] + deploy["margin"])

    def flip(self, train: Record, deploy: Record) -> Values:
        """Return both answers by name."""
        label = train["label"]
        sides = {
            side: {
                "prediction": self.network.label(record["prediction"]),
                "score": record["score"],
                "margin": record["margin"],
                "correct": record["correct"],
            }
            for side, record in (("train", train), ("deploy", deploy))
        }
        return {"label": None if label is None else self.network.label(label), **sides}

    def examples(self) -> list[tuple[Any, Any]]:
        """Return one label of each of the first classes."""
        classes = len(self.network.labels) if self.network.labels else BEST + 1
        return [(index, _sure(index, classes)) for index in range(min(3, classes))]


def _sure(index: int, classes: int) -> Answer:
    """An answer that leaves nothing to any other class."""
    others = (one for one in range(classes) if one != index)
    return Answer(index, 1.0, 1.0, classes, (index, *others)[:BEST])
