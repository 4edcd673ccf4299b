"""Jobs: work on some samples that is no walk down a plan, and that an executor spreads.

As a recipe, a step of jobs is data: it can be pickled and sent to another process, where it is
opened once. :meth:`simulator.pipeline.executor.Executor.map` gives the results in the order of the
jobs, whoever does them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from simulator.contract.recipe import Context, Recipe
from simulator.data.folder import Item
from simulator.pipeline.runtimes import RuntimePool

J = TypeVar("J")
R = TypeVar("R")

Read = Callable[[str], Context]
"""Reads a sample of a job by its name; :class:`simulator.errors.SampleError` where it cannot."""
Do = Callable[[J, Read], R]
"""Does one job; several threads may call it at once. It raises no error of a sample."""


@dataclass(frozen=True, slots=True)
class Job(Generic[J]):
    """One job.

    Attributes:
        samples: those that it may read.
        argument: what is to do with them; plain data.
    """

    samples: tuple[Item, ...]
    argument: J


class JobStep(ABC, Generic[J, R]):
    """What is done in every job; plain data, opened once in each process.

    Attributes:
        who: the stack that it belongs to, for messages and the manifest.
    """

    who: str

    @property
    @abstractmethod
    def recipes(self) -> tuple[Recipe, ...]:
        """The steps of that stack; a worker has their libraries and their resources."""

    @abstractmethod
    def open(self, runtimes: RuntimePool) -> Do[J, R]:
        """Open it in this process; what it opens belongs to *runtimes*."""
