"""The checks that every experiment and command must pass, on a small run that it brings."""

from __future__ import annotations

import argparse
import html
import io
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from simulator.analysis.figures import of_run
from simulator.command.experiment import EXPERIMENTS, Command, Experiment
from simulator.command.options import Declared, Progress, declared
from simulator.command.parsing import add_options, values_of
from simulator.errors import RunError, UserError
from simulator.files import TEXT, read_file
from simulator.report import page, reading
from simulator.report.command import words
from simulator.report.words import PAGE
from simulator.results.layout import RECORDS, SUMMARY
from simulator.results.read import read_manifest, read_plan, read_summary, read_table
from simulator.testing.subject import expect, refused
from simulator.testing.suite import Suite, Verdict
from simulator.typed import Unit, plain

UNKNOWN = "conformance_knows_this_alone"
STOP = 2
"""How often an interrupted run has told its progress."""


class _Told(Progress):
    """Counts what a run tells of its progress.

    Args:
        stop: interrupt the run when it has told so much; None: never.
    """

    def __init__(self, stop: int | None = None) -> None:
        self.times, self._stop = 0, stop

    def advance(self, done: int, total: int) -> None:
        self.times += 1
        if self.times == self._stop:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class ExperimentSubject:
    """An experiment, and a small run of it.

    Attributes:
        experiment: the experiment, or a command that leaves no run.
        asked: its specimen: options by their names in Python.
        scratch: a folder for runs.
    """

    experiment: Command[Any]
    asked: Mapping[str, object]
    scratch: Path

    @cached_property
    def every(self) -> dict[str, Declared]:
        """Its options by name."""
        return declared(self.experiment.Options)

    @cached_property
    def told(self) -> _Told:
        """How often the finished run told its progress."""
        return _Told()

    @cached_property
    def finished(self) -> Any:
        """The result of a run that nothing disturbed; of an experiment a Result."""
        return self.run("finished", progress=self.told)

    @cached_property
    def request(self) -> Mapping[str, object]:
        """The options that its run says for another one."""
        return self.said(self.folder)

    @property
    def folder(self) -> Path:
        """The folder of the finished run."""
        of_run, found = isinstance(self.experiment, Experiment), self.finished
        return found.folder if of_run else self.scratch / "finished"

    def said(self, folder: Path) -> Mapping[str, object]:
        """Return the options that a folder says for another run."""
        if not isinstance(self.experiment, Experiment):
            return read_plan(folder).request.arguments
        found: Mapping[str, object] = read_manifest(folder)["request"]["arguments"]
        return found

    def run(self, name: str, **more: Any) -> Any:
        """Run it in a folder of the scratch; of several models the first one's result."""
        asked = {**self.asked, "out": self.scratch / name, **more}
        found = self.experiment.run(self.experiment.Options(**asked))
        return found[0] if self.experiment.several else found

    def place(self, name: str) -> Path:
        """Return where a run in another folder of the scratch leaves its manifest."""
        return self.scratch / name / self.folder.relative_to(self.scratch / "finished")


def every_option_is_explained(subject: ExperimentSubject) -> None:
    """What it does is said in a few words, and so is each option, in one line."""
    expect(subject.experiment.about, "about: a few words expected, got none")
    expect(subject.experiment.__doc__, "the help of the command (a docstring) expected, got none")
    for name, one in subject.every.items():
        text = one.about.help
        expect(
            text.strip() and "\n" not in text, f"{name}: one line of help expected, got {text!r}"
        )


def the_command_line_says_the_request(subject: ExperimentSubject) -> None:
    """The command line of its request, which pages show, is read as the request again."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, subject.experiment.Options)
    _, *lines = words(subject.experiment.name, subject.request)
    line = [word for each in lines for word in each]
    line += ["--out", "DIR"] if subject.every["out"].required else []
    try:
        found = values_of(parser.parse_args(line), subject.experiment.Options)
    except (argparse.ArgumentError, SystemExit) as error:
        expect(False, f"options of the command expected, got {' '.join(line)}: {error}")
    for name, value in _of_one_model(subject.experiment, subject.request).items():
        got = json.loads(json.dumps(found[name], default=str))
        expect(got == value, f"{name}: {value!r} expected from the command line, got {got!r}")


def _of_one_model(experiment: Command[Any], request: Mapping[str, object]) -> Mapping[str, object]:
    """A request as options; of several models it is about one, which may be the built-in one."""
    if not experiment.several:
        return request
    model = request["model"]
    rest = {name: value for name, value in request.items() if name != "model"}
    return rest | {"models": [] if model is None else [model]}


def an_interrupted_run_goes_on(subject: ExperimentSubject) -> str | None:
    """A run that is interrupted and asked for again by its request has the same records.

    It has the same figures too, times excepted, unless the experiment measures times. A command
    that leaves no run has the same files, stopped early and late.
    """
    of_run = isinstance(subject.experiment, Experiment)
    kept = _records if of_run else _files
    wanted = kept(subject.folder)
    for number in [STOP] if of_run else [STOP, max(STOP, subject.told.times - 1)]:
        name = f"stopped{number}"
        told, place = _Told(number), subject.place(name)
        try:
            subject.run(name, progress=told)
            expect(False, f"progress told {number} times or more expected, got {told.times}")
        except KeyboardInterrupt:
            pass
        again = subject.experiment.again(subject.said(place))
        more = {"resume": True} if of_run else {}
        subject.experiment.run(subject.experiment.Options(**again, out=place, **more))
        got = kept(place)
        expect(wanted.keys() == got.keys(), f"{sorted(wanted)} expected, got {sorted(got)}")
        for file, content in wanted.items():
            expect(got[file] == content, f"{file}: equal contents expected, got others")
        if isinstance(subject.experiment, Experiment) and not subject.experiment.in_process:
            figures = _figures(read_summary(subject.folder)[1])
            for path, value in _figures(read_summary(place)[1]).items():
                expect(
                    value == figures.get(path), f"{path}: {figures.get(path)} expected, got {value}"
                )
    return None if wanted else f"it has no {RECORDS}"


def _figures(summary: Any) -> dict[str, object]:
    """The figures of a summary by their paths, without times."""
    times = (Unit.MS, Unit.SECONDS, Unit.PER_SECOND)
    found = (figure for figure in of_run(summary) if not figure.about.hidden)
    return {figure.path: figure.value for figure in found if figure.about.unit not in times}


def _files(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without its own name."""
    own = str(folder.resolve()).encode()
    places = (place for place in sorted(folder.rglob("*")) if place.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().replace(own, b"") for path in places}


def _records(folder: Path) -> dict[str, str]:
    """The records of a run and of the runs below it, without their times."""
    found = {}
    for place in sorted(folder.rglob(RECORDS)):
        names = [name for name in pq.read_schema(place).names if name != "ns"]
        found[str(place.relative_to(folder))] = repr(read_table(place).select(names).to_pylist())
    return found


def its_summary_is_read_back(subject: ExperimentSubject) -> None:
    """``summary.json`` is what was returned, and has each field of its schema and no other."""
    given, folder = subject.finished.summary, subject.finished.folder
    try:
        found = read_summary(folder)[1]
    except RunError as error:
        expect(False, f"a summary that can be read expected, got {error}")
    same = plain(found) == plain(given)
    expect(same, "the summary that was returned expected, got another")
    written = json.loads(read_file(folder / SUMMARY, TEXT))
    lacking = set(plain(given)) ^ set(written)
    expect(not lacking, f"the fields of the schema expected, got a difference in {sorted(lacking)}")


def the_verdict_is_shown(subject: ExperimentSubject) -> None:
    """The summary has a verdict, the screen prints something, and the page has each sentence."""
    experiment, found = _of_runs(subject), subject.finished
    said = found.summary.verdict
    expect(said and said.lost, "a verdict of a sentence or more expected, got none")
    screen = io.StringIO()
    experiment.show([found], Console(file=screen, width=200))
    expect(screen.getvalue().strip(), "a screen expected, got nothing")
    if not experiment.reported:
        return
    experiment.report(found.folder)
    page = _text((found.folder / PAGE).read_text("utf-8"))
    for sentence in said.lost:
        expect(_text(html.escape(sentence)) in page, f"on the page {sentence!r} expected, got none")


def _of_runs(subject: ExperimentSubject) -> Experiment[Any]:
    assert isinstance(subject.experiment, Experiment)
    return subject.experiment


def _text(page: str) -> str:
    """What is read of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())


def every_figure_is_shown(subject: ExperimentSubject) -> None:
    """Another value of any figure of the summary is seen on the screen or on the page."""
    experiment, found = _of_runs(subject), subject.finished
    run = reading.read(found.folder) if experiment.reported else None

    def seen(summary: Any) -> Iterator[str]:
        screen = io.StringIO()
        experiment.show([replace(found, summary=summary)], Console(file=screen, width=200))
        yield screen.getvalue()
        if run is not None:
            yield page.html(replace(run, summary=summary))

    before = [*seen(found.summary)]
    for one in of_run(found.summary):
        if not one.held or one.about.hidden or one.value is None:
            continue
        other = one.value + (7 if isinstance(one.value, int) else 0.37)
        try:
            after = seen(_with(found.summary, one.path, other))
            same = all(new == old for new, old in zip(after, before, strict=True))
        except (ValueError, LookupError):  # a value that does not fit the others
            continue
        expect(not same, f"{one.path}: another value expected to be seen, got none that shows it")


def _with(summary: Any, path: str, value: float) -> Any:
    """A summary with another value at a path."""
    content = json.loads(summary.model_dump_json(by_alias=True))
    _put(content, path.split("."), value)
    return type(summary).model_validate_json(json.dumps(content))


def _put(node: Any, parts: Sequence[str], value: float) -> bool:
    """Change a value in place, and say whether the path is there; keys may contain dots."""
    for length in range(1, len(parts) + 1):
        key: Any = ".".join(parts[:length])
        if isinstance(node, list) and length == 1:
            key = int(key)
        elif not isinstance(node, dict) or key not in node:
            continue
        if length == len(parts):
            node[key] = value
            return True
        if _put(node[key], parts[length:], value):
            return True
    return False


def what_is_unknown_is_refused_first(subject: ExperimentSubject) -> None:
    """An option, a model and a figure that there is not are refused before any sample is run."""
    try:
        subject.experiment.again({**subject.request, UNKNOWN: 1})
        expect(False, f"{UNKNOWN} in a request: a refusal expected, got none")
    except TypeError:
        pass
    wrong: Mapping[str, object] = {
        "model": f"{UNKNOWN}.yaml",
        "models": [f"{UNKNOWN}.yaml"],
        "fail_on": [f"{UNKNOWN} > 1"],
    }
    for name in wrong.keys() & subject.every.keys():
        told = _Told()
        try:
            subject.run(f"wrong {name}", progress=told, **{name: wrong[name]})
            expect(False, f"{name} {UNKNOWN}: a refusal expected, got a run")
        except UserError:
            expect(not told.times, f"{name} {UNKNOWN}: a refusal at first expected, got samples")


def a_run_is_not_overwritten(subject: ExperimentSubject) -> None:
    """A folder that holds a run is refused in one line, and the run stays as it is.

    A command that leaves no run goes on in its folder; a call with another seed is refused.
    """
    more = {} if isinstance(subject.experiment, Experiment) else {"seed": 1}
    before = _files(subject.folder)
    refused("its own folder again", lambda: subject.run("finished", **more))
    expect(_files(subject.folder) == before, "the files as they were expected, got others")


COMMANDS = Suite(
    every_option_is_explained,
    the_command_line_says_the_request,
    an_interrupted_run_goes_on,
    what_is_unknown_is_refused_first,
    a_run_is_not_overwritten,
)
"""The checks of a command that leaves no run."""
SUITE: Suite[ExperimentSubject] = Suite.of(__name__)


def prove_experiment(what: str | type[Command[Any]]) -> list[Verdict]:
    """Run every check on an experiment, or on a command that leaves no run, with its specimen.

    Args:
        what: its name, if it is installed, or its class.

    Raises:
        UserError: there is no such experiment, or it brings no specimen.
        MissingLibrary: what the specimen needs is not installed.
    """
    experiment = EXPERIMENTS.of(what) if isinstance(what, str) else what()
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "specimen"
        files.mkdir()
        subject = ExperimentSubject(experiment, experiment.specimen(files), Path(folder))
        return (SUITE if isinstance(experiment, Experiment) else COMMANDS).prove(subject)
