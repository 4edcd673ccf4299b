"""How many faults each stratum gets, and what each fault then counts.

Neyman's allocation needs the rates that a campaign is about to find. So the first faults are a
pilot, as many in each stratum; the others go where they tell most. Pilot and main part are two
samples of the same bits, each with a fixed share of the estimate: the share of the faults that it
has. Were they pooled, a stratum in which the pilot by chance saw nothing would get few faults more
and keep that rate, and estimates would be too low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.errors import UserError
from simulator.statistics.strata import Stratum, neyman

Rule = Literal["proportional", "equal", "neyman"]
PILOT = 0.2
"""The share of a campaign's faults that is its pilot."""
LEAST = 2
"""Each stratum gets so many of the pilot at least, and so many of the rest."""
GOLDEN = (math.sqrt(5) - 1) / 2
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Which stratum a fault comes from.

    Attributes:
        rule: ``proportional``: from all bits alike; ``equal``: each stratum as often; ``neyman``:
            after a pilot each in proportion to its share times the standard deviation of its rate.
        shares: of each stratum, of all bits.
        pilot: how many faults are the pilot; 0 without one.
    """

    rule: Rule
    shares: tuple[float, ...]
    pilot: int

    @staticmethod
    def of(rule: Rule, shares: Sequence[float], faults: int, name: str) -> Allocation:
        """Return the allocation of a campaign.

        Args:
            rule: the rule.
            shares: of each stratum.
            faults: how many the campaign has, if nothing makes it longer.
            name: of the campaign, for the message.

        Raises:
            UserError: there are too few faults.
        """
        strata = len(shares)
        least = {"proportional": 0, "equal": 1, "neyman": 2 * LEAST}[rule] * strata
        if faults < least:
            why = f"which need {least}" if rule == "neyman" else "one each"
            raise UserError(
                f"{name}: faults: {faults} are too few for allocation: {rule}; there are {strata} "
                f"strata, {why}"
            )
        pilot = max(math.ceil(PILOT * faults), LEAST * strata) if rule == "neyman" else 0
        return Allocation(rule, tuple(shares), pilot)

    def stratum(self, number: int, weights: Sequence[float] | None) -> int | None:
        """Return the stratum of a fault; None where it is drawn in proportion.

        Successive places of a golden ratio's multiples fall into each stratum as often as its
        weight says, wherever one stops (Weyl).

        Args:
            number: of the fault.
            weights: of the strata, from :meth:`learnt`; needed behind the pilot.
        """
        if self.rule == "proportional":
            return None
        after, strata = number - self.pilot, len(self.shares)
        if self.rule == "equal" or after < LEAST * strata:
            return number % strata if after < 0 or self.rule == "equal" else after % strata
        assert weights is not None
        ends = np.array(list(accumulate(weights)))
        place = (after * GOLDEN) % 1 * ends[-1]
        return min(int(np.searchsorted(ends, place, side="right")), strata - 1)

    def learnt(self, stratum: Ints, sdc: NDArray[np.bool_]) -> list[float]:
        """Return the weights of the main part.

        Args:
            stratum: of each inference of the pilot.
            sdc: whether its answer was corrupted silently.
        """
        trials = np.bincount(stratum, minlength=len(self.shares))
        events = np.bincount(stratum[sdc], minlength=len(self.shares))
        found = zip(self.shares, events.tolist(), trials.tolist(), strict=True)
        return neyman([Stratum(share, event, trial) for share, event, trial in found])

    def parts(self, number: Ints, stratum: Ints, faults: int) -> tuple[Ints, list[float]]:
        """Divide inferences into samples that were drawn alike.

        Args:
            number: of the fault of each.
            stratum: of each.
            faults: how many the campaign had.

        Returns:
            The part of each inference, and the share of the estimate that each part has.
        """
        if self.rule == "proportional":
            return np.zeros_like(number), [1.0]
        if self.rule == "equal":
            return stratum, list(self.shares)
        first, strata = self.pilot / faults, len(self.shares)
        shares = [first * share for share in self.shares] + [
            (1 - first) * share for share in self.shares
        ]
        return stratum + strata * (number >= self.pilot), shares
