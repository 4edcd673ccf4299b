"""What a stack says of a question of several choices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Chosen:
    """What one stack says of one question.

    Attributes:
        loglikelihoods: of the choices, in their order.
        lengths: characters of each choice, by which acc_norm divides; None where it is not asked.
        texts: the choices in words; empty where no tokenizer is known.
    """

    loglikelihoods: tuple[float, ...]
    lengths: tuple[int, ...] | None = None
    texts: tuple[str, ...] = field(default=(), compare=False)

    @property
    def answer(self) -> int:
        """The most likely choice; of equal ones the first."""
        return int(np.argmax(self.loglikelihoods))

    @property
    def answer_norm(self) -> int | None:
        """The choice with the largest log-likelihood for each character."""
        if self.lengths is None:
            return None
        return int(np.argmax(np.divide(self.loglikelihoods, self.lengths)))

    @property
    def margin(self) -> float:
        """The log-likelihood of the answer less the runner-up's; 0 where there is none."""
        ordered = sorted(self.loglikelihoods)
        return ordered[-1] - ordered[-2] if len(ordered) > 1 else 0.0
