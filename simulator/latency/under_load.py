"""The scenarios Offline and Server: stacks under a load that LoadGen generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from simulator import registry
from simulator.contract import Load, LoadGenerator, Scenario, Stage
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, UserError
from simulator.experiments.common import run_and_keep
from simulator.experiments.session import Session, answers
from simulator.latency.batcher import Batcher
from simulator.latency.single_stream import SingleStream
from simulator.latency.summary import described, head, in_process, vocabulary
from simulator.latency.times import TOTAL
from simulator.notices import Kind, Notice, merged
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.executor import Executor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import Chosen, Stack
from simulator.pipeline.walk import Opened
from simulator.results.json_text import write_json
from simulator.results.layout import LOGS
from simulator.results.store import RunWriter
from simulator.results.timed import LoadSummary, Served
from simulator.statistics.percentiles import MS, PERCENTILES, cannot_carry, name, samples_needed

SERVED = "served.json"
BACKEND = "loadgen"
FIGURES = (*map(name, PERCENTILES), "mean", "min", "max")
RATES = ("result_completed_samples_per_sec", "result_samples_per_second")
"""LoadGen's names of the answers per second, in Server and in Offline."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Runs a stack on samples by their index, from any thread.

    Attributes:
        executor: reads the samples.
        opened: the stack.
        items: the samples.
        failed: the reasons of failed inferences; appended to.
    """

    executor: Executor
    opened: Opened
    items: Sequence[Item]
    failed: list[str]

    def __call__(self, index: int) -> None:
        """Run a sample; its prediction is not used, it was recorded in the untimed pass."""
        item = self.items[index]
        try:
            self.opened.walk(self.executor.context(item))
        except (SampleError, ModelError) as error:
            self.failed.append(f"{item.name}: {error}")


class UnderLoad:
    """Measures under LoadGen's load, one stack after the other.

    Args:
        load: the load; its number of samples and its seed are replaced by the session's.
    """

    shape = LoadSummary

    def __init__(self, load: Load) -> None:
        self._load = load
        self._generator = _generator()

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Refuse a recorded stack, which cannot be put under load, and batches in Server.

        Raises:
            UserError: naming the stack.
        """
        for side, chosen in sides.items():
            if self._load.scenario is not Scenario.OFFLINE:
                refuse_together(side, *chosen, f"{self._load.scenario} sends")
            if recorded.recording(*chosen, Stage.RUNTIME):
                raise UserError(f"{side}: {self._load.scenario} needs a stack that runs here")

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures; only whole inferences are timed."""
        return vocabulary(sides) | {"stage": (TOTAL,)}

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> LoadSummary:
        """Run every sample once untimed, then put each stack under load."""
        names = [stack.side for stack in stacks]
        done = run_and_keep(session, session.plan(stacks), run, timed=False)
        items = answers(session.card.task, names, done).items
        served = {stack.side: self._served(session, stack, items, run.folder) for stack in stacks}
        notices = [
            *merged(notice for stack in stacks for notice in stack.labelled_notices),
            *session.notes,
            *in_process(session, stacks, items),
            *_findings(served),
        ]
        tables = {side: _latency(self._load.scenario, one) for side, one in served.items()}
        asked = {key: value for key, value in asdict(self._load).items() if value is not None}
        return LoadSummary.model_validate(
            {
                **head(session, stacks, done),
                "scenario": str(self._load.scenario),
                "stacks": {stack.side: described(stack) for stack in stacks},
                "load": asked,
                "served": served,
                "latency_ms": {side: {TOTAL: table} for side, (table, _) in tables.items()},
                "missing": {
                    f"latency_ms.{side}.{TOTAL}.{key}": why
                    for side, (_, missing) in tables.items()
                    for key, why in missing.items()
                },
                "warnings": notices,
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
        SingleStream(session.executor, [chain], items, session.seed).warm_up()
        session.show.say(f"{stack.side}: {self._load.scenario}")
        load = replace(self._load, samples=len(items), seed=session.seed)
        failed: list[str] = []
        size = stack.profile.spec.runtime.samples
        if size > 1:
            batcher = Batcher(session.executor, chain, items, failed)
        else:
            opened = session.executor.open(plan({Arm(stack.side): chain}), timed=True)
            answering = Answering(session.executor, opened, items, failed)
        asked = 0
        with ThreadPoolExecutor(session.workers, thread_name_prefix="answer") as pool:

            def submit(index: int, finish: Callable[[], None]) -> None:
                nonlocal asked
                asked += 1
                if size > 1:
                    batcher.add(index, finish)
                    pool.submit(batcher.serve)
                    return
                pool.submit(answering, index).add_done_callback(lambda _: finish())

            try:
                found = self._generator.run(load, submit, logs)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        served = Served(
            valid=found.valid,
            why=list(found.why),
            failed=len(failed),
            first_failed=failed[0] if failed else None,
            workers=session.workers,
            batch=size,
            queries=asked,
            qps=next(found.figures[key] for key in RATES if key in found.figures),
            figures=dict(found.figures),
            loadgen=found.version,
        )
        write_json(logs / SERVED, served)
        return served


def _findings(served: Mapping[str, Served]) -> list[Notice]:
    """LoadGen's messages, and failed inferences."""
    messages = [
        Notice(Kind.LOADGEN, f"LoadGen: {line}", (side,))
        for side, one in served.items()
        for line in one.why
    ]
    failures = [
        Notice(
            Kind.FAILED_INFERENCES,
            f"{one.failed} inferences failed, the first: {one.first_failed}",
            (side,),
        )
        for side, one in served.items()
        if one.failed
    ]
    return merged([*messages, *failures])


def _latency(scenario: Scenario, served: Served) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a stack's latencies in ms, and why some are None."""
    figures, queries = served.figures, served.queries
    if scenario is Scenario.OFFLINE:
        why = "Offline sends all samples at once: it has a rate, but no latency"
        return dict.fromkeys(FIGURES), dict.fromkeys(FIGURES, why)
    found = {key: figures[f"result_{key}_latency_ns"] / MS for key in ("mean", "min", "max")}
    missing = {}
    for p in PERCENTILES:
        if queries < samples_needed(p):
            found[name(p)], missing[name(p)] = None, cannot_carry(queries, p)
        else:
            found[name(p)] = figures[f"result_{100 * p:.2f}_percentile_latency_ns"] / MS
    return found, missing


def _generator() -> LoadGenerator:
    """Return LoadGen.

    Raises:
        MissingLibrary: it is not installed; the message says how to install it.
    """
    backend = registry.backend(BACKEND)
    registry.require(backend)
    (offer,) = backend.of(Stage.LOAD)
    found: LoadGenerator = offer.make({})
    return found
