"""What a stack says of a query and the texts after it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ordered:
    """What one stack says of one sample.

    Attributes:
        order: the texts after the query, the nearest first; of equal ones the first first.
        cosines: of each text to the query, in the texts' own order.
        vectors: (texts + 1, size) float64 of length 1, the query's first.
    """

    order: tuple[int, ...]
    cosines: tuple[float, ...]
    vectors: NDArray[np.float64] = field(compare=False, repr=False)
