"""Networks that take a waveform in chunks, one inference each, and carry a state over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.modalities.audio.card import Chunk
from simulator.modalities.modality import Feed

_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)


def feeds(chunk: Chunk) -> tuple[Feed, ...]:
    """Return the chunk with its context, the carried inputs and the constants."""
    carried = (Feed(name, _F32, tuple(one.shape)) for name, one in chunk.carried.items())
    constants = (Feed(name, _I64, (), fill=value) for name, value in chunk.constants.items())
    return Feed(chunk.input, _F32, (1, chunk.context + chunk.size), "NS"), *carried, *constants


@dataclass(frozen=True, eq=False)
class Chunks(Recipe):
    """Cuts a waveform into the inputs of several inferences.

    Attributes:
        chunk: as the card says.
    """

    chunk: Chunk
    stage = "normalize"
    operation = "chunks"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function from (1, N) to a tuple of mappings, at least one."""
        size, context = self.chunk.size, self.chunk.context
        states = {n: np.zeros(carried.shape, _F32) for n, carried in self.chunk.carried.items()}
        others = states | {
            n: np.array(constant, _I64) for n, constant in self.chunk.constants.items()
        }

        def apply(waveform: Array, _: Context) -> tuple[Mapping[str, Array], ...]:
            samples = waveform.reshape(-1)
            count = max(-(-samples.size // size), 1)
            whole = np.pad(samples, (context, count * size - samples.size))
            return tuple(
                {self.chunk.input: whole[None, at : at + context + size].copy(), **others}
                for at in range(0, count * size, size)
            )

        return apply

    def words(self) -> str:
        """Return the sizes."""
        return f"chunks of {self.chunk.size}, {self.chunk.context} before each"
