"""What a campaign did to one stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from simulator.contract.injection import Injector
from simulator.data.folder import Item
from simulator.faults.draw import Population
from simulator.pipeline.stack import Stack
from simulator.profile.section import Section
from simulator.tasks.score import Record


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a campaign did to one stack.

    Attributes:
        stack: the stack.
        injector: what put faults into it.
        population: what they were drawn from.
        items: the samples.
        clean: their records without faults.
        sizes: rows and columns of each; None where they are no images.
        rows: of the inferences with faults.
        per_second: inferences; None where some were done by an earlier attempt.
        options: of the task's verdicts.
    """

    stack: Stack
    injector: Injector
    population: Population
    items: Sequence[Item]
    clean: Sequence[Record]
    sizes: Sequence[tuple[int, int] | None]
    rows: pa.Table
    per_second: float | None
    options: Section
