"""One call of an experiment: its options, its run folder and its result."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import pyarrow as pa

from simulator.analysis import gate, outcomes
from simulator.command.experiment import Experiment
from simulator.conditions.condition import under
from simulator.data.address import absolute
from simulator.errors import UserError
from simulator.experiments.claim import remembered, request
from simulator.experiments.session import Session
from simulator.pipeline.stack import ResolvedProfile
from simulator.report.command import Asked
from simulator.report.verdict import concluded
from simulator.results.lock import refuse_held
from simulator.results.manifest import Request, RunManifest
from simulator.results.read import read_run
from simulator.results.run_folder import check_free
from simulator.results.shared import Summary
from simulator.results.store import Report, RunWriter
from simulator.results.time_spent import time_spent
from simulator.results.wide import wide
from simulator.spent import Work, mark, spending

if TYPE_CHECKING:
    from simulator.experiments.search.gate import SequentialGate
    from simulator.report.notebook import Charts

S = TypeVar("S", bound=Summary)
R_co = TypeVar("R_co", bound=Summary, covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Generic[R_co]):
    """The result of a run.

    Attributes:
        summary: the content of ``summary.json``, with the same keys: ``summary["flips"]["count"]``.
        folder: the run folder.
    """

    summary: R_co
    folder: Path

    @property
    def passed(self) -> bool | None:
        """Whether no gate rule failed; None where nothing was judged."""
        gate, verdict = self.summary.gate, self.summary.verdict
        judged = gate.rules or (verdict and verdict.decision in ("ok", "not ok"))
        return gate.passed if judged else None

    @property
    def report(self) -> Path:
        """The HTML report of the run; written on first use.

        Raises:
            RunError: the run folder is gone.
        """
        from simulator.report import page
        from simulator.report.words import PAGE

        place = self.folder / PAGE
        return place if place.is_file() else page.write(self.folder)

    def records(self) -> pa.Table:
        """Return what was kept of each sample and stack: one row for each.

        ``records().to_pandas()`` needs pandas. The columns are those of
        :func:`simulator.results.record_table.schema`.

        Raises:
            RunError: the run folder is gone, or it is an audit: its runs in ``pairs/`` have them.
        """
        return read_run(self.folder)[2]

    def frame(self) -> pa.Table:
        """Return one wide row for each sample: its label, then what each stack made of it.

        ``frame().to_pandas()`` needs pandas. The columns are those of
        :func:`simulator.results.wide.wide`: ``train_prediction``, ``deploy_prediction``, ….

        Raises:
            RunError: see :meth:`records`.
        """
        return wide(self.records())

    def plot(self, *keys: str) -> Charts:
        """Return the charts of the report, which a notebook draws.

        Args:
            keys: of sections of the report; all that have charts by default.

        Raises:
            RunError: the run folder is gone.
            UserError: no section of this name has charts; the message lists those that have.
        """
        from simulator.report.notebook import charts

        return charts(self.folder, keys)

    def __repr__(self) -> str:
        gate = {None: "no gate", True: "gate passed", False: "gate FAILED"}[self.passed]
        return f"<Result of {self.summary.command}: {gate}, {self.folder}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: each figure of the summary that is one number, and the report."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self._figures().items()
        )
        link = quote(os.path.relpath(self.report))
        return f'<table>{rows}</table><p><a href="{link}">report</a></p>'

    def _figures(self) -> dict[str, str | int | float]:
        verdict = {"gate": {None: "none", True: "passed", False: "FAILED"}[self.passed]}
        found = self.summary.model_dump(by_alias=True)
        hidden = ("schema", "seconds", "workers")
        plain = {k: v for k, v in found.items() if isinstance(v, str | int | float)}
        return verdict | {k: v for k, v in plain.items() if k not in hidden}


def judged(
    summary: S,
    rules: Sequence[gate.Rule],
    took: Mapping[str, object],
    undecided: str = "fail",
    decision: SequentialGate | None = None,
    asked: Asked | None = None,
) -> S:
    """Return a summary with its last fields, the outcome of the gate, and its verdict.

    Args:
        summary: of a finished run.
        rules: of the gate.
        took: the last fields: ``seconds``, ``workers`` and ``under``.
        undecided: see :func:`simulator.analysis.outcomes.evaluate`.
        decision: of a run that stopped when its gate was decided.
        asked: what the run was asked.
    """
    whole = summary.model_copy(update=dict(took))
    outcome = outcomes.evaluate(rules, whole, undecided)
    if decision:
        outcome = decision.gate(outcome, undecided)
    return concluded(whole.model_copy(update={"gate": outcome}), asked)


class Job:
    """One call of an experiment, from its options to its run folder.

    Args:
        experiment: what is called.
        asked: the options of the call.
        model: of several, the one that this part of the call is about.

    Raises:
        UserError: every stack is asked to be under something that erases what is measured.
    """

    def __init__(
        self, experiment: Experiment[Any], asked: Any, model: str | Path | None = None
    ) -> None:
        self._started, self._begun = time.time(), mark()
        self.experiment, self.asked = experiment, asked
        self._model = model if experiment.several else getattr(asked, "model", model)
        self._under = under(getattr(asked, "under", None), getattr(asked, "trial", 0))
        if self._under and (why := self._under.condition.erased):
            raise UserError(f"--under {why}")

    def folder(
        self, label: str, sides: Mapping[str, ResolvedProfile], below: str | None = None
    ) -> Path:
        """Return the run folder.

        Args:
            label: the first part of the name of a new folder below ``runs/``.
            sides: the stacks; their profiles' names are the second part.
            below: the name of the run's folder inside *out*, where *out* holds several runs;
                ignored for a run that is resumed, which is in *out* itself.
        """
        out = self.asked.out
        if not out:
            return _free_folder(label, sides, self._started)
        return Path(out) / below if below and not self.asked.resume else Path(out)

    def refuse_taken(self, folder: Path) -> None:
        """Refuse a folder that holds a run, before anything is computed.

        Raises:
            RunError: the folder holds a run, and neither *overwrite* nor *resume* is set; or
                another process writes into it.
        """
        if self.asked.resume:
            refuse_held(folder)
        else:
            check_free(folder, self.asked.overwrite)

    def session(self, limited: bool = True) -> Session:
        """Open the model and the images.

        Args:
            limited: take the subset that was asked for; else all images, and the job chooses.

        Raises:
            UserError: one of them cannot be used; or another executor is asked for, and this
                command runs its stacks in its own process.
        """
        asked = self.asked
        experiment = self.experiment
        apart = experiment.in_process and not experiment.on_servers
        if apart and asked.executor != "local":
            raise UserError(
                f"{self.experiment.name}: {self.experiment.in_process}, so --executor "
                f"{asked.executor} would change nothing; leave it out, and start it on the "
                "machine that it is about"
            )
        with spending(Work.PREPARING):
            return Session.open(
                self._model, asked.data, asked.limit if limited else None, asked.seed,
                asked.workers, asked.memory, asked.progress, self._under, asked.executor,
                asked.isolate,
            )  # fmt: skip

    def request(self, **found: Any) -> Request:
        """Return the call as JSON, so that another process can repeat it.

        Args:
            found: values that the call has found for some options.
        """
        if self.experiment.several:
            found["model"] = None if self._model is None else absolute(Path(self._model))
        whole = request(self.experiment, self.asked, **found)
        if self.experiment.several:
            whole.arguments.pop("models", None)
        return remembered(whole)

    @property
    def report(self) -> Report | None:
        """What writes the report of the run; None: there is none."""
        report: Report | None = self.asked.report
        return report

    def writer(
        self, folder: Path, start: RunManifest, session: Session, whole: bool = True
    ) -> RunWriter:
        """Open a run for writing.

        Args:
            folder: where it goes.
            start: its manifest.
            session: the model and the samples.
            whole: whether it is all of the job; a part of it gets no report.
        """
        columns, report = session.card.task.columns, self.report if whole else None
        return RunWriter(
            folder, start, columns, self.asked.overwrite, self.asked.resume, report,
            session.show.note,
            (lambda: time_spent(self._begun, session.workers)) if whole else None,
        )  # fmt: skip

    def seconds(self) -> float:
        """Return the seconds since the call began."""
        return round(time.time() - self._started, 3)


def safe_name(name: str) -> str:
    """Turn the name of a document into a safe name for a folder."""
    return re.sub(r"[^\w.-]+", "_", name).lstrip(".")[:80] or "unnamed"


def _free_folder(label: str, sides: Mapping[str, ResolvedProfile], started: float) -> Path:
    """A folder below ``runs/`` that does not exist yet."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(started))
    names = "-vs-".join(safe_name(profile.name) for profile, _ in sides.values())
    base = Path("runs") / "-".join(filter(None, (stamp, label and safe_name(label), names)))
    folder, count = base, 1
    while folder.exists():
        count += 1
        folder = base.with_name(f"{base.name}-{count}")
    return folder
