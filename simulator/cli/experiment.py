"""The command line of commands: their arguments follow from their options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.cli import common
from simulator.cli.exits import GATE_FAILED, PASS
from simulator.command.experiment import Command, Experiment, place
from simulator.command.options import Progress, Samples, declared
from simulator.command.parsing import add_options, values_of
from simulator.errors import UserError

if TYPE_CHECKING:
    from simulator.experiments.job import Result


def arguments(parser: argparse.ArgumentParser, command: Command[Any]) -> None:
    """Declare the options of a command; of an experiment also those of every experiment."""
    add = parser.add_argument
    add_options(parser, command.Options)
    every = set(declared(command.Options))
    if issubclass(command.Options, Samples) and {"model", "models"} & every:
        add("--example", metavar="NAME",
            help="a built-in model and its samples, in place of --model: image (the default), "
            "text, audio")  # fmt: skip
    if isinstance(command, Experiment):
        _of_runs(parser, command)
    if command.json:
        add("--json", action="store_true", help="print the summary as JSON, and nothing else")


def _of_runs(parser: argparse.ArgumentParser, experiment: Experiment[Any]) -> None:
    add = parser.add_argument
    if experiment.tables:
        common.form(parser, "format of the table")
    if len(experiment.tables) > 1:
        add("--table", choices=experiment.tables, metavar="NAME",
            help=f"which of its tables: {', '.join(experiment.tables)}; as Markdown, unless "
            "--format says otherwise")  # fmt: skip
    if experiment.signed:
        common.signer(parser)
    common.timeout(parser)
    add("--explain-plan", action="store_true", help="print the plan before it runs")
    add("--explain-time", action="store_true", help="print at the end where the time went")


def run(command: Command[Any], given: argparse.Namespace) -> int:
    """Run a command and print its result; the exit code is that of its gate."""
    from simulator.cli.progress import Bar

    values = values_of(given, command.Options)
    if isinstance(command, Experiment):
        return _experiment(command, given, values)
    with Bar() as bar:
        asked = command.Options(**values, progress=bar)
        if isinstance(model := values.get("model"), str):
            _say_of(Path(model), bar)
        found = command.run(asked)
    return finished(command, found, str(asked.out), command.json and given.json)


def _say_of(model: Path, bar: Progress) -> None:
    """Say what is assumed of a model file; a run has it among its notes."""
    from simulator.contract.model_format import format_of
    from simulator.model.card import Card

    if format_of(model) is not None:
        bar.note(Card(model, draft=True).told)


def finished(command: Command[Any], found: Any, folder: str, as_json: bool) -> int:
    """Print the result of a command that leaves no run; the exit code is that of its gate."""
    if as_json:
        common.print_json(found)
    else:
        command.print_result(found, folder, common.console())
    return PASS if command.passed(found) else GATE_FAILED


def _experiment(
    experiment: Experiment[Any], given: argparse.Namespace, values: dict[str, object]
) -> int:
    from simulator.cli.progress import Bar

    sign = common.signing(getattr(given, "sign", None))
    with Bar(given.explain_plan) as bar:
        report = experiment.report if experiment.reported else None
        asked = experiment.Options(**values, report=report, progress=bar)
        found = experiment.run(asked)
    results = found if isinstance(found, list) else [found]
    for result in results:
        sign(result.folder)
    table = getattr(given, "table", None)
    form = common.form_of(getattr(given, "format", "text"), table)
    code = show(experiment, results, given.json, form, table)
    if experiment.compared and len(results) > 1 and given.out:
        told = "quiet" if given.json or form != "text" else "text"
        code = max(code, _compare(experiment, results, asked, told))
    return code


def _compare(
    experiment: Experiment[Any], results: Sequence[Result[Any]], asked: Any, form: str
) -> int:
    """Compare the models; those that cannot be compared have their own reports all the same."""
    folders = [result.folder for result in results]
    try:
        code: int = place(experiment.compared)(
            folders, Path(asked.out), common.console(), form, asked.allow_failed
        )
    except UserError as error:
        print(f"note: the models are not compared: {error}", file=sys.stderr)
        return PASS
    return code


def show(
    experiment: Experiment[Any],
    found: Sequence[Result[Any]],
    as_json: bool,
    form: str = "text",
    table: str | None = None,
) -> int:
    """Print the runs of a call; the exit code is the worst of their gates'.

    Args:
        experiment: whose runs they are.
        found: one; of several models one for each.
        as_json: print the summaries as JSON, and nothing else.
        form: ``text``, or a form of tables.
        table: of those that it has to choose from.
    """
    from simulator.report.words import PAGE

    summaries = [result.summary for result in found]
    if as_json:
        common.print_json(summaries if experiment.several else summaries[0])
    elif form != "text":
        print(experiment.printed(summaries, form, table), end="")
    elif experiment.together:
        _screen(experiment, found, len(found) > 1)
    else:
        for result in found:
            _screen(experiment, [result], several=False)
    if form != "text" and not as_json:
        for result in found:
            lines = [f"run: {result.folder}", f"report: {result.folder / PAGE}"]
            print("\n".join([*experiment.notes(result.summary), *lines]), file=sys.stderr)
    passed = all(experiment.passed(summary) for summary in summaries)
    return PASS if passed else GATE_FAILED


def _screen(experiment: Experiment[Any], found: Sequence[Result[Any]], several: bool) -> None:
    from simulator.report.words import PAGE

    for result in found:
        common.lead(result.summary, result.summary.model if several else "")
    experiment.show(found, common.console())
    if experiment.reported:
        for result in found:
            print(f"report: {result.folder / PAGE}")
