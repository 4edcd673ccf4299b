"""Inferences with faults on one stack: a step of jobs, each for the faults at some sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from simulator.contract import Array, Runtime
from simulator.contract.injection import BitFault, Injector, Suffix, Trace
from simulator.contract.recipe import Boundary, Chain, Recipe
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, Unsupported, UserError, one_line
from simulator.faults.parts import BLOCK, Hit, Hits
from simulator.faults.verdict import Golden, Row, Sample, Verdicts, equal
from simulator.pipeline.executor import DEFAULT_MEMORY
from simulator.pipeline.inference import Answer, Infer
from simulator.pipeline.jobs import JobStep, Read
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Opened
from simulator.profile.section import Section
from simulator.tasks.impact import Impact
from simulator.tasks.task import Task

CHANNELS = 64
"""In so many channels of a layer the canary flips a weight, all at once."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A sample on the way: what inferences with faults start from and are compared with."""

    sample: Sample
    trace: Trace
    golden: Golden


def injector_of(side: str, chain: Chain, runtimes: RuntimePool) -> Injector:
    """Return what puts faults into a stack's artifact, opened once in this process.

    Args:
        side: the stack.
        chain: its steps.
        runtimes: the injector stays open with them.

    Raises:
        Unsupported: nothing reaches this runtime or this artifact; the message says why.
    """
    infer, _ = _ends(chain)
    choice = infer.choice
    maker: Any = choice.offer.make
    if not (isinstance(maker, type) and issubclass(maker, Runtime)):
        raise Unsupported(f"{side}: no faults can be put into {choice.backend.name}")
    try:
        return runtimes.injector(choice, infer.artifact)
    except Unsupported as error:
        raise Unsupported(f"{side}: {choice.backend.name}: {error}") from error


@dataclass(frozen=True, eq=False)
class Injection(JobStep[Hits, list[Row]]):
    """Inferences with faults on one stack.

    Attributes:
        who: the stack.
        chain: its steps.
        task: judges the answers.
        options: of the task's verdicts, see :meth:`simulator.faults.campaign.Campaign.options`.
        first: the name of the first sample. It says for all of them, in any process, whether the
            rest of the network gives the bits of the whole.
        memory: bytes for the traces of a block of samples.
    """

    who: str
    chain: Chain
    task: Task
    options: Section
    first: str
    memory: int

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The steps of the stack."""
        return self.chain.recipes

    def open(self, runtimes: RuntimePool) -> OpenedInjection:
        """Open the steps before the network, and lease what puts faults into it."""
        return OpenedInjection(self, runtimes)


def injection(
    stack: Stack, task: Task, options: Section, items: Sequence[Item], memory: int = DEFAULT_MEMORY
) -> Injection:
    """Return the step of a stack; for its arguments see :class:`Injection`."""
    return Injection(stack.side, stack.chain, task, options, items[0].name, memory)


class OpenedInjection:
    """An injection in this process.

    Args:
        own: the step.
        runtimes: the injector stays open with them.

    Attributes:
        injector: puts faults into the stack's artifact.
    """

    def __init__(self, own: Injection, runtimes: RuntimePool) -> None:
        self._own = own
        infer, answer = _ends(own.chain)
        self.injector = injector_of(own.who, own.chain, runtimes)
        self._infer, self._verdicts = infer, Verdicts(own.task, own.options, infer, answer)
        self._before = Opened(plan({Arm(own.who): own.chain.until(Boundary.INPUT)}), runtimes)
        self._lock = Lock()
        self._samples: dict[str, Future[_Ready | str]] = {}
        self._block: int | None = None
        self._exact: dict[tuple[int, ...], bool] = {}

    def __call__(self, hits: Hits, read: Read) -> list[Row]:
        """Return a row for each inference with faults at the same sites.

        Raises:
            ModelError: the runtime cannot run the network.
        """
        self.block(read)  # from here on only so many traces are kept
        rows: list[Row] = []
        goldens: dict[str, Golden] = {}
        sites = hits[0].drawn.sites
        with self.injector.at(*(self.injector.sites[index] for index in sites)) as rest:
            for hit in hits:
                row, one = row_of(self._own.who, hit, self.injector), self._ready(hit.sample, read)
                if isinstance(one, str):
                    rows.append(row | {"skipped": one})
                    continue
                if hit.sample not in goldens:
                    goldens[hit.sample] = self._golden(sites, rest, one, read)
                faulty = rest.run(one.trace, hit.drawn.faults)
                rows.append(row | self._verdicts.row(one.sample, goldens[hit.sample], faulty))
        return rows

    def again(self, hit: Hit, read: Read) -> tuple[Impact, Any] | None:
        """Run one inference with faults again.

        Returns:
            What judges it, which holds the answer without the faults, and the answer with them;
            None where there is none.
        """
        one = self._ready(hit.sample, read)
        if isinstance(one, str):
            return None
        sites = hit.drawn.sites
        with self.injector.at(*(self.injector.sites[index] for index in sites)) as rest:
            golden = self._golden(sites, rest, one, read)
            found = self._verdicts.answer(one.sample, rest.run(one.trace, hit.drawn.faults))
        return None if found.due else (golden.impact, found.prediction)

    def block(self, read: Read) -> int:
        """Return how many samples' traces the memory has room for."""
        if self._block is None:
            one = self._ready(self._own.first, read)
            size = 0 if isinstance(one, str) else sum(each.nbytes for each in one.trace.values())
            room = 1 if isinstance(one, str) else self._own.memory // max(size, 1)
            self._block = int(np.clip(room, 1, BLOCK))
        return self._block

    def canary(self, sites: Iterable[int], samples: Sequence[str], read: Read) -> None:
        """Make sure that a changed weight of each layer changes an output.

        The highest bits of the largest weights are flipped at once, on up to three samples; each
        weight is of another channel, because a channel that a sample leaves at 0 hides them all.

        Args:
            sites: the indices of those that hold weights.
            samples: their names.
            read: reads them.

        Raises:
            Unsupported: a layer's weights are copied where no flip reaches them.
        """
        every = [self._ready(name, read) for name in samples[:3]]
        ready = [one for one in every if isinstance(one, _Ready)]
        if not ready:
            return
        for index in sites:
            site = self.injector.sites[index]
            largest = _largest(self.injector.stored(site))
            faults = tuple(BitFault(at, site.bits - 1) for at in largest)
            with self.injector.at(site) as rest:
                if not any(_changes(rest, faults, one) for one in ready):
                    raise Unsupported(
                        f"{self._own.who}: a flipped bit of the {site.target} of {site.layer!r} "
                        f"changes no output ({self.injector.method}); name other layers"
                    )

    def _feeds(self, value: Any) -> Mapping[str, Array]:
        if isinstance(value, tuple):
            raise UserError("faults are for networks that run once a sample")
        return self._infer.feeds(value)

    def _ready(self, name: str, read: Read) -> _Ready | str:
        """Trace a sample, or say why it is skipped; other threads wait, and have the same."""
        with self._lock:
            future = self._samples.pop(name, None)
            known = future is not None
            future = self._samples[name] = future or Future()
            self._forget()
        if not known:
            try:
                future.set_result(self._traced(name, read))
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def _forget(self) -> None:
        """Keep the samples of two blocks: one may begin while another one ends."""
        if self._block is None:
            return
        old = [name for name in self._samples if name != self._own.first]
        for name in old[: -2 * self._block]:
            del self._samples[name]

    def _traced(self, name: str, read: Read) -> _Ready | str:
        try:
            context = read(name)
            sample = self._verdicts.sample(context)
            (value,) = self._before.walk(context).answers()
            trace = self.injector.trace(self._feeds(value))
            golden = self._verdicts.golden(self.injector.golden(trace), sample)
            return _Ready(sample, trace, golden)
        except SampleError as error:
            return str(error)
        except UserError:
            raise
        except Exception as error:  # a runtime may raise anything
            raise ModelError(f"{self._own.who}: {one_line(error)}") from error

    def _golden(self, sites: tuple[int, ...], rest: Suffix, ready: _Ready, read: Read) -> Golden:
        """The inference without faults by the same code; that of the trace if bits are equal."""
        if sites not in self._exact:
            first = self._ready(self._own.first, read)
            self._exact[sites] = not isinstance(first, str) and equal(
                rest.run(first.trace).outputs, first.golden.run.outputs
            )
        if self._exact[sites]:
            return ready.golden
        return self._verdicts.golden(rest.run(ready.trace), ready.sample)


def row_of(side: str, hit: Hit, injector: Injector) -> Row:
    """Return the columns of a row that say which inference it is."""
    drawn = hit.drawn
    sites = [injector.sites[drawn.sites[fault.site]] for fault in drawn.faults]
    return {
        "fault": drawn.number, "stack": side, "at": hit.at, "sample": hit.sample,
        "layer": [site.layer for site in sites], "operator": [site.operator for site in sites],
        "target": [str(site.target) for site in sites],
        "storage": [site.storage for site in sites], "stratum": drawn.stratum, "skipped": None,
        "index": [fault.index for fault in drawn.faults],
        "bit": [fault.bit for fault in drawn.faults],
        "kind": str(drawn.faults[0].kind),
    }  # fmt: skip


def _ends(chain: Chain) -> tuple[Infer, Answer]:
    """The last two steps: the network and the answer."""
    infer, answer = chain.recipes[-2:]
    assert isinstance(infer, Infer)
    assert isinstance(answer, Answer)
    return infer, answer


def _largest(values: Array) -> list[int]:
    """The places of the largest value of each slice of the first axis, the largest ones first."""
    sizes = np.abs(values.astype(np.float64)).reshape(len(values) if values.ndim else 1, -1)
    places = sizes.argmax(axis=1) + np.arange(len(sizes)) * sizes.shape[1]
    order = np.argsort(-sizes.max(axis=1), kind="stable")[:CHANNELS]
    return [int(place) for place in places[order]]


def _changes(rest: Suffix, faults: Sequence[BitFault], sample: _Ready) -> bool:
    golden, faulty = rest.run(sample.trace), rest.run(sample.trace, faults)
    return faulty.finite != golden.finite or not equal(golden.outputs, faulty.outputs)
