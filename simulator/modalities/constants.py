"""Further inputs of a network, the same for every sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Apply, Boundary, Recipe, Runtimes
from simulator.modalities.modality import Feed
from simulator.profile.section import Finite, Section


class Constant(Section):
    """An input that every sample has alike.

    Attributes:
        value: a number, a list of numbers, or rows of them.
        dtype: of the input.
    """

    value: Finite | list[Finite] | list[list[Finite]]
    dtype: Literal["float32", "int64", "int32"]

    @property
    def array(self) -> Array:
        """The numbers, in the type of the input."""
        return np.array(self.value, self.dtype)


def feeds(constants: Mapping[str, Constant]) -> tuple[Feed, ...]:
    """Return the inputs; a runtime is tried with what they are."""
    made = {name: one.array for name, one in constants.items()}
    return tuple(
        Feed(name, array.dtype, array.shape, fill=array.tolist()) for name, array in made.items()
    )


@dataclass(frozen=True, eq=False)
class AddConstants(Recipe):
    """Puts the further inputs beside that of the sample.

    Attributes:
        name: of the sample's input, where it comes without one.
        constants: the others.
    """

    name: str
    constants: Mapping[str, Constant]
    stage = "constants"
    gives: ClassVar[Boundary] = Boundary.INPUT
    timed = False

    def identity(self) -> Any:
        """Return the names and the numbers."""
        given = {name: one.model_dump() for name, one in self.constants.items()}
        return ["constants", self.name, given]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        made = {name: one.array for name, one in self.constants.items()}

        def apply(value: Any, _: Any) -> Mapping[str, Array]:
            return {**(value if isinstance(value, dict) else {self.name: value}), **made}

        return apply


def beside(name: str | None, constants: Mapping[str, Constant]) -> list[Recipe]:
    """Return the step that adds constants; none where there are none."""
    return [AddConstants(str(name), constants)] if constants else []
