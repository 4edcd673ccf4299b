"""One call of an experiment: its options, its run folder and its result."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

import pyarrow as pa

from simulator.analysis import gate, outcomes
from simulator.conditions.condition import under
from simulator.data.address import Root, absolute, root_of
from simulator.errors import UserError, unknown
from simulator.experiments.decision import Decision
from simulator.experiments.session import Progress, Session
from simulator.pipeline.isolation import Isolate
from simulator.pipeline.stack import Chosen
from simulator.profile.load import find
from simulator.report.command import Asked
from simulator.report.verdict import concluded
from simulator.results.lock import refuse_held
from simulator.results.read import read_run
from simulator.results.shared import Gate, Summary
from simulator.results.store import Report, RunWriter
from simulator.results.taken import check_free
from simulator.results.time_spent import time_spent
from simulator.spent import Work, mark, spending


class Options(TypedDict, total=False):
    """Keyword arguments that all experiments have.

    Attributes:
        data: a folder of images, or a data card; the built-in images by default.
        limit: take a random subset of this many samples.
        seed: of the subset, the calibration samples and the bootstrap; 0 by default.
        out: the run folder; a new one below ``runs/`` by default.
        overwrite: replace a run that is already in *out*.
        resume: continue the run that is in *out*.
        report: called with the run's folder to write its report, before the run is marked
            complete; no report by default.
        workers: how many samples are processed at once; the number of cores by default.
        memory: MiB that these samples may need together; 2048 by default.
        progress: called as the run goes on.
        under: a condition that is applied to every stack, ``NAME:PARAMETERS``; none by default.
        trial: which random draw of the condition, from 0; 0 by default.
        executor: the name of the executor; ``local`` (threads of this process) by default;
            ``ray`` (processes of a cluster on this machine), ``ray:HOST:PORT`` (of that cluster).
        isolate: which files are decoded in a worker process, so that a decoder that dies skips the
            sample and does not end the run: ``auto`` (the default) those of a format that the
            decoder was seen to die of, ``always`` all, ``never`` none.
    """

    data: str | Path | None
    limit: int | None
    seed: int
    out: str | Path | None
    overwrite: bool
    resume: bool
    report: Report | None
    workers: int | None
    memory: int | None
    progress: Progress | None
    under: str | None
    trial: int
    executor: str
    isolate: Isolate


DEFAULTS: dict[str, Any] = dict.fromkeys(Options.__annotations__) | {
    "seed": 0,
    "overwrite": False,
    "resume": False,
    "trial": 0,
    "executor": "local",
    "isolate": "auto",
}
IN_PROCESS = ("latency", "tail", "faults", "identify")
"""Commands whose samples no executor runs: they measure this process, or search what runs here."""
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
    def passed(self) -> bool:
        """Whether no gate rule failed."""
        return self.summary.gate.passed

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
        :func:`simulator.results.store.schema`.

        Raises:
            RunError: the run folder is gone, or it is an audit: its runs in ``pairs/`` have them.
        """
        return read_run(self.folder)[2]

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return f"<Result of {self.summary.command}: gate {verdict}, {self.folder}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: each figure of the summary that is one number, and the report."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self._figures().items()
        )
        link = quote(os.path.relpath(self.report))
        return f'<table>{rows}</table><p><a href="{link}">report</a></p>'

    def _figures(self) -> dict[str, str | int | float]:
        verdict = {"gate": "passed" if self.passed else "FAILED"}
        found = self.summary.model_dump(by_alias=True)
        hidden = ("schema", "seconds", "workers")
        plain = {k: v for k, v in found.items() if isinstance(v, str | int | float)}
        return verdict | {k: v for k, v in plain.items() if k not in hidden}


def judged(
    summary: S,
    rules: Sequence[gate.Rule],
    took: Mapping[str, Any],
    undecided: str = "fail",
    decision: Decision | None = None,
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
    outcome = Gate.model_validate(outcomes.evaluate(rules, whole, undecided))
    if decision:
        outcome = decision.gate(outcome, undecided)
    return concluded(whole.model_copy(update={"gate": outcome}), asked)


def borne_as_asked(allow_failed: str | None) -> dict[str, Any]:
    """Return the argument of a request, where it was given."""
    return {} if allow_failed is None else {"allow_failed": allow_failed}


class Job:
    """One call of an experiment, from its options to its run folder.

    Attributes:
        command: its name, by which ``simulate resume`` finds it again.

    Args:
        command: see above.
        model: a model card; the built-in model by default.
        options: the caller's options.

    Raises:
        TypeError: there is no such option.
    """

    def __init__(self, command: str, model: str | Path | None, options: Options) -> None:
        for name in options:
            if name not in Options.__annotations__:
                raise TypeError(unknown("option", name, Options.__annotations__))
        self._started, self._begun = time.time(), mark()
        self.command, self._model, self._options = command, model, options
        self._seed = options.get("seed", 0)
        self._resume = options.get("resume", False)
        self._overwrite = options.get("overwrite", False)
        self._under = under(options.get("under"), options.get("trial", 0))
        if self._under and (why := self._under.condition.erased):
            raise UserError(f"--under {why}")

    def folder(self, label: str, sides: Mapping[str, Chosen], below: str | None = None) -> Path:
        """Return the run folder.

        Args:
            label: the first part of the name of a new folder below ``runs/``.
            sides: the stacks; their profiles' names are the second part.
            below: the name of the run's folder inside *out*, where *out* holds several runs;
                ignored for a run that is resumed, which is in *out* itself.
        """
        out = self._options.get("out")
        if not out:
            return _free_folder(label, sides, self._started)
        return Path(out) / below if below and not self._resume else Path(out)

    def refuse_taken(self, folder: Path) -> None:
        """Refuse a folder that holds a run, before anything is computed.

        Raises:
            RunError: the folder holds a run, and neither *overwrite* nor *resume* is set; or
                another process writes into it.
        """
        if self._resume:
            refuse_held(folder)
        else:
            check_free(folder, self._overwrite)

    def session(self) -> Session:
        """Open the model and the images.

        Raises:
            UserError: one of them cannot be used; or another executor is asked for, and this
                command runs its stacks in its own process.
        """
        given = self._options
        if self.command in IN_PROCESS and given.get("executor", "local") != "local":
            raise UserError(
                f"{self.command}: runs its stacks in its own process, so --executor "
                f"{given['executor']} would change nothing; leave it out, and start it on the "
                "machine that it is about"
            )
        with spending(Work.PREPARING):
            return Session(
            self._model, given.get("data"), given.get("limit"), self._seed,
            given.get("workers"), given.get("memory"), given.get("progress"), self._under,
            given.get("executor", "local"), given.get("isolate", "auto"),
        )  # fmt: skip

    def request(self, **own: Any) -> dict[str, Any]:
        """Return the call as JSON, so that another process can repeat it; paths are absolute.

        Args:
            own: the arguments that only this experiment has.
        """
        given = self._options
        arguments = own | {
            "model": self._model,
            "data": given.get("data"),
            "limit": given.get("limit"),
            "seed": self._seed,
        }
        arguments |= self.circumstances()
        places: dict[str, Callable[[str], Root]] = {
            "train": find,
            "deploy": find,
            "model": Path,
            "data": root_of,
        }
        for name, place in places.items():
            if arguments.get(name) is not None:
                arguments[name] = absolute(place(arguments[name]))
        if "profiles" in arguments:
            arguments["profiles"] = [str(find(one).resolve()) for one in arguments["profiles"]]
        return {"command": self.command, "arguments": arguments}

    def circumstances(self) -> dict[str, Any]:
        """Return *under*, *trial* and *isolate*, where the call gives another than the default."""
        found: dict[str, Any] = {}
        if self._under is not None:
            found |= {"under": self._under.condition.text, "trial": self._under.trial}
        if "isolate" in self._options and self._options["isolate"] != DEFAULTS["isolate"]:
            found["isolate"] = self._options["isolate"]
        return found

    @property
    def report(self) -> Report | None:
        """What writes the report of the run; None: there is none."""
        return self._options.get("report")

    def writer(
        self, folder: Path, start: dict[str, Any], session: Session, whole: bool = True
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
            folder, start, columns, self._overwrite, self._resume, report, session.show.note,
            (lambda: time_spent(self._begun, session.workers)) if whole else None,
        )  # fmt: skip

    def seconds(self) -> float:
        """Return the seconds since the call began."""
        return round(time.time() - self._started, 3)


def safe_name(name: str) -> str:
    """Turn the name of a document into a safe name for a folder."""
    return re.sub(r"[^\w.-]+", "_", name).lstrip(".")[:80] or "unnamed"


def _free_folder(label: str, sides: Mapping[str, Chosen], started: float) -> Path:
    """A folder below ``runs/`` that does not exist yet."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(started))
    names = "-vs-".join(safe_name(profile.name) for profile, _ in sides.values())
    base = Path("runs") / "-".join(filter(None, (stamp, label and safe_name(label), names)))
    folder, count = base, 1
    while folder.exists():
        count += 1
        folder = base.with_name(f"{base.name}-{count}")
    return folder
