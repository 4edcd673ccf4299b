"""Image classification: one class an image, top-1 accuracy, McNemar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract.frame import Array
from simulator.data import example
from simulator.data.card import find_card
from simulator.data.folder import Dataset, load_folder
from simulator.errors import DataError, ModelError
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.profile.section import Section
from simulator.statistics import paired
from simulator.statistics.bootstrap import RESAMPLES, Resamples, ratio
from simulator.tasks.classification.answer import Answer, postprocess
from simulator.tasks.classification.compare import compare
from simulator.tasks.classification.figures import ClassificationFlips
from simulator.tasks.score import Record, Score
from simulator.tasks.task import CHANGES, Shapes, Task


class Output(Section):
    """What the network gives.

    ``background`` leading classes are not in the label file and never predicted.
    """

    kind: Literal["logits", "probabilities"]
    background: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True)
class AsTheCardSays:
    """No field of a profile's postprocessing concerns a class index."""

    output: Output

    def identity(self) -> Any:
        """Return what tells these settings from others."""
        return self.output.model_dump()


class Classification(Task):
    """One class an image; its truth is a class index, or None."""

    name = "classification"
    unit = "image"
    drawn = False
    needs_labels = False
    metrics = ("top1",)
    kinds: ClassVar[Mapping[str, str]] = {
        "right_to_wrong": "right→wrong",
        "wrong_to_right": "wrong→right",
    }
    titles = ("label", "train (margin)", "deploy (margin)")
    resamples = RESAMPLES
    Output = Output
    Flips = ClassificationFlips
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.int32()),
        pa.field("prediction", pa.int32()),
        pa.field("correct", pa.bool_()),
        pa.field("score", pa.float64()),
        pa.field("margin", pa.float64()),
        *CHANGES,
    )

    def outputs(self) -> tuple[str, ...]:
        """Return none: the first output is meant."""
        return ()

    def check(self, shapes: Shapes) -> None:
        """Hold the label file against the number of classes."""
        (name, shape), *_ = shapes.items()
        labels, background = self.network.labels, self.output.background
        if labels is None or not shape or shape[-1] is None:
            return
        if shape[-1] - background != len(labels):
            raise ModelError(
                f"labels: {len(labels)} classes, and output {name!r} has "
                f"{shape[-1] - background} (of {shape[-1]}, less {background} background)"
            )

    def settings(self, asked: Postprocess) -> AsTheCardSays:
        """Return what the card says."""
        return AsTheCardSays(self.output)

    def decode(
        self, outputs: Mapping[str, Array], settings: AsTheCardSays, placement: Placement
    ) -> Answer:
        """Turn the model's output into an answer; see :func:`postprocess`."""
        (values,) = outputs.values()
        return postprocess(values, settings.output.kind, settings.output.background)

    def load(self, path: Path) -> Dataset:
        """List a folder of images; see :func:`simulator.data.folder.load_folder`.

        Raises:
            DataError: it cannot be used, or is a data card: those are for other tasks.
        """
        if card := find_card(path):
            raise DataError(
                f"{card}: a data card is for detection and segmentation, and the model is for "
                "classification; give a folder of images"
            )
        return load_folder(path, self.network.labels)

    def recorded(self, prediction: int, score: float, margin: float) -> Answer:
        """Return the answer."""
        return Answer(prediction, score, margin)

    def example(self) -> Dataset:
        """Return the built-in images."""
        return example.images()

    @staticmethod
    def findings(summary: Mapping[str, Any]) -> list[str]:
        """Say when McNemar's test has too few pairs to go by."""
        flips = summary["flips"]
        if not summary["labelled"]:
            return []
        discordant = flips["right_to_wrong"] + flips["wrong_to_right"]
        if discordant >= paired.MIN_DISCORDANT:
            return []
        return [
            f"discordant pairs: {discordant}; fewer than {paired.MIN_DISCORDANT} can never be "
            "significant at 5 %; use more images"
        ]

    def stamp(self, truth: int | None) -> int | None:
        """Return the class index."""
        return truth

    def record(self, prediction: Answer, truth: int | None) -> dict[str, Any]:
        """Return the answer, and whether it is right.

        Raises:
            ModelError: the label is no class of the model.
        """
        classes = prediction.classes
        if truth is not None and classes is not None and not 0 <= truth < classes:
            raise ModelError(
                f"the label is class {truth}, and the model knows 0 to {classes - 1}; the labels, "
                "or the card's background, belong to another model"
            )
        return {
            "label": truth,
            "prediction": prediction.prediction,
            "correct": None if truth is None else prediction.prediction == truth,
            "score": prediction.score,
            "margin": prediction.margin,
        }

    def change(self, before: Answer, after: Answer, truth: int | None) -> dict[str, Any]:
        """Return whether the class is another."""
        return {"changed": int(before.prediction != after.prediction), "units": 1}

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record with no answer, which is wrong where there is a label."""
        wrong = None if record["label"] is None else False
        return {**record, "prediction": None, "correct": wrong}

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure top-1 of the labelled images; it is resampled where all are labelled."""
        right = np.array([record["correct"] for record in records if record["label"] is not None])
        figure = None
        if len(right) == len(records):
            figure = ratio(right.astype(np.float64), np.ones(len(right)))
        top1 = int(right.sum()) / len(right) if len(right) else None
        return Score(records, len(right), {"top1": top1}, figure)

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> dict[str, Any]:
        """Compare two stacks by exact tests, without a bootstrap; see :func:`compare`."""
        return compare(train.records, deploy.records)

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how sure both stacks were."""
        return float(train["margin"] + deploy["margin"])

    def flip(self, train: Record, deploy: Record) -> dict[str, Any]:
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

    @staticmethod
    def words(flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the label and both predictions, with their margins where those are known."""
        train, deploy = (_said(flip[side]) for side in ("train", "deploy"))
        return flip["label"] or "-", train, deploy

    @staticmethod
    def lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, McNemar's test, and how many images 0.1 points would take."""
        flips = summary["flips"]
        if not summary["labelled"]:
            return [("", "")]
        found = [
            (
                "",
                f"right→wrong {flips['right_to_wrong']}, wrong→right {flips['wrong_to_right']}, "
                f"wrong→other {flips['wrong_to_wrong']}",
            ),
            ("McNemar", f"exact p {flips['mcnemar_p']:.3g}, mid-p {flips['mcnemar_midp']:.3g}"),
        ]
        if needed := flips["samples_for_tenth_point"]:
            found.append(
                ("power",
                 f"a 0.1-point delta at this flip rate needs {needed:,} images (80 % power)")
            )  # fmt: skip
        return found

    def examples(self) -> list[tuple[Any, Any]]:
        """Return an image of each of the first classes."""
        classes = len(self.network.labels) if self.network.labels else 3
        return [(index, Answer(index, 1.0, 1.0)) for index in range(min(3, classes))]


def _said(side: Mapping[str, Any]) -> str:
    """A prediction with its margin; a device's log may have none."""
    margin = side["margin"]
    known = margin is not None and np.isfinite(margin)
    return f"{side['prediction']} ({margin:.2f})" if known else str(side["prediction"])
