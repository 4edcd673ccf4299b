"""In which chunks a stack hears speech."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Voiced:
    """The answer for one sound.

    Attributes:
        speech: for each chunk whether it is speech.
        probabilities: (chunks,) float64, from 0 to 1.
    """

    speech: tuple[bool, ...]
    probabilities: NDArray[np.float64] = field(compare=False, repr=False)


def answer(*speech: bool) -> Voiced:
    """Return sure decisions."""
    return Voiced(speech, np.array(speech, np.float64))
