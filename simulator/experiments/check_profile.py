"""The proof that a profile runs here: one sample, or none, through every stage of its stack."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract import Array, Frame, Stage
from simulator.contract.recipe import Recipe
from simulator.data import example
from simulator.data.folder import Dataset, Item
from simulator.errors import DataError, ModelError
from simulator.modalities.modality import MODALITIES
from simulator.model.card import DEFAULT, Card
from simulator.model.onnxfile import check
from simulator.pipeline import recorded
from simulator.pipeline.executor import Executor, LocalExecutor
from simulator.pipeline.inference import Inferred
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Chosen, Stack, StackBuilder
from simulator.pipeline.walk import StageError
from simulator.profile.implementations import Choices


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of one sample.

    Attributes:
        card: the model's name.
        sample: the sample's name.
        gave: each stage with what it gave, in words.
        stack: the stack, closed again; what is in force and what to know about it.
    """

    card: str
    sample: str
    gave: tuple[tuple[str, str], ...]
    stack: Stack


def absent(choices: Choices) -> list[str]:
    """Return what is not installed, a line a backend with its remedy; nothing is imported."""
    lines = []
    for choice in choices.values():
        backend = choice.backend
        found = registry.home(backend.name) is not None or all(
            library.present for library in backend.libraries
        )
        if not found or None in registry.versions(backend).values():
            lines.append(f"{backend.name}: {registry.remedy(backend)}")
    return list(dict.fromkeys(lines))


def is_recorded(own: Chosen) -> bool:
    """Whether a part of a stack is a recording, which has no answer for an image of ours.

    Raises:
        DataError: the recording cannot be used.
    """
    found = [recorded.recording(*own, stage) for stage in (Stage.DECODE, Stage.RUNTIME)]
    return any(recording is not None for recording in found)


def prove(own: Chosen, model: str | None, say: Callable[[str], None]) -> Proof:
    """Run one built-in image, or one specimen of another modality, through every stage.

    INT8 is calibrated on that one sample: that it can be made is proved, not how good it is.

    Args:
        own: the profile and its implementations.
        model: a model card; by default the built-in model, or that of the specimen.
        say: told what is being made.

    Raises:
        MissingLibrary: a library, a device or the built-in example is not here.
        UserError: a stage refuses, with the reason.
    """
    for choice in own[1].values():
        registry.require(choice.backend)
    with tempfile.TemporaryDirectory() as folder:
        own_card, item = _sample(own[0].spec.modality, model is None, Path(folder))
        return _proved(own, Card(Path(model) if model else own_card), item, say)


def _sample(kind: str, with_model: bool, folder: Path) -> tuple[Path, Item]:
    """A model card, where one is wanted, and a sample of a modality."""
    if kind == DEFAULT:
        first = example.images().items[0]
        return example.model_card() if with_model else folder, replace(first, truth=None)
    made = MODALITIES[kind].specimen(folder)
    return made.card, Item(made.files[0].name, made.files[0], None)


def _proved(own: Chosen, card: Card, item: Item, say: Callable[[str], None]) -> Proof:
    builder = StackBuilder(card, check(card), Dataset(item.path.parent, (item,)), 0, say)
    try:
        stack = builder.stack("here", own, {"train": own, "deploy": own})
        executor = LocalExecutor(card.modality, builder.runtimes, workers=1)
        return Proof(card.spec.name, item.name, tuple(_through(executor, stack, item)), stack)
    finally:
        builder.close()


def _through(executor: Executor, stack: Stack, item: Item) -> list[tuple[str, str]]:
    gave = []

    def say(recipe: Recipe, value: Any) -> None:
        if isinstance(value, Inferred):
            _refuse_nonsense(value)
        gave.append((recipe.stage, _words(value)))

    try:
        opened = executor.open(plan({Arm(stack.side): stack.chain}))
        opened.walk(executor.context(item), say)
    except StageError as error:
        raise DataError(f"{error.stage}: {item.name}: {error.reason}") from error
    return gave


def _outputs(found: Inferred) -> list[tuple[str, Array]]:
    """Every output of every inference."""
    all_of = found.outputs if isinstance(found.outputs, tuple) else (found.outputs,)
    return [pair for one in all_of for pair in one.items()]


def _refuse_nonsense(found: Inferred) -> None:
    bad = [name for name, array in _outputs(found) if not np.isfinite(array).all()]
    if bad:
        raise ModelError(f"infer: {', '.join(bad)} of the sample is not finite")


def _words(value: Any) -> str:
    if isinstance(value, Frame):
        return f"{value.width}x{value.height} {value.format}"
    if isinstance(value, Inferred):
        return ", ".join(f"{name} {_shape(array)}" for name, array in _outputs(value))
    return _shape(value) if isinstance(value, np.ndarray) else "an answer"


def _shape(array: Any) -> str:
    return f"{'x'.join(map(str, array.shape))} {array.dtype}"
