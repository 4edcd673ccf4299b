"""``simulate finetune``: a network learns from the pixels of one stack, or of many."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from simulator.command.experiment import Command
from simulator.contract.recipe import Chain
from simulator.digests import sha256
from simulator.errors import ModelError, ProfileError, UserError
from simulator.experiments.fine_tuning import BATCH, FinetuneOptions
from simulator.experiments.tuning import Tuning, TuningSummary, in_words
from simulator.experiments.tuning_data import Examples
from simulator.mitigation.augment import Augmentation
from simulator.mitigation.examples import DrawnExamples
from simulator.mitigation.preprocessing import MixedPreprocessing
from simulator.model.card import Card, of_onnx_alone
from simulator.profile.document import read
from simulator.profile.profile import Profile
from simulator.profile.suite import builtin_suites, load_suite

MODULE = "module.json"


def finetune(command: Command[FinetuneOptions], asked: FinetuneOptions) -> TuningSummary:
    """Fine-tune a classifier, or a detector with anchors; see :class:`Finetune`.

    Accuracy is measured through the training stack.
    """
    Augmentation.parse(asked.augment)
    if asked.mix is not None:
        suite = load_suite(asked.mix)
        own = asked.mix not in builtin_suites()
        asked = asked.without(
            profile=asked.profile or suite.spec.train,
            mix=str(suite.path.resolve()) if own else asked.mix,
        )
    with _card(Path(asked.model), asked) as card:
        return _Mixing(command, card, asked).run()


class _Mixing(Tuning):
    """Weights as they are, from pixels that are drawn."""

    settings: FinetuneOptions
    mark = "statistics"
    lessons = True

    def __init__(
        self, command: Command[FinetuneOptions], card: Card, asked: FinetuneOptions
    ) -> None:
        self.of_module = asked.module is not None
        super().__init__(command, card, asked)
        self._rows = 1 if card.spec.input.layout == "NCHW" else 0
        self._fits(card)

    def trained_on(self) -> Profile:
        """Return the training stack, with the options that are not drawn."""
        settings = self.settings
        self._mixed = MixedPreprocessing(
            settings.mix,
            model=self.card,
            columns=settings.drawn,
            fixed=settings.fixed,
            train=self.stack_name,
            seed=settings.seed,
        )
        return self._mixed.profile

    def _fits(self, card: Card) -> None:
        """Refuse to move images by their side or more, and objects without their boxes."""
        if self.lesson is not None:
            self._stays(card)
        shift = Augmentation.parse(self.settings.augment).shift
        shape = card.feeds[0].shape[self._rows + 1 :]
        least = min((side for side in shape[:2] if side is not None), default=shift + 1)
        if shift >= least:
            raise UserError(f"--augment shift:{shift}: less than the side, {least}, expected")

    def _stays(self, card: Card) -> None:
        """Refuse what moves objects, or has no outputs by name."""
        task = card.task.name
        if self.of_module:
            raise UserError(f"--module: only classifiers are modules, and this is for {task}")
        if self.settings.augment:
            raise UserError(f"--augment: it moves pixels, and for {task} their boxes do not follow")
        if self._mixed.moving:
            raise UserError(
                f"--columns: {self._mixed.moving[0]} puts images elsewhere than the training "
                f"stack does, and for {task} their boxes do not follow"
            )

    def fields(self) -> dict[str, object]:
        """Return what becomes of statistics."""
        return {"statistics": self.settings.statistics}

    def identity(self) -> dict[str, object]:
        """Return the stacks that may be drawn."""
        return {"stacks": self._mixed.identity()}

    def stack(self) -> Chain:
        """Return the training stack, with the options that are not drawn."""
        return self._mixed.base

    def examples(self) -> Examples:
        """Preprocess by the training stack; each epoch draws."""
        made = super().examples()
        return DrawnExamples(
            made.inputs, made.labels, made.items, self.home,
            self._mixed if self._mixed.options else None,
            self.settings.batch if self.settings.draw == BATCH else None,
            Augmentation.parse(self.settings.augment), self.settings.seed, self._rows,
            self.threads, self.show.advance,
        )  # fmt: skip

    def described(self, accuracy: float) -> dict[str, object]:
        """Return a name, and what it learned from."""
        settings = self.settings
        how = ", ".join([*settings.drawn, *settings.option]) if settings.mix else self.stack_name
        words = f"{settings.epochs} epochs"
        if settings.drawn:
            words += f", mixed from {settings.mix}: {how}"
        else:
            words += f" on {how}"
        return {
            "name": settings.name or f"{self.card.spec.name}_{self.recipe()}",
            "summary": f"{words}; {in_words(accuracy, self.card.task, 'those held out')}",
        }

    def recipe(self) -> str:
        """Return ``mix`` where stacks were drawn, else the options that were learned from."""
        fixed = "_".join(self.settings.fixed.values())
        return "mix" if self.settings.drawn else fixed or "finetuned"


@contextmanager
def _card(path: Path, settings: FinetuneOptions) -> Iterator[Card]:
    """Give the card of a network; of a module, one that names it where others name their file.

    Raises:
        ModelError: the card cannot be read, or is not valid.
    """
    if settings.module is None:
        yield Card(path)
        return
    try:
        values = of_onnx_alone(read(path).values)
    except ProfileError as error:
        raise ModelError(str(error)) from error
    weights = os.path.abspath(settings.weights) if settings.weights else None
    if weights and not os.path.isfile(weights):
        raise ModelError(f"--weights: there is no file {weights}")
    named = {"module": settings.module, "weights": weights}
    if isinstance(labels := values.get("labels"), str):
        values["labels"] = os.path.abspath(path.parent / labels)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / path.name
        digest = {"sha256": sha256(Path(weights)) if weights else None}
        digest["source"] = _source(settings.module)
        (made.parent / MODULE).write_text(json.dumps(named | digest), "utf-8")
        made.write_text(yaml.safe_dump(values | {"model": MODULE}), "utf-8")
        yield Card(made)


def _source(module: str) -> str | None:
    """Return the SHA-256 of a module's source; None where there is none to be found."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = importlib.util.find_spec(module.partition(":")[0])
    except Exception:  # the packages around it are the user's code; its tuner says why
        return None
    finally:
        sys.path.remove(here)
    return sha256(Path(found.origin)) if found is not None and found.origin else None
