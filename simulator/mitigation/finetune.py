"""``simulate finetune``: a network learns from the pixels of one stack, or of many."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.command.options import Progress
from simulator.contract.recipe import Chain
from simulator.digests import sha256
from simulator.errors import ModelError, ProfileError, UserError
from simulator.experiments.tuning import Course, Tuning, in_words
from simulator.experiments.tuning_data import Examples
from simulator.mitigation.augment import Augmentation
from simulator.mitigation.examples import DrawnExamples
from simulator.mitigation.preprocessing import COLUMNS, MixedPreprocessing
from simulator.model.card import Card, of_onnx_alone
from simulator.profile.document import read
from simulator.profile.profile import Profile

MODULE = "module.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Course):
    """What is learned from, and how.

    Attributes:
        mix: a suite's path, or a built-in name; None for the training stack alone.
        columns: of the suite, those that are drawn for each image and epoch; None is ``decode`` and
            ``resize``, or none where there are options.
        option: ``COLUMN=NAME``, options of the suite that the training stack has.
        augment: ``flip`` and ``shift:N``.
        statistics: ``learn`` those of normalizations of batches, or ``keep`` them.
        module: learn this module, ``package.file:factory``, in place of the card's file.
        weights: the state dict of the module.
        name: in the new card.
    """

    mix: str | None = None
    columns: tuple[str, ...] | None = None
    option: tuple[str, ...] = ()
    augment: tuple[str, ...] = ()
    statistics: str = "learn"
    module: str | None = None
    weights: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        super(Settings, self).__post_init__()
        if self.mix is None and (self.columns or self.option):
            raise UserError("--columns and --option are of a suite; name it: --mix SUITE")
        if self.weights and not self.module:
            raise UserError("--weights are a module's; name it: --module package.file:factory")
        if self.module is not None and not all(self.module.partition(":")):
            raise UserError(f"--module {self.module}: package.file:factory expected")
        for one in self.option:
            if not all(one.partition("=")):
                raise UserError(f"--option {one}: COLUMN=NAME expected")
        if len(self.fixed) < len(self.option):
            raise UserError(f"--option {','.join(self.option)}: a column is named twice")
        Augmentation.parse(self.augment)

    @property
    def drawn(self) -> tuple[str, ...]:
        """The columns that are drawn."""
        if self.columns is not None:
            return self.columns
        return COLUMNS if self.mix and not self.option else ()

    @property
    def fixed(self) -> dict[str, str]:
        """The options that the training stack has, by column."""
        return dict(one.split("=", 1) for one in self.option)


def finetune(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    settings: Settings,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fine-tune a classifier or a detector with anchors.

    A second call with the same arguments goes on after the last epoch.

    Every image of every epoch goes through a stack that is drawn from the suite. Accuracy is
    measured through the training stack.

    Args:
        model: the model card; with a module, its ``model`` is not read.
        data: annotated images: a folder or a data card.
        out: the folder; it gets an ONNX file, a model card and ``summary.json``.
        settings: what is learned.
        limit: take a random subset of this many images.
        progress: is told what happens.

    Returns:
        The summary: settings, epochs, ``metric``, ``accuracy``, its value on the images held out
        (from 0 to 1), ``nc_below``, and ``converged``.

    Raises:
        UserError: the model, the data or the settings do not fit, or the folder is of another
            call.
    """
    with _card(Path(model), settings) as card:
        work = _Mixing(card, Path(data), settings, limit)
        return work.run(Path(out), progress or Progress())


class _Mixing(Tuning):
    """Weights as they are, from pixels that are drawn."""

    settings: Settings
    mark = "statistics"
    lessons = True

    def __init__(self, card: Card, data: Path, settings: Settings, limit: int | None) -> None:
        self.of_module = settings.module is not None
        super().__init__(card, data, settings, limit)
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
            train=settings.profile,
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

    def fields(self) -> dict[str, Any]:
        """Return what becomes of statistics."""
        return {"statistics": self.settings.statistics}

    def identity(self) -> dict[str, Any]:
        """Return the stacks that may be drawn."""
        return {"stacks": self._mixed.identity()}

    def stack(self) -> Chain:
        """Return the training stack, with the options that are not drawn."""
        return self._mixed.base

    def examples(self, home: Path, show: Progress) -> Examples:
        """Preprocess by the training stack; each epoch draws."""
        made = super().examples(home, show)
        return DrawnExamples(
            made.inputs,
            made.labels,
            made.items,
            home,
            self._mixed if self._mixed.options else None,
            Augmentation.parse(self.settings.augment),
            self.settings.seed,
            self._rows,
            self.settings.threads,
            show.advance,
        )

    def described(self, accuracy: float) -> dict[str, Any]:
        """Return a name, and what it learned from."""
        settings = self.settings
        how = ", ".join([*settings.drawn, *settings.option]) if settings.mix else settings.profile
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
        """Return whether stacks were drawn."""
        return "mix" if self.settings.drawn else "finetuned"


@contextmanager
def _card(path: Path, settings: Settings) -> Iterator[Card]:
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
    if isinstance(values.get("labels"), str):
        values["labels"] = os.path.abspath(path.parent / values["labels"])
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
