"""The scenarios Offline and Server: stacks under a load that LoadGen generates."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar

from simulator import registry
from simulator.contract import Load, LoadGenerator, Scenario, Stage
from simulator.contract.recipe import Chain, Context
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, UserError
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session
from simulator.experiments.summary import running
from simulator.latency.job import Measurement, is_recorded
from simulator.latency.stream import Stream
from simulator.latency.summary import first_fields, notices
from simulator.latency.times import TOTAL
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.batched import Batched
from simulator.pipeline.batches import Given
from simulator.pipeline.executor import Executor
from simulator.pipeline.inference import inferred
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.results.json_text import write_json
from simulator.results.layout import LOGS
from simulator.results.shared import Latency
from simulator.results.store import RunWriter
from simulator.results.timed import LoadSummary, Served
from simulator.statistics.percentiles import MS, PERCENTILES, name, not_carried

SERVED = "served.json"
BACKEND = "loadgen"
RATES = ("result_completed_samples_per_sec", "result_samples_per_second")
"""LoadGen's names of the answers per second, in Server and in Offline."""

DELAY = 0.01
"""Seconds that a batch waits for its next sample before it runs with those that it has."""
Waiting = tuple[int, Callable[[], None]]


class UnderLoad(Measurement[LoadSummary]):
    """Measures under LoadGen's load, one stack after the other.

    Args:
        load: the load; its number of samples and its seed are replaced by the session's.

    Raises:
        MissingLibrary: LoadGen is not installed; the message says how to install it.
    """

    shape: ClassVar[type[LoadSummary]] = LoadSummary

    def __init__(self, load: Load) -> None:
        self._load = load
        backend = registry.backend(BACKEND)
        registry.require(backend)
        (offer,) = backend.of(Stage.LOAD)
        self._generator: LoadGenerator = offer.make({})

    def check(self, sides: Mapping[str, ResolvedProfile], session: Session) -> None:
        """Refuse a recorded stack, which cannot be put under load, and batches in Server.

        Raises:
            UserError: naming the stack.
        """
        for side, chosen in sides.items():
            if self._load.scenario is not Scenario.OFFLINE:
                refuse_together(side, *chosen, f"{self._load.scenario} sends")
            if is_recorded(chosen):
                raise UserError(f"{side}: {self._load.scenario} needs a stack that runs here")

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures; only whole inferences are timed."""
        return super().vocabulary(sides, session) | {"stage": (TOTAL,)}

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> LoadSummary:
        """Run every sample once untimed, then put each stack under load."""
        done = run_and_keep(session, session.plan(stacks), run, timed=False)
        items = done.ran
        served = {stack.side: self._served(session, stack, items, run.folder) for stack in stacks}
        known = {side: self._latency(one) for side, one in served.items()}
        return LoadSummary.model_validate(
            {
                **first_fields(session, stacks, done),
                "scenario": self._load.scenario,
                "stacks": {stack.side: running(stack) for stack in stacks},
                "load": asdict(self._load),
                "served": served,
                "latency_ms": {side: {TOTAL: latency} for side, (latency, _) in known.items()},
                "missing": {
                    f"latency_ms.{side}.{TOTAL}.{key}": why
                    for side, (_, missing) in known.items()
                    for key, why in missing.items()
                },
                "warnings": [*notices(session, stacks, items), *merged(_findings(served))],
            }
        )

    def _served(
        self, session: Session, stack: Stack, items: Sequence[Item], folder: Path
    ) -> Served:
        """Put a stack under load, unless an earlier attempt did; LoadGen's logs are kept."""
        logs = folder / LOGS / stack.side
        if (logs / SERVED).is_file():
            return Served.model_validate_json((logs / SERVED).read_bytes())
        chain = session.disturbed(stack.chain)
        Stream(session.executor, [chain], items, session.seed).warm_up()
        session.show.say(f"{stack.side}: {self._load.scenario}")
        load = replace(self._load, samples=len(items), seed=session.seed)
        batcher, asked = Batcher(session.executor, chain, items), 0
        with ThreadPoolExecutor(session.workers, thread_name_prefix="answer") as pool:

            def submit(index: int, finish: Callable[[], None]) -> None:
                nonlocal asked
                asked += 1
                batcher.add(index, finish)
                pool.submit(batcher.serve)

            try:
                found = self._generator.run(load, submit, logs)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        served = Served(
            valid=found.valid,
            why=list(found.why),
            failed=len(batcher.failed),
            first_failed=batcher.failed[0] if batcher.failed else None,
            workers=session.workers,
            batch=stack.profile.spec.runtime.samples,
            queries=asked,
            qps=next(found.figures[key] for key in RATES if key in found.figures),
            figures=dict(found.figures),
            loadgen=found.version,
        )
        write_json(logs / SERVED, served)
        return served

    def _latency(self, served: Served) -> tuple[Latency, dict[str, str]]:
        """Return a stack's latencies, and why some are None."""
        if self._load.scenario is Scenario.OFFLINE:
            why = "Offline sends all samples at once: it has a rate, but no latency"
            return Latency(), dict.fromkeys(Latency().keys(), why)
        keys = {key: f"result_{key}_latency_ns" for key in ("mean", "min", "max")}
        keys |= {name(p): f"result_{100 * p:.2f}_percentile_latency_ns" for p in PERCENTILES}
        missing = not_carried(served.queries)
        known = {key: served.figures[of] / MS for key, of in keys.items() if key not in missing}
        return Latency.model_validate(known), missing


def _findings(served: Mapping[str, Served]) -> Iterator[Notice]:
    """LoadGen's messages, and failed inferences."""
    for side, one in served.items():
        for line in one.why:
            yield Notice(Kind.LOADGEN, f"LoadGen: {line}", (side,))
    for side, one in served.items():
        if one.failed:
            words = f"{one.failed} inferences failed, the first: {one.first_failed}"
            yield Notice(Kind.FAILED_INFERENCES, words, (side,))


class Batcher:
    """Collects samples, and answers as many at once as the stack's batch has.

    Each sample goes through the steps before the network, the batch through the network, and each
    answer through the steps after it, all in one thread. A stack without batches answers each
    sample by itself. Predictions are not used: they were recorded in the untimed pass.

    Args:
        executor: reads the samples.
        chain: of the stack.
        items: the samples.

    Attributes:
        failed: the reasons of failed inferences.
    """

    def __init__(self, executor: Executor, chain: Chain, items: Sequence[Item]) -> None:
        steps, runtimes = chain.recipes, executor.runtimes.here()
        at = next((n for n, step in enumerate(steps) if isinstance(step, Batched)), len(steps))
        batched = [step for step in steps if isinstance(step, Batched)]
        self._executor, self._items = executor, items
        self._before = executor.open(plan({Arm("before"): Chain(steps[:at])}), timed=True)
        self._networks = [step.runner(runtimes) for step in batched]
        self._size = batched[0].size if batched else 1
        self._after = [step.open(runtimes) for step in steps[at + 1 :]]
        self._waiting: deque[Waiting] = deque()
        self._arrived = threading.Condition()
        self.failed: list[str] = []

    def add(self, index: int, finish: Callable[[], None]) -> None:
        """Add a sample; *finish* is called when it is answered, or failed."""
        with self._arrived:
            self._waiting.append((index, finish))
            self._arrived.notify_all()

    def serve(self) -> None:
        """Answer one batch of what waits; nothing where nothing waits."""
        batch = self._taken()
        try:
            self._answer([self._items[index] for index, _ in batch])
        finally:
            for _, finish in batch:
                finish()

    def _taken(self) -> list[Waiting]:
        with self._arrived:
            count = -1
            while count < len(self._waiting) < self._size:
                count = len(self._waiting)
                if count:
                    self._arrived.wait(DELAY)
            return [self._waiting.popleft() for _ in range(min(self._size, len(self._waiting)))]

    def _answer(self, items: Sequence[Item]) -> None:
        ready: list[tuple[Given, Context]] = []
        for item in items:
            try:
                context = self._executor.context(item)
                (value,) = self._before.walk(context).answers()
                ready.append((Given(item.name, value, 0), context))
            except (SampleError, ModelError) as error:
                self.failed.append(f"{item.name}: {error}")
        for network in self._networks if ready else ():
            try:
                answered = network([given for given, _ in ready])
            except (SampleError, ModelError) as error:
                self.failed += [f"{one.name}: {error}" for one, _ in ready]
                return
            for kept, (one, context) in zip(answered, ready, strict=True):
                try:
                    found = inferred(kept.outputs)
                    for step in self._after:
                        found = step(found, context)
                except SampleError as error:
                    self.failed.append(f"{one.name}: {error}")
