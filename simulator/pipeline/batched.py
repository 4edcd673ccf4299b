"""The step of a network that answers several samples at once.

Batch *k* of N has the samples k N to k N + N - 1 of the run. So a batch is the same whichever
sample asks for it first, in whatever order samples run, and after an interruption. Threads whose
samples are in one batch prepare it together; one of them runs it, and each takes its row.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, Runtime, clock
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError
from simulator.modalities.modality import Modality
from simulator.pipeline.batches import Given, Kept, arrays_of, joined, stamp
from simulator.pipeline.inference import Infer, Inferred, inferred
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.walk import Opened, context_of

KEPT = 2**28
"""Bytes of answers that wait for their samples; of more, the oldest are computed again."""


@dataclass(frozen=True, eq=False)
class Batched(Recipe):
    """Runs the network on batches.

    A sample that a step before cannot process is in no batch; where the network fails on a sample,
    all of its batch fail. A batch with fewer samples than its
    size runs as it is if it is dynamic; else its last sample is repeated up to the size, as an
    engine of fixed shapes needs it. Where its samples differ in size, each size is a batch of its
    own. The time of a sample is that of its batch, divided by the
    samples of the batch.

    Attributes:
        infer: the network, and what is needed of it.
        size: samples of a batch.
        dynamic: whether a batch may have fewer.
        modality: reads the samples.
        items: all samples, in the order of the run.
        before: the steps before it, conditions too; the plan fills them in.
    """

    infer: Infer
    size: int
    dynamic: bool
    modality: Modality
    items: tuple[Item, ...]
    before: tuple[Recipe, ...] = ()
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS

    @property
    def needs(self) -> tuple[tuple[str, float], ...]:  # type: ignore[override]
        """The resources of the network."""
        return self.infer.needs

    def identity(self) -> Any:
        """Return the network, the batch, and the samples in their order."""
        order = order_of(self.items)
        return ["batch", self.infer.identity(), self.size, self.dynamic, order]

    def behind(self, before: tuple[Recipe, ...]) -> Batched:
        """Return the step with what makes its inputs."""
        return replace(self, before=before)

    def words(self) -> str:
        """Return the runtime, and the size of a batch."""
        return f"{self.infer.words()} batch {self.size}"

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the runtime, and the steps before it."""
        run = self.runner(runtimes)
        places = {item.name: at for at, item in enumerate(self.items)}
        prepare = preparing(self.before, self.modality, self.items, runtimes)

        def batch(number: int) -> _Batch:
            begin = number * self.size
            return _Batch(range(begin, min(begin + self.size, len(places))), prepare, run)

        batches = _Batches(batch, self.size)

        def find(value: Any, sample: str) -> Kept:
            if sample not in places:
                raise ModelError(f"{sample} is in no batch: it is no sample of this run")
            found, was = batches.of(places[sample])
            if isinstance(value, tuple) or stamp(value) != was:
                raise ModelError(
                    f"{sample}: its input is not the one in its batch; a step before the network "
                    "gives other values each time"
                )
            return found

        return looking_up(find)

    def runner(self, runtimes: Runtimes) -> Callable[[list[Given]], list[Kept]]:
        """Return a function that answers the samples of one batch."""
        borrow = self.infer.leasing(runtimes)

        def run(batch: list[Given]) -> list[Kept]:
            shapes = [tuple(one.shape for one in arrays_of(given.value)) for given in batch]
            found: dict[int, Kept] = {}
            for shape in dict.fromkeys(shapes):  # a batch joins inputs of one size
                places = [at for at, own in enumerate(shapes) if own == shape]
                answered = together([batch[at] for at in places])
                found |= dict(zip(places, answered, strict=True))
            return [found[at] for at in range(len(batch))]

        def together(batch: list[Given]) -> list[Kept]:
            filled = len(batch) if self.dynamic else self.size
            own = [given.value for given in batch]
            values = joined([*own, *own[-1:] * (filled - len(batch))])
            with borrow(values) as runtime:
                begun = time.perf_counter_ns()
                outputs = self.infer.once(runtime, values)
                ns = (time.perf_counter_ns() - begun) // len(batch)
            return [Kept(row, ns) for row in rows(outputs, filled)[: len(batch)]]

        return run


def order_of(items: Sequence[Item]) -> str:
    """Return a digest of the names of samples in their order."""
    names = "\0".join(item.name for item in items)
    return hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()


def looking_up(find: Callable[[Any, str], Kept]) -> Apply:
    """Return the function of a step that finds answers: its time is that of the answer.

    Args:
        find: takes the network's input and the name of the sample.
    """

    def apply(value: Any, context: Context) -> Inferred:
        start, excluded = time.perf_counter_ns(), clock.excluded()
        found = find(value, context.sample)
        made = inferred(found.outputs)
        spent = time.perf_counter_ns() - start - (clock.excluded() - excluded)
        clock.exclude(spent - found.ns)
        return made

    return apply


def preparing(
    before: tuple[Recipe, ...], modality: Modality, items: Sequence[Item], runtimes: Runtimes
) -> Callable[[int], Given | None]:
    """Return a function that makes the network's input for the sample with an index.

    It returns None where a step before the network fails, and raises ModelError where a sample
    needs several inferences.

    Args:
        before: the steps before the network.
        modality: reads the samples.
        items: all of them.
        runtimes: of this process.
    """
    opened = Opened(plan({Arm("batch"): Chain(before)}), runtimes)

    def prepare(at: int) -> Given | None:
        try:
            (value,) = opened.walk(context_of(modality, items[at])).answers()
        except SampleError:
            return None
        if isinstance(value, tuple):
            raise ModelError("batches are for networks that run once a sample")
        return Given(items[at].name, value, at + 1)

    return prepare


def rows(outputs: Mapping[str, Array], count: int) -> list[dict[str, Array]]:
    """Return the outputs (1, ...) of each sample of a batch.

    Raises:
        ModelError: an output has another number of rows.
    """
    for name, array in outputs.items():
        if array.ndim < 1 or len(array) != count:
            raise ModelError(
                f"output {name!r} is {array.shape} for {count} samples; batches are for networks "
                "that answer each sample in a row of its own"
            )
    return [{name: array[at : at + 1] for name, array in outputs.items()} for at in range(count)]


APART = 0.02
"""The largest difference, as a share of the largest output, that the order in a batch may make."""


def refuse_mixing(runtime: Runtime, probes: Mapping[str, Array]) -> None:
    """Refuse a runtime where samples of a batch do not stay apart: noise, in two orders.

    Args:
        runtime: opened.
        probes: inputs of the right shape.

    Raises:
        ModelError: answers do not follow their samples.
    """
    rng = np.random.default_rng(0)
    one = {name: rng.normal(0, 1, x.shape).astype(x.dtype) for name, x in probes.items()}
    other = {name: np.roll(x, 1, axis=0) for name, x in one.items()}
    first, second = runtime.run(one), runtime.run(other)
    count = len(next(iter(one.values())))
    rows(first, count)
    for name, array in first.items():
        off = np.abs(np.roll(array, 1, axis=0).astype(float) - second[name].astype(float))
        if not np.nanmax(off, initial=0) <= APART * np.nanmax(np.abs(array), initial=0):
            raise ModelError(f"output {name!r} of a sample depends on its place in the batch")


@dataclass(eq=False)
class _Batch:
    """One batch; every thread that needs it helps to prepare it.

    Attributes:
        places: the indices of its samples.
        prepare: returns the input of the sample with an index.
        run: answers them.
        answered: by index; of samples that failed nothing.
        taken: the indices whose answers were taken.
    """

    places: range
    prepare: Callable[[int], Given | None]
    run: Callable[[list[Given]], list[Kept]]
    answered: dict[int, tuple[Kept, str]] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._left, self._open = iter(self.places), len(self.places)
        self._given: dict[int, Given] = {}
        self._lock, self._done = threading.Lock(), threading.Event()
        self._error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it was answered."""
        return self._done.is_set()

    @property
    def size(self) -> int:
        """Bytes of its answers."""
        arrays = [array for kept, _ in self.answered.values() for array in kept.outputs.values()]
        return sum(array.nbytes for array in arrays)

    def answer(self) -> None:
        """Prepare it as far as no other thread does, and wait until it is answered."""
        try:
            while (at := self._next()) is not None:
                found = self.prepare(at)
                if self._add(at, found):
                    self._run()
        except BaseException as error:
            self._error = error
            self._done.set()
            raise
        self._done.wait()
        if self._error is not None:
            kind = SampleError if isinstance(self._error, SampleError) else ModelError
            raise kind(str(self._error)) from self._error

    def _next(self) -> int | None:
        with self._lock:
            return None if self._error else next(self._left, None)

    def _add(self, at: int, found: Given | None) -> bool:
        """Add an input; whether it was the last one."""
        with self._lock:
            if found is not None:
                self._given[at] = found
            self._open -= 1
            return self._open == 0

    def _run(self) -> None:
        known = sorted(self._given)
        batch = [self._given[at] for at in known]
        kept = self.run(batch) if batch else []
        for at, given, answer in zip(known, batch, kept, strict=True):
            self.answered[at] = answer, stamp(given.value)
        self._given.clear()
        self._done.set()


class _Batches:
    """The batches that samples wait for; one is forgotten when all its answers were taken."""

    def __init__(self, make: Callable[[int], _Batch], size: int) -> None:
        self._make, self._size = make, size
        self._known: OrderedDict[int, _Batch] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, at: int) -> tuple[Kept, str]:
        """Return a sample's answer, and the stamp of its input; taken again, computed again.

        Raises:
            ModelError: its batch cannot be answered.
        """
        number = at // self._size
        with self._lock:
            batch = self._known.get(number)
            if batch is None or at in batch.taken:
                batch = self._known[number] = self._make(number)
                self._known.move_to_end(number)
            batch.taken.add(at)
        try:
            batch.answer()
            if at not in batch.answered:
                raise ModelError("a step before the network fails on a sample only sometimes")
            return batch.answered[at]
        finally:
            with self._lock:
                if len(batch.taken) == len(batch.places) and self._known.get(number) is batch:
                    del self._known[number]
                self._forget_old()

    def _forget_old(self) -> None:
        done = [(number, batch) for number, batch in self._known.items() if batch.is_done]
        held = sum(batch.size for _, batch in done)
        for number, batch in done[:-2]:
            if held <= KEPT:
                break
            held -= batch.size
            del self._known[number]
