"""Proves that a profile runs here: one sample goes through every stage of its stack."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract import Array, Frame
from simulator.contract.raw import Raw
from simulator.contract.recipe import Recipe
from simulator.data import example
from simulator.data.folder import Dataset, Item
from simulator.errors import DataError, MissingLibrary, ModelError
from simulator.modalities.modality import MODALITIES
from simulator.model.artifact import takes
from simulator.model.card import DEFAULT, Card
from simulator.model.onnxfile import check
from simulator.pipeline import recorded
from simulator.pipeline.builder import StackBuilder
from simulator.pipeline.executor import Executor
from simulator.pipeline.inference import Inferred
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.pipeline.walk import StageError
from simulator.profile.implementations import Choices


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of one sample.

    Attributes:
        card: the model's name.
        sample: the sample's name.
        gave: each stage with a description of its value, for example ``("decode", "640x480 rgb")``.
        stack: the stack, whose runtime is closed again; for its settings in force and its notices.
    """

    card: str
    sample: str
    gave: tuple[tuple[str, str], ...]
    stack: Stack


def absent(choices: Choices) -> list[str]:
    """Return a line for each backend that is not installed: how to install it.

    No library is imported.
    """
    lines = []
    for choice in choices.values():
        backend = choice.backend
        found = registry.home(backend.name) is not None or all(
            library.present for library in backend.libraries
        )
        if not found or None in registry.versions(backend).values():
            lines.append(f"{backend.name}: {registry.remedy(backend)}")
    return list(dict.fromkeys(lines))


def is_recorded(chosen: ResolvedProfile) -> bool:
    """Return whether a part of a stack is a recording, which knows no other images.

    Raises:
        DataError: the recording cannot be used.
    """
    return bool(recorded.recordings(*chosen))


def prove(chosen: ResolvedProfile, model: Card | None, say: Callable[[str], None]) -> Proof:
    """Run one built-in image, or one specimen of another modality, through every stage.

    INT8 is calibrated on that one sample: this proves that the artifact can be made, and says
    nothing of its accuracy.

    Args:
        chosen: the profile and its implementations.
        model: a model card; by default the built-in model, or that of the specimen.
        say: called with a line of text when a slow step begins.

    Raises:
        MissingLibrary: a library, a device or the built-in example is missing.
        UserError: a stage failed, with the reason.
    """
    for choice in chosen[1].values():
        registry.require(choice.backend)
    with tempfile.TemporaryDirectory() as folder:
        default_card, item = _sample(chosen[0].spec.modality, model is None, Path(folder))
        card = model or Card(default_card)
        wanted = takes(chosen[1])
        made_here = not chosen[0].spec.precision.artifact
        if made_here and model is None and wanted in card.named and not card.named[wanted]:
            raise MissingLibrary(
                f"no model that is built in has a {wanted} file; run it with --model CARD"
            )
        return _proved(chosen, card, item, say)


def _sample(kind: str, with_model: bool, folder: Path) -> tuple[Path, Item]:
    """A model card (for images only if *with_model*) and a sample of a modality."""
    if kind == DEFAULT:
        first = example.images().items[0]
        return example.model_card() if with_model else folder, replace(first, truth=None)
    made = MODALITIES[kind].specimen(folder)
    return made.card, Item(made.files[0].name, made.files[0], None)


def _proved(chosen: ResolvedProfile, card: Card, item: Item, say: Callable[[str], None]) -> Proof:
    builder = StackBuilder(card, check(card), Dataset(card.path.parent, (item,)), 0, say)
    try:
        stack = builder.stack("here", chosen, {"train": chosen, "deploy": chosen})
        executor = LocalExecutor(card.modality, builder.runtimes, workers=1)
        return Proof(card.spec.name, item.name, tuple(_run(executor, stack, item)), stack)
    finally:
        builder.close()


def _run(executor: Executor, stack: Stack, item: Item) -> list[tuple[str, str]]:
    gave = []

    def say(recipe: Recipe, value: Any) -> None:
        if isinstance(value, Inferred):
            _refuse_not_finite(value)
        gave.append((recipe.stage, _described(value)))

    try:
        opened = executor.open(plan({Arm(stack.side): stack.chain}))
        opened.walk(executor.context(item), say)
    except StageError as error:
        raise DataError(f"{error.stage}: {item.name}: {error.reason}") from error
    return gave


def _outputs(found: Inferred) -> list[tuple[str, Array]]:
    """Every output of every inference."""
    inferences = found.outputs if isinstance(found.outputs, tuple) else (found.outputs,)
    return [pair for inference in inferences for pair in inference.items()]


def _refuse_not_finite(found: Inferred) -> None:
    bad = [name for name, array in _outputs(found) if not np.isfinite(array).all()]
    if bad:
        raise ModelError(f"infer: output {', '.join(bad)} has values that are not finite")


def _described(value: Any) -> str:
    if isinstance(value, Frame):
        return f"{value.width}x{value.height} {value.format}"
    if isinstance(value, Inferred):
        return ", ".join(f"{name} {_shape(array)}" for name, array in _outputs(value))
    if isinstance(value, Raw):
        return f"{_shape(value.plane)} {value.pattern}"
    return _shape(value) if isinstance(value, np.ndarray) else "an answer"


def _shape(array: Any) -> str:
    return f"{'x'.join(map(str, array.shape))} {array.dtype}"
