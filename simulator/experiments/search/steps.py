"""Runs of several passes over the samples, each in a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import RunError
from simulator.experiments.common import manifest
from simulator.experiments.job import Job
from simulator.experiments.record_store import RecordStore
from simulator.experiments.search.evaluate import Evaluation, arms_of
from simulator.experiments.search.policy import Policy
from simulator.experiments.session import Session
from simulator.pipeline.stack import Stack
from simulator.results.json_text import write_json
from simulator.results.layout import MANIFEST, RECORDS, SUMMARY
from simulator.results.lock import locked
from simulator.results.manifest import Request, RunManifest
from simulator.results.read import read_manifest
from simulator.results.shared import Summary
from simulator.results.suites import StepSummary
from simulator.typed import plain


@dataclass(frozen=True, slots=True)
class Steps:
    """A run that chooses the stacks of a pass by what came of the pass before.

    Attributes:
        job: the call.
        folder: of the run.
        request: the call as JSON.
        metric: the figure of each stack that the summary of a step shows.
        figure: computes it.
        timed: whether latencies are recorded; they differ from run to run.
        overrides: of the stacks, ``STACK.KEY=VALUE``.
    """

    job: Job
    folder: Path
    request: Request
    metric: str
    figure: Callable[[Evaluation, str], float]
    timed: bool = False
    overrides: Sequence[str] = ()

    @contextmanager
    def writing(self, session: Session) -> Iterator[None]:
        """Hold the folder, whose manifest says that the run goes on.

        Raises:
            RunError: another process writes into the folder, or it cannot be written.
        """
        with locked(self.folder, session.show.note):
            self._mark({"request": self.request}, "running")
            yield

    def evaluate(
        self,
        name: str,
        session: Session,
        stacks: Sequence[Stack],
        policy: Policy,
        first: Callable[[RecordStore], None] = lambda _: None,
    ) -> Evaluation:
        """Run stacks on samples; what an earlier attempt has finished is not run again.

        Args:
            name: of the step; its folder.
            session: the model and the samples.
            stacks: the one that the others are held against first.
            policy: see :class:`Evaluation`.
            first: see :meth:`Evaluation.run`.
        """
        found = Evaluation(session, arms_of(session, stacks), policy)
        start = manifest(stacks, session, self.overrides)
        with self.job.writer(self.folder / name, start, session, whole=False) as run:
            found.run(run, self.timed, first)
            values = {one: self.figure(found, one) for one in found.names}
            run.finish(StepSummary(metric=self.metric, values=values), {})
        return found

    def finish(self, summary: Summary, step: str, **more: Any) -> None:
        """Write the summary and the report; the run is complete.

        Args:
            summary: of the run.
            step: whose records and manifest are the run's.
            more: fields of the manifest.

        Raises:
            RunError: the folder cannot be written.
        """
        whole = read_manifest(self.folder / step) | {"request": self.request} | more
        start = plain(RunManifest.model_validate(whole))
        self._mark(start, "reporting", summary, self.folder / step / RECORDS)
        if self.job.report:
            self.job.report(self.folder)
        self._mark(start, "complete")

    def _mark(
        self,
        start: Mapping[str, Any],
        status: str,
        summary: Summary | None = None,
        records: Path | None = None,
    ) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if summary is not None and records is not None:
                shutil.copyfile(records, self.folder / RECORDS)
                write_json(self.folder / SUMMARY, summary)
            write_json(self.folder / MANIFEST, {**start, "status": status})
        except OSError as error:
            raise RunError(f"{self.folder}: cannot be written: {error.strerror}") from error
