"""A modality: what a sample is, and the way from it to the network's inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from pydantic import BaseModel

from simulator.contract import Array
from simulator.contract.recipe import Recipe
from simulator.entry_points import Table
from simulator.errors import UserError
from simulator.modalities.specimen import Specimen
from simulator.profile.implementations import Choices
from simulator.profile.load import Profile
from simulator.profile.schema import ProfileSpec


@dataclass(frozen=True, slots=True)
class Feed:
    """One input of a network, as a card and its modality make it.

    Attributes:
        name: of the input; None where the network has one input, whatever it is called.
        dtype: of the array.
        shape: of one sample's array, the batch of 1 included; None where the sample decides.
        axes: what people call the order of its axes, for messages; for example ``NCHW``.
    """

    name: str | None
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    axes: str = ""


class Placing(Protocol):
    """Where a sample comes to lie in the network's input, by the rules of a stack; plain data."""

    def identity(self) -> Any:
        """Return what tells these rules from others; JSON."""

    def __call__(self, source: Any) -> Any:
        """Return what a task must know to bring answers back to the sample.

        Raises:
            SampleError: this sample cannot be placed.
        """


class Modality(ABC):
    """One kind of sample. An instance is found by entry point, group ``simulator.modalities``.

    Attributes:
        name: as profiles and cards write it.
        unit: one sample, in the singular, for people.
        suffixes: the ends of the names of files that are samples, in lower case with the dot.
    draws: ClassVar[bool] = False
    levels: ClassVar[str] = "units"
        Spec: the schema of its profiles; its ``problems`` and ``settled`` say what fits together.
        Card: the schema of its model cards.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    draws: ClassVar[bool] = False
    levels: ClassVar[str] = "units"
    Spec: ClassVar[type[ProfileSpec]]
    Card: ClassVar[type[BaseModel]]

    @abstractmethod
    def read(self, name: str, path: Path) -> Any:
        """Read the source of a sample and check it.

        Args:
            name: what messages call the sample.
            path: where it is.

        Raises:
            SampleError: it cannot be read, or is no sample of this kind.
        """

    @abstractmethod
    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return what the network must take.

        Args:
            card: the checked content of the model card.
        """

    @abstractmethod
    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the source to the network's input.

        The last one gives :attr:`Boundary.INPUT`: an array where the network has one input, else
        a mapping of names to arrays; a tuple of these where one sample needs several inferences.

        Args:
            profile: the stack.
            choices: the implementations behind it.
            card: the checked content of the model card.

        Raises:
            ModelError: the profile does not fit the card.
        """

    @abstractmethod
    def placing(self, profile: Profile, card: Any) -> Placing:
        """Return the rules by which samples come to lie in the network's input."""

    def postprocess(self, profile: Profile, card: Any) -> Any:
        """Return what the profile asks of the postprocessing, less what has no effect here."""
        return profile.spec.postprocess

    def problems(self, profile: Profile, choices: Choices) -> list[str]:
        """Return a line for everything in a profile that its backends cannot do together."""
        return []

    def scale(self, profile: Profile, card: Any) -> Array:
        """Return what differences of two inputs are multiplied by, to be told to people."""
        return np.ones(1)

    def memory(self, source: Any) -> int:
        """Return about how many bytes a library needs at work on a sample, besides its result."""
        return 0

    def sizes(self, source: Any) -> dict[str, int]:
        """Return a sample's measures for tables; ``bytes`` among them."""
        return {"bytes": len(source.data)}

    def specimen(self, folder: Path) -> Specimen:
        """Write into a folder what the conformance suite tries this modality with.

        Raises:
            UserError: its author has written none.
        """
        raise UserError(
            f"the modality {self.name!r} brings nothing to try it with; write its specimen(), see "
            "docs/conformance.md"
        )


MODALITIES: Table[Modality] = Table(
    "simulator.modalities", "modality", lambda found: isinstance(found, Modality)
)
