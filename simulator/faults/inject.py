"""The inferences of a campaign on one stack: block by block of samples, layer by layer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract import Array, Runtime, Stage
from simulator.contract.injection import BitFault, Injector, Suffix, Trace
from simulator.contract.recipe import Boundary, Context
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, Unsupported, UserError, one_line
from simulator.faults.draw import Drawn
from simulator.faults.verdict import Golden, Row, Sample, Verdicts, equal, size_of
from simulator.pipeline.executor import Executor
from simulator.pipeline.inference import Answer, Infer
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Stack
from simulator.profile.section import Section
from simulator.tasks.impact import Impact
from simulator.tasks.task import Task

BLOCK = 16
"""Samples whose traces are kept at once, where the memory allows it."""
JOBS = 1000
"""Inferences that are lost at most when the process is killed."""
CHANNELS = 64
"""In so many channels of a layer the canary flips a weight, all at once."""


@dataclass(frozen=True, slots=True)
class Work:
    """One part of a campaign, which is made durable as a whole.

    Attributes:
        name: of its file.
        samples: the indices of the samples.
        jobs: each a fault and the index of a sample.
    """

    name: str
    samples: tuple[int, ...]
    jobs: tuple[tuple[Drawn, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A sample on the way: what inferences with faults start from and are compared with."""

    sample: Sample
    trace: Trace
    golden: Golden


def injector_of(stack: Stack) -> Injector:
    """Open what puts faults into a stack's artifact.

    Raises:
        Unsupported: nothing reaches this runtime or this artifact; the message says why.
    """
    choice = stack.choices[Stage.RUNTIME]
    maker: Any = choice.offer.make
    if not (isinstance(maker, type) and issubclass(maker, Runtime)):
        raise Unsupported(f"{stack.side}: no faults can be put into {choice.backend.name}")
    try:
        return registry.injector(choice.backend, choice.offer, stack.artifact.path, choice.options)
    except Unsupported as error:
        raise Unsupported(f"{stack.side}: {choice.backend.name}: {error}") from error


class Injection:
    """Faulty inferences of one stack.

    Args:
        stack: the stack.
        injector: puts faults into its artifact; the caller closes it.
        task: judges the answers.
        options: of the task's verdicts, see :meth:`simulator.faults.campaign.Campaign.options`.
        executor: runs the steps before the network.
        workers: how many layers are worked on at once.
    """

    def __init__(
        self,
        stack: Stack,
        injector: Injector,
        task: Task,
        options: Section,
        executor: Executor,
        workers: int,
    ) -> None:
        self.stack, self.injector = stack, injector
        self._executor, self._workers = executor, workers
        infer, answer = stack.chain.recipes[-2:]
        assert isinstance(infer, Infer)
        assert isinstance(answer, Answer)
        self._infer, self._verdicts = infer, Verdicts(task, options, infer, answer)
        self._before = executor.open(plan({Arm(stack.side): stack.chain.until(Boundary.INPUT)}))
        self._exact: dict[tuple[int, ...], bool] = {}

    def works(
        self, drawn: Iterable[Drawn], samples: int, first: Item, memory: int
    ) -> Iterator[Work]:
        """Divide a campaign into parts; the division depends on the network, not on the order.

        Args:
            drawn: every fault.
            samples: how many there are.
            first: a sample, to measure how large its trace is.
            memory: bytes for the traces of a block.
        """
        size = self._block(first, memory)
        blocks: dict[int, list[tuple[Drawn, int]]] = defaultdict(list)
        for one in drawn:
            hit = range(samples) if one.sample is None else (one.sample,)
            for sample in hit:
                blocks[sample // size].append((one, sample))
        for block in sorted(blocks):
            jobs = sorted(blocks[block], key=lambda job: (job[0].sites, job[0].number, job[1]))
            for part, start in enumerate(range(0, len(jobs), JOBS)):
                these = tuple(jobs[start : start + JOBS])
                wanted = tuple(sorted({sample for _, sample in these}))
                yield Work(f"{size:02}-{block:06}-{part:05}", wanted, these)

    def size(self, item: Item) -> tuple[int, int] | None:
        """Return the rows and columns of a sample; None where it is no image."""
        return size_of(self._executor.context(item).source)

    def _block(self, first: Item, memory: int) -> int:
        try:
            trace = self.injector.trace(self._feeds(self._value(self._executor.context(first))))
        except SampleError:
            return 1
        size = sum(array.nbytes for array in trace.values())
        return int(np.clip(memory // max(size, 1), 1, BLOCK))

    def rows(self, work: Work, items: Sequence[Item]) -> list[Row]:
        """Return a row for each inference of a part, in the order of faults and samples.

        Raises:
            ModelError: the runtime cannot run the network.
        """
        ready: dict[int, _Ready | str] = {at: self._ready(items[at]) for at in work.samples}
        by_sites: dict[tuple[int, ...], list[tuple[Drawn, int]]] = defaultdict(list)
        for job in work.jobs:
            by_sites[job[0].sites].append(job)
        with ThreadPoolExecutor(self._workers, thread_name_prefix="fault") as pool:
            parts = pool.map(lambda one: self._at(one[0], one[1], items, ready), by_sites.items())
            found = [row for part in parts for row in part]
        return sorted(found, key=lambda row: (row["fault"], row["at"]))

    def again(self, drawn: Drawn, item: Item) -> tuple[Impact, Any] | None:
        """Run one inference with faults again.

        Returns:
            What judges it, which holds the answer without the faults, and the answer with them;
            None where there is none.
        """
        one = self._ready(item)
        if isinstance(one, str):
            return None
        with self.injector.at(*(self.injector.sites[index] for index in drawn.sites)) as rest:
            golden = self._golden(drawn.sites, rest, one)
            found = self._verdicts.answer(one.sample, rest.run(one.trace, drawn.faults))
        return None if found.due else (golden.impact, found.prediction)

    def canary(self, sites: Iterable[int], items: Sequence[Item]) -> None:
        """Make sure that a changed weight of each layer changes an output.

        The highest bits of the largest weights are flipped at once, on up to three samples; each
        weight is of another channel, because a channel that a sample leaves at 0 hides them all.

        Args:
            sites: the indices of those that hold weights.
            items: samples.

        Raises:
            Unsupported: a layer's weights are copied where no flip reaches them.
        """
        ready = [one for item in items[:3] if isinstance(one := self._ready(item), _Ready)]
        if not ready:
            return
        for index in sites:
            site = self.injector.sites[index]
            largest = _largest(self.injector.stored(site))
            faults = tuple(BitFault(at, site.bits - 1) for at in largest)
            with self.injector.at(site) as rest:
                if not any(_changes(rest, faults, one) for one in ready):
                    raise Unsupported(
                        f"{self.stack.side}: a flipped bit of the {site.target} of {site.layer!r} "
                        f"changes no output ({self.injector.method}); name other layers"
                    )

    def _value(self, context: Context) -> Any:
        (value,) = self._before.walk(context).answers()
        return value

    def _feeds(self, value: Any) -> Mapping[str, Array]:
        if isinstance(value, tuple):
            raise UserError("faults are for networks that run once a sample")
        return self._infer.feeds(value)

    def _ready(self, item: Item) -> _Ready | str:
        """Trace a sample; or why it is skipped."""
        try:
            context = self._executor.context(item)
            sample = self._verdicts.sample(context)
            trace = self.injector.trace(self._feeds(self._value(context)))
            golden = self._verdicts.golden(self.injector.golden(trace), sample)
            return _Ready(sample, trace, golden)
        except SampleError as error:
            return str(error)
        except UserError:
            raise
        except Exception as error:  # a runtime may raise anything
            raise ModelError(f"{self.stack.side}: {one_line(error)}") from error

    def _at(
        self,
        sites: tuple[int, ...],
        jobs: Sequence[tuple[Drawn, int]],
        items: Sequence[Item],
        ready: Mapping[int, _Ready | str],
    ) -> list[Row]:
        """All inferences with faults at the same sites."""
        rows: list[Row] = []
        goldens: dict[int, Golden] = {}
        with self.injector.at(*(self.injector.sites[index] for index in sites)) as rest:
            for drawn, at in jobs:
                row, one = self._fault(drawn, at, items[at].name), ready[at]
                if isinstance(one, str):
                    rows.append(row | {"skipped": one})
                    continue
                if at not in goldens:
                    goldens[at] = self._golden(sites, rest, one)
                faulty = rest.run(one.trace, drawn.faults)
                rows.append(row | self._verdicts.row(one.sample, goldens[at], faulty))
        return rows

    def _golden(self, sites: tuple[int, ...], rest: Suffix, one: _Ready) -> Golden:
        """The inference without faults by the same code; that of the trace if bits are equal."""
        if self._exact.get(sites):
            return one.golden
        own = rest.run(one.trace)
        self._exact[sites] = equal(own.outputs, one.golden.run.outputs)
        return one.golden if self._exact[sites] else self._verdicts.golden(own, one.sample)

    def _fault(self, drawn: Drawn, at: int, name: str) -> Row:
        hit = [self.injector.sites[drawn.sites[one.site]] for one in drawn.faults]
        return {
            "fault": drawn.number, "stack": self.stack.side, "at": at, "sample": name,
            "layer": [site.layer for site in hit], "operator": [site.operator for site in hit],
            "target": [str(site.target) for site in hit],
            "storage": [site.storage for site in hit], "stratum": drawn.stratum, "skipped": None,
            "index": [one.index for one in drawn.faults], "bit": [one.bit for one in drawn.faults],
            "kind": str(drawn.faults[0].kind),
        }  # fmt: skip


def _largest(values: Array) -> list[int]:
    """The places of the largest value of each slice of the first axis, the largest ones first."""
    sizes = np.abs(values.astype(np.float64)).reshape(len(values) if values.ndim else 1, -1)
    places = sizes.argmax(axis=1) + np.arange(len(sizes)) * sizes.shape[1]
    order = np.argsort(-sizes.max(axis=1), kind="stable")[:CHANNELS]
    return [int(place) for place in places[order]]


def _changes(rest: Suffix, faults: Sequence[BitFault], sample: _Ready) -> bool:
    golden, faulty = rest.run(sample.trace), rest.run(sample.trace, faults)
    return faulty.finite != golden.finite or not equal(golden.outputs, faulty.outputs)
