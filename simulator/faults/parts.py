"""A campaign divided: into parts that are made durable as a whole, and these into jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from simulator.data.folder import Item
from simulator.faults.draw import Drawn
from simulator.pipeline.jobs import Job

BLOCK = 16
"""Samples whose traces are kept at once, where the memory allows it."""
INFERENCES = 1000
"""Inferences that are lost at most when the process is killed."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One inference with a fault.

    Attributes:
        drawn: the fault.
        at: the index of the sample among those of the campaign.
        sample: its name.
    """

    drawn: Drawn
    at: int
    sample: str


Hits = tuple[Hit, ...]
"""Hits at the same sites: the rest of the network is compiled once for them."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a campaign.

    Attributes:
        name: of its file.
        jobs: each for other sites.
    """

    name: str
    jobs: tuple[Job[Hits], ...]

    @property
    def inferences(self) -> int:
        """How many there are in it."""
        return sum(len(job.argument) for job in self.jobs)


def parts(drawn: Iterable[Drawn], items: Sequence[Item], block: int) -> Iterator[Part]:
    """Divide faults: block by block of samples, and in each site by site.

    The division depends on the network, not on the order of work.

    Args:
        drawn: every fault.
        items: the samples.
        block: how many samples are a block.
    """
    blocks: dict[int, list[Hit]] = defaultdict(list)
    for one in drawn:
        for at in range(len(items)) if one.sample is None else (one.sample,):
            blocks[at // block].append(Hit(one, at, items[at].name))
    for number, hits in sorted(blocks.items()):
        hits.sort(key=lambda hit: (hit.drawn.sites, hit.drawn.number, hit.at))
        for part, start in enumerate(range(0, len(hits), INFERENCES)):
            jobs = _jobs(hits[start : start + INFERENCES], items)
            yield Part(f"{block:02}-{number:06}-{part:05}", tuple(jobs))


def _jobs(hits: Sequence[Hit], items: Sequence[Item]) -> Iterator[Job[Hits]]:
    """One job for each group of sites; every one may read the first sample of all."""
    for _, same in groupby(hits, key=lambda hit: hit.drawn.sites):
        own = tuple(same)
        samples = sorted({0, *(hit.at for hit in own)})
        yield Job(tuple(items[at] for at in samples), own)
