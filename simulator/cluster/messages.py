"""What the driver and its workers tell each other; plain data that can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from simulator.data.folder import Item
from simulator.data.masks import MaskTruth
from simulator.files import LARGE
from simulator.modalities.modality import Modality
from simulator.pipeline.inference import Answered
from simulator.pipeline.jobs import JobStep
from simulator.pipeline.plan import Plan
from simulator.pipeline.walk import StageError, Watch
from simulator.places import ByteSource, InMemory, size_of

Versions = tuple[tuple[str, str | None], ...]
"""Of libraries, by their distribution."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker is to do with every sample.

    Attributes:
        plan: the arms that run on this worker, and every aside.
        modality: reads the samples.
        watch: called where the worker has all arms; None without one.
        apart: whether other arms run on other workers, so that the answers are judged elsewhere.
        versions: of the libraries that the arms use, by backend, where the plan was made.
    """

    plan: Plan
    modality: Modality
    watch: Watch | None
    apart: bool
    versions: Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class JobWork:
    """What a worker is to do in every job.

    Attributes:
        step: what it is.
        modality: reads the samples.
        versions: of the libraries that the stack uses, by backend, where the step was made.
    """

    step: JobStep[Any, Any]
    modality: Modality
    versions: Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample on its way to a worker.

    Attributes:
        item: the sample.
        size: bytes of its file; 0 if it is no file of its own; None: the driver cannot read it.
        data: its bytes, where the worker cannot read them; else None.
    """

    item: Item
    size: int | None
    data: InMemory | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """Where a worker runs.

    Attributes:
        host: the name of the machine.
        node: Ray's name of the node.
        processor: the model.
        python: the version.
        versions: there, of the libraries that its arms use.
    """

    host: str
    node: str
    processor: str
    python: str
    versions: Versions


@dataclass(frozen=True, slots=True)
class ArmAnswers:
    """The answers of some arms for a sample, with the times of their stages in ns.

    Attributes:
        answers: None for an arm that failed.
        times: of every arm.
        failed: which stage of an arm failed, and why, by the arm.
    """

    answers: tuple[Answered | None, ...]
    times: tuple[dict[str, int], ...]
    failed: Mapping[int, StageError]


class UnseenError(Exception):
    """A sample cannot be read where the worker runs."""


def sample_of(item: Item) -> Sample:
    """Return a sample that the worker reads where it is."""
    place = item.path
    return Sample(item, 0 if isinstance(place, ByteSource) else size_of(place))


def with_data(sample: Sample) -> Sample:
    """Return a sample with its bytes, and those of its mask."""
    item = sample.item
    if isinstance(item.truth, MaskTruth):
        with suppress(OSError):  # whoever judges says why it cannot be read
            item = replace(item, truth=item.truth.carried())
    try:
        return replace(sample, item=item, data=InMemory.of(item.path, LARGE))
    except OSError:  # the worker says why it cannot be read
        return replace(sample, size=None)
