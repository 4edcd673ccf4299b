"""What stands between a network's outputs and a task's answers: the model card, and settings."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from simulator.data.labels import Labels


@dataclass(frozen=True, slots=True)
class Network:
    """What a task has to know of the model around its outputs.

    Attributes:
        labels: the classes; None where the card has no label file.
        input: the card's ``input`` section, as its modality defines it.
        folder: of the card; files that its ``output`` section names are relative to it.
    """

    labels: Labels | None = None
    input: Any = None
    folder: Path = Path()

    @property
    def classes(self) -> int:
        """How many classes there are, for tasks whose cards must name them."""
        assert self.labels is not None
        return len(self.labels)

    def label(self, index: int) -> str:
        """Return a class's name, or its index where the card names no label file."""
        return self.labels.name(index) if self.labels else str(index)


class Settings(Protocol):
    """How outputs become answers: what the card says, and what the profile says instead."""

    def identity(self) -> Any:
        """Return what tells these settings from others; JSON."""


@dataclass(frozen=True, slots=True)
class CardSettings:
    """The settings of a task for which a profile's ``postprocess`` has no field.

    Attributes:
        output: the card's ``output`` section.
    """

    output: BaseModel

    def identity(self) -> Any:
        """Return the content of the section."""
        return self.output.model_dump(mode="json")


class FollowUpInference(Protocol):
    """Inferences of one sample, each made of what came before; plain data."""

    @property
    def is_cached(self) -> bool:
        """Whether an inference takes new tokens only: the network gives state, or is stateful."""

    @property
    def moves(self) -> bool:
        """Whether kept tokens get other positions, which the runtime has to do."""

    @property
    def neighbours(self) -> int:
        """How many other samples share its inferences; :meth:`steps` then takes a list of feeds."""

    def identity(self) -> Any:
        """Return what its inferences depend on besides the sample and the network; JSON."""

    def steps(self, feeds: Any, placement: Any) -> Generator[Any, Any, Any]:
        """Yield what each inference takes, be sent its outputs, and return those to keep.

        Args:
            feeds: what the front end made of the sample.
            placement: see :meth:`Task.decode`.

        Returns:
            A tuple of mappings, one for each inference, as :meth:`Task.decode` takes it.
        """


class Handover(Protocol):
    """What a card's second network takes, made of the outputs of the first; plain data."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Its inputs that :meth:`Task.decode` gets beside its outputs."""

    def identity(self) -> Any:
        """Return what it depends on besides the outputs and the placement; JSON."""

    def feeds(self, outputs: Any, placement: Any) -> Any:
        """Return the second network's inputs by name.

        Args:
            outputs: of the first network, by the names of :meth:`Task.handed`.
            placement: see :meth:`Task.decode`.
        """


class Beside(Protocol):
    """What a card's second network is run on, once a stack; plain data.

    The first network's outputs are then joined with what it gave.
    """

    def identity(self) -> Any:
        """Return all that it depends on besides the networks; JSON."""

    def feeds(self) -> tuple[Any, ...]:
        """Return what the second network takes; a tuple stands for several inferences."""

    def joining(self, found: Any) -> Callable[[Any], Any]:
        """Return what makes what :meth:`Task.decode` takes of the first network's outputs.

        Args:
            found: what the second network gave for each of :meth:`feeds`.
        """


class BackEnd(Protocol):
    """A step between a network's outputs and what a task reads; plain data."""

    @property
    def stage(self) -> str:
        """Its name in the stage table."""

    @property
    def choice(self) -> Any:
        """The implementation that it uses."""

    def identity(self) -> Any:
        """Return all that it depends on besides the outputs; JSON."""

    def open(self) -> Callable[[Any], Any]:
        """Return what makes a mapping of outputs of another; this imports its library."""
