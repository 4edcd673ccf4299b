"""What a stack says aloud."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """The answer for one text.

    Attributes:
        samples: (N,) float32, full scale -1 to 1.
        rate: samples a second.
        durations: frames of each phoneme; None where the model does not tell.
    """

    samples: NDArray[np.float32] = field(repr=False)
    rate: int
    durations: tuple[int, ...] | None = None
