"""Where the time of a call went, as results have it."""

from __future__ import annotations

from simulator.results.manifest import Spent, TimeSpent
from simulator.spent import Mark, Work, since


def time_spent(begun: Mark, workers: int) -> TimeSpent:
    """Return what was spent since a moment.

    Args:
        begun: the moment.
        workers: samples in flight.
    """
    wall, cpu, found = since(begun)
    order = list(Work)
    rows = sorted(found.items(), key=lambda one: (order.index(one[0].work), -one[1]))
    steps = sum(seconds for row, seconds in rows if row.work is Work.STEPS)
    return TimeSpent(
        seconds=round(wall, 3),
        cpu_seconds=round(cpu, 3),
        workers=workers,
        libraries=round(steps / wall, 4) if wall else 0.0,
        spent=[
            Spent(
                work=row.work.value,
                stage=row.stage or None,
                stacks=row.stacks or None,
                seconds=round(seconds, 4),
            )
            for row, seconds in rows
        ],
    )
