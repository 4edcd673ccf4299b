"""Tries code that makes a network's input, and says what it is or what is done to its tensors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from simulator.command.allowed import GivesOtherwise
from simulator.contract import Array, Stage
from simulator.contract.recipe import Runtimes
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, UserError
from simulator.modalities.modality import Feed, Placing
from simulator.model.artifact import digest
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.pipeline.fitted import as_outputs, changes, fitted
from simulator.pipeline.listed import Tensors
from simulator.pipeline.own_front_end import asking, called, rows_of
from simulator.pipeline.walk import context_of
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile

TRIED = 3
"""Samples that code may refuse before it is taken to refuse all."""
LONG = 30.0
"""Seconds after which no other is tried."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Tries each front end that is not ours once, on the first samples.

    Attributes:
        card: the model card.
        source: its checked ONNX file.
        runtimes: have the workers of the front ends.
        known: what is done to the tensors of each front end that was tried.
    """

    card: Card
    source: ModelFile
    runtimes: Runtimes
    known: dict[str, list[str]] = field(default_factory=dict)

    def remarks(self, profile: Profile, choices: Choices, items: Sequence[Item]) -> list[str]:
        """Return what users should know of a stack whose front end is not ours."""
        choice = choices.get(Stage.FRONT_END)
        if choice is None:
            return []
        lines = []
        if self.card.task.in_pixels:
            lines.append(
                "where its pixels lie, and so its boxes or masks, is taken from the sections that "
                "describe it: geometry, and exif of decode"
            )
        if choice.offer.make.runs_code:
            lines += self._changes(profile, choice, items)
        return lines

    def _changes(self, profile: Profile, choice: Choice, items: Sequence[Item]) -> list[str]:
        """What is done to the tensors of a front end that is code to fit them."""
        key = digest(choice.identity())
        if key not in self.known:
            try:
                at = self.card.modality.placing(profile, self.card.spec)
                placing = at if self.card.task.in_pixels else None
                found = tried(choice, self.card, self.source, items, self.runtimes, placing)
            except GivesOtherwise as error:
                error.reference = profile.where(())
                raise
            self.known[key] = changes(found, self.card.modality.feeds(self.card.spec))
        return [f"{called(choice)} gives {change}" for change in self.known[key]]


def tried(
    choice: Choice,
    card: Card,
    source: ModelFile,
    items: Sequence[Item],
    runtimes: Runtimes,
    placing: Placing | None,
) -> Tensors:
    """Return what a front end that is not ours makes of the first sample that it takes.

    Args:
        choice: the front end.
        card: the model card.
        source: its checked ONNX file.
        items: the samples; the first few are tried.
        runtimes: have its workers.
        placing: gives the position of a sample in the input, where answers depend on it.

    Raises:
        UserError: it takes none of them, or what it makes does not fit the network.
        GivesOtherwise: it is what the network gives, or an answer.
    """
    call, name, why = asking(choice, runtimes), called(choice), ""
    if said := runtimes.apart(choice, "gives")(None):
        raise _otherwise(name, said)
    feeds, start = card.modality.feeds(card.spec), time.monotonic()
    for item in items[:TRIED]:
        try:
            context = context_of(card.modality, item)
            found = call(context)
        except SampleError as error:
            why = why or str(error)
            if time.monotonic() - start > LONG:
                break
            continue
        try:
            made = fitted(found, feeds)
        except SampleError as error:
            gives = _given_instead(name, found, card, source)
            if gives is None:
                raise UserError(f"{name} {error}") from error
            raise _otherwise(name, gives) from error
        if placing and None in feeds[0].shape:
            first = next(iter(made.values())) if isinstance(made, Mapping) else made
            _refuse_misplaced(name, item, first, feeds[0], placing(context.source))
        return found
    raise UserError(why)


def _refuse_misplaced(name: str, item: Item, found: Array, feed: Feed, at: Any) -> None:
    """Refuse an input of another size than that in which boxes and masks are placed."""
    rows, columns = (found.shape[feed.axes.index(axis)] for axis in "HW")
    if (rows, columns) != (at.network_height, at.network_width):
        raise UserError(
            f"{name} gives {rows}x{columns} (rows x columns) for {item.name}, and the stack's "
            f"geometry, by which answers are placed, {at.network_height}x{at.network_width}; write "
            f"the code's into geometry, for example input_size: {{kind: fixed, sizes: [[{rows}, "
            f"{columns}]]}}"
        )


def _otherwise(name: str, gives: str) -> GivesOtherwise:
    what = {"outputs": "the network's outputs", "answer": "an answer"}.get(gives, repr(gives))
    return GivesOtherwise(f"{name} gives {what}: write {name}:{gives}", name, gives)


def _given_instead(name: str, found: Tensors, card: Card, source: ModelFile) -> str | None:
    """What it is that does not fit the network's input; None where it is nothing else either."""
    with suppress(SampleError, ModelError):
        as_outputs(found, source.wanted(card))
        return "outputs"
    try:
        card.task.given(rows_of(found))
    except (SampleError, UserError) as error:
        if not isinstance(found, Mapping) and found.dtype.kind == "U":  # text is nothing else
            raise UserError(f"{name} {error}") from error
        return None
    return "answer"
