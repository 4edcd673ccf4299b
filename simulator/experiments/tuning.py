"""Fine-tuning, for ``quantize`` and ``finetune``: epochs, state, card, summary."""

from __future__ import annotations

import json
import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict, final

import numpy as np
import yaml

from simulator import registry
from simulator.command.experiment import Command
from simulator.command.options import Progress, given
from simulator.contract import Array, Stage, TrainingObjective, Tuner
from simulator.contract.recipe import Chain, generator
from simulator.data.folder import Dataset, Files, Item, subset
from simulator.digests import sha256
from simulator.errors import DataError, ModelError, NotFinite, UserError
from simulator.experiments.claim import claimed, portable
from simulator.experiments.common import chosen
from simulator.experiments.fine_tuning import TuningOptions
from simulator.experiments.tuning_data import EPOCH, INPUTS, LABELS, Examples, prepared
from simulator.files import TEXT, read_file, write_whole
from simulator.machine import usable
from simulator.model.card import Card, of_onnx_alone
from simulator.model.onnxfile import check
from simulator.model.store import digest
from simulator.pipeline.front_end import front_end
from simulator.profile.implementations import Choice, implementation
from simulator.profile.profile import Profile
from simulator.results.json_text import finite, parse_json, write_json
from simulator.tasks.task import Task

STATE, SUMMARY, MODEL, CARD = "state", "summary.json", "model.onnx", "model.yaml"
CALIBRATION = 64
USUAL = "pillow_fp32"
"""The stack that makes the inputs where none is named."""
_UNTOLD = ("model", "data", "limit")
"""Options that a summary does not name."""


class Epoch(TypedDict):
    """What came of an epoch, counted from 1; ``replaced``: inputs that could not be drawn."""

    epoch: int
    loss: float | None
    accuracy: float
    replaced: NotRequired[int]


class TuningSummary(TypedDict):
    """What is in ``summary.json`` of a fine-tuning."""

    settings: dict[str, object]
    epochs: list[Epoch]
    metric: str
    accuracy: float
    nc_below: float | None
    converged: bool
    card: str
    stack: NotRequired[str]


class Tuning(ABC):
    """One fine-tuning of a network.

    Args:
        command: whose work it is.
        card: the model card of the network.
        asked: how it learns, and where.

    Raises:
        UserError: the model or the data do not fit.
    """

    settings: TuningOptions
    mark: str
    """A field of the offers that can do it."""
    lessons = False
    """Whether other tasks than classification are learned, by their own lesson."""
    of_module = False
    """Whether the card's file names a module, and is no ONNX file."""

    def __init__(self, command: Command[Any], card: Card, asked: TuningOptions) -> None:
        classifies = card.task.name == "classification"
        if not classifies and not self.lessons:
            raise UserError(
                f"{card.path}: only classifiers are fine-tuned, this is a {card.task.name}"
            )
        if not card.spec.model:
            raise UserError(
                f"{card.path}: only ONNX files are fine-tuned; name one as model: FILE.onnx"
            )
        if not self.of_module:
            check(card)
        card.refuse_second("fine-tuning takes")
        self.command, self.card = command, card
        self.home, self.show = Path(asked.out), asked.progress or Progress()
        self.threads = asked.threads or len(usable())
        self.stack_name = portable(asked.profile or USUAL)
        self.settings = asked.without(threads=self.threads, profile=self.stack_name)
        whole = card.task.load(Path(asked.data), Files.of(card.modality))
        self.dataset: Dataset = subset(whole, asked.limit, asked.seed)
        if not self.dataset.labelled:
            raise DataError(f"{asked.data}: fine-tuning needs a label for every sample")
        self.profile = self.trained_on()
        self._decoding = card.task.settings(card.modality.postprocess(self.profile, card.spec))
        self.lesson = None if classifies else self._lesson()

    @abstractmethod
    def fields(self) -> dict[str, object]:
        """Return the tuner's options besides those of every course."""

    @abstractmethod
    def described(self, accuracy: float) -> dict[str, object]:
        """Return what the new card says otherwise than the old one."""

    @abstractmethod
    def recipe(self) -> str:
        """Return the name of the recipe, by which models are compared."""

    def stack_of_it(self) -> tuple[str, str] | None:
        """Return a profile that opens the new file with the old card: its file name, and text."""
        return None

    def identity(self) -> dict[str, object]:
        """Return what else tells this work from another one in the same folder."""
        return {}

    def trained_on(self) -> Profile:
        """Return the stack whose preprocessing makes the examples."""
        return chosen(self.stack_name, [])[0]

    def stack(self) -> Chain:
        """Return the steps of the stack whose preprocessing makes the examples."""
        profile, choices = chosen(self.stack_name, [])
        for choice in choices.values():
            registry.require(choice.backend)
        return front_end(self.card, profile, choices)

    def examples(self) -> Examples:
        """Preprocess every sample, or find those of a killed run."""
        if not (self.home / INPUTS).exists():
            self.show.say("preprocessing")
        return prepared(
            self.home, self.stack(), self.card.modality, self.dataset.items, self._label,
            self.show.advance,
        )  # fmt: skip

    @final
    def run(self) -> TuningSummary:
        """Learn in the folder, from where an earlier call was stopped; write model and card.

        Raises:
            UserError: the model, the data or the settings do not fit, or the folder is of another
                call.
        """
        choice = self._choice()
        own = {"learning_rate": self.settings.learning_rate, "seed": self.settings.seed}
        tuner: Tuner = choice.offer.make({**choice.options, **own, "lesson": self.lesson})
        asked = self.settings
        with claimed(self.command, asked, self._work(choice), profile=asked.profile):
            if (self.home / SUMMARY).exists():
                self.show.note(f"{self.home} is finished")
                finished: TuningSummary = parse_json(read_file(self.home / SUMMARY, TEXT))
                return finished
            return self._run(tuner)

    def _run(self, tuner: Tuner) -> TuningSummary:
        home, show, settings = self.home, self.show, self.settings
        examples = self.examples()
        if left := len(self.dataset.items) - len(examples.items):
            show.note(f"{left} of {len(self.dataset.items)} cannot be used, and are left out")
        learn, held_out = examples.split(settings.held_out, settings.seed)
        show.say("reading the network")
        assert self.card.model is not None
        tuner.open(self.card.model, np.array(examples.inputs[learn[:CALIBRATION]]))
        log = self._learn(tuner, examples, learn, held_out)
        summary = self._finish(tuner, log, examples)
        for name in (INPUTS, LABELS, EPOCH, STATE):
            (home / name).unlink(missing_ok=True)
        return summary

    def _choice(self) -> Choice:
        """Find the backend that fine-tunes, with its options.

        Raises:
            UserError: it does not offer the settings, in one line each.
        """
        able = (
            (one, offer)
            for one in registry.backends()
            for offer in one.of(Stage.TUNE)
            if self.mark in offer.options
        )
        backend, _ = next(able)
        output: Any = self.card.task.output
        settings = self.settings
        course = {"epochs": settings.epochs, "batch": settings.batch, "threads": self.threads}
        fields = self.fields() | course | {"output": getattr(output, "kind", "logits")}
        try:
            choice = implementation(Stage.TUNE, backend, fields)
        except UserError as error:
            lines = [line.replace("\t", ": ", 1) for line in str(error).splitlines()]
            raise UserError("\n".join(f"--{line}" for line in lines)) from error
        registry.require(backend)
        return choice

    def _asked(self) -> dict[str, object]:
        """Return the options that the summary names."""
        options = (
            (declared, value) for declared, value in given(self.settings) if declared.about.asked
        )
        return {declared.name: value for declared, value in options if declared.name not in _UNTOLD}

    def _work(self, choice: Choice) -> dict[str, object]:
        """Return all that the weights depend on besides the options."""
        assert self.card.model is not None
        stamp = self.card.task.stamp
        samples = [[item.name, stamp(item.truth), sha256(item.path)] for item in self.dataset.items]
        return {
            "model": sha256(self.card.model),
            "output": self.card.spec.model_dump(mode="json")["output"],
            "samples": digest(samples),
            "stack": [recipe.identity() for recipe in self.stack().recipes],
            "tuner": choice.identity(),
            **self.identity(),
            **({} if self.lesson is None else {"lesson": self._decoding.identity()}),
        }

    def _learn(
        self, tuner: Tuner, examples: Examples, learn: Array, held_out: Array
    ) -> list[Epoch]:
        """Run the epochs that are left; the state is kept after each."""
        home, show = self.home, self.show
        seed, epochs = self.settings.seed, self.settings.epochs
        placements = self._placements(examples)
        targets = self._targets(examples, placements)
        log: list[Epoch] = []
        if (home / STATE).exists():
            state = (home / STATE).read_bytes()
            length = int.from_bytes(state[:8], "little")
            log = json.loads(state[8 : 8 + length])
            tuner.restore(state[8 + length :])
            show.note(f"going on after epoch {len(log)}")
        for number in range(len(log), epochs):
            show.say(f"epoch {number + 1} of {epochs}")
            order = learn[generator("order", seed, number).permutation(len(learn))]
            inputs, replaced = examples.of(number, order)
            loss = tuner.epoch(number, inputs, targets, order)
            accuracy = self._measured(tuner, examples, held_out, placements)
            told = loss if math.isfinite(loss) else None
            log.append({"epoch": number + 1, "loss": told, "accuracy": accuracy})
            if replaced:
                log[-1]["replaced"] = replaced
                show.note(f"{replaced} images: not by the stack that was drawn, which cannot")
            said = json.dumps(log).encode()
            write_whole(home / STATE, len(said).to_bytes(8, "little") + said + tuner.state())
            found = in_words(accuracy, self.card.task, "those held out")
            show.note(f"epoch {number + 1}: loss {loss:.4g}, {found}")
            show.advance(number + 1, epochs)
        return log

    def _lesson(self) -> TrainingObjective:
        card = self.card
        try:
            found = card.task.lesson(self._decoding)
        except ModelError as error:
            raise ModelError(f"{card.path}: output: {error}") from error
        if found is None:
            raise UserError(f"{card.path}: networks for {card.task.name} are not fine-tuned")
        return found

    def _label(self, item: Item, source: Any) -> int:
        if self.lesson is None:
            output: Any = self.card.task.output
            return int(item.truth) + int(output.background)
        self.card.task.opened(item.truth, source)
        return 0

    def _placements(self, examples: Examples) -> list[Any]:
        """How each example lies in the network's input; nothing where only classes are learned."""
        if self.lesson is None:
            return []
        modality = self.card.modality
        place = modality.placing(self.profile, self.card.spec)
        return [place(modality.read(item.name, item.path)) for item in examples.items]

    def _targets(self, examples: Examples, placements: Sequence[Any]) -> Sequence[Any]:
        if self.lesson is None:
            return list(examples.labels)
        pairs = zip(examples.items, placements, strict=True)
        return [self.lesson.target(item.truth, place) for item, place in pairs]

    def _measured(
        self, tuner: Tuner, examples: Examples, rows: Array, placements: Sequence[Any]
    ) -> float:
        """Return the headline metric of some examples; 0 where an output is not finite."""
        if self.lesson is None:
            return _accuracy(tuner.answers(examples.inputs[rows]), examples.labels[rows])
        task, records, truths = self.card.task, [], []
        for row in rows.tolist():
            outputs = tuner.outputs(examples.inputs[row : row + 1])
            try:
                found = task.decode(outputs, self._decoding, placements[row])
            except NotFinite:
                return 0.0
            truth = examples.items[row].truth
            (record,) = task.records([found], truth)
            records.append(record)
            truths.append(truth)
        value = task.score(records, truths).metrics[task.headline]
        if value is None:
            raise DataError("nothing is annotated in the samples held out; hold out more")
        return float(value)

    def _finish(self, tuner: Tuner, log: list[Epoch], examples: Examples) -> TuningSummary:
        """Write the model, its card and the summary, which comes last."""
        card, home = self.card, self.home
        tuner.write(home / MODEL)
        needed = card.task.nc_below({"": tuner.answers(examples.inputs[:1]).shape})
        accuracy = log[-1]["accuracy"]
        converged = accuracy > 0 if needed is None else accuracy >= needed
        spec = of_onnx_alone(card.spec.model_dump(by_alias=True, exclude_unset=True, mode="json"))
        spec |= {**self.described(accuracy), "model": MODEL, "converged": converged}
        spec["summary"] = f"{spec['summary']}{'' if converged else '; NC: not converged'}"
        spec["checkpoint"] = {"recipe": self.recipe(), "seed": self.settings.seed}
        if card.spec.labels:
            labels = Path(card.spec.labels).name
            if (source := card.path.parent / card.spec.labels) != home / labels:
                shutil.copyfile(source, home / labels)
            spec["labels"] = labels
        write_whole(home / CARD, yaml.safe_dump(spec, sort_keys=False).encode())
        summary: TuningSummary = {
            "settings": finite(self._asked()),
            "epochs": log,
            "metric": card.task.headline,
            "accuracy": accuracy,
            "nc_below": needed,
            "converged": converged,
            "card": CARD,
        }
        if made := self.stack_of_it():
            summary["stack"], text = made
            write_whole(home / summary["stack"], text.encode())
        write_json(home / SUMMARY, summary)
        return summary


def in_words(accuracy: float, task: Task, images: str) -> str:
    """Return how good a network is, in words."""
    if task.name == "classification":
        return f"{100 * accuracy:.1f} % of {images}"
    return f"{task.headline} {accuracy:.3f} on {images}"


def _accuracy(outputs: Array, labels: Array) -> float:
    """The share of right answers; outputs that are not finite are wrong."""
    finite = np.isfinite(outputs).all(1)
    return float((finite & (np.nan_to_num(outputs).argmax(1) == labels)).mean())
