"""Adversaries: published searches for small changes that make a classifier answer wrongly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from simulator.contract.backend import Implementation
from simulator.contract.gradients import Pull
from simulator.errors import SampleError, one_line

F32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Victim:
    """A classifier, as a function of the pixels that may change.

    Attributes:
        logits: from (H, W, 3) float32 in [0, 1] to (C,) float32.
        at: the same, and the way back from a derivative by the logits to one by the pixels; None
            where only answers can be had.
    """

    logits: Callable[[F32], F32]
    at: Callable[[F32], tuple[F32, Pull]] | None = None


class Adversary(Implementation):
    """One search with its settings. It may be used by several threads at once.

    Args:
        options: ``part``, the name of the search; ``norm``: ``linf``, ``l2`` or ``l1``; and
            ``steps`` of one that follows gradients, or ``queries`` of one that does not.
    """

    @final
    def attacked(self, clean: F32, truth: int, victim: Victim, budget: float, seed: int) -> F32:
        """Return pixels that the victim answers wrongly, or the best that was found.

        Args:
            clean: (H, W, 3) float32 in [0, 1], which the victim answers correctly.
            truth: the right class.
            victim: with ``at``, unless the search needs answers only.
            budget: how far the result may be from *clean* in the norm; it may be further by the
                rounding of float32.
            seed: equal seeds give equal pixels, in any order and any number of threads.

        Raises:
            SampleError: the search cannot work on such an image or model.
        """
        try:
            found = self._attacked(clean, truth, victim, budget, seed)
        except SampleError:
            raise
        except Exception as error:  # a library may raise anything
            raise SampleError(f"{self.options['part']}: {one_line(error)}") from error
        if found.shape != clean.shape or not np.isfinite(found).all():
            raise SampleError(f"{self.options['part']} gave no image")
        return np.ascontiguousarray(found, np.float32)

    @abstractmethod
    def _attacked(
        self, clean: F32, truth: int, victim: Victim, budget: float, seed: int
    ) -> F32: ...
