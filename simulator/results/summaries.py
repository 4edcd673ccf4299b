"""Every ``summary.json``, and reading one whatever command has left it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from simulator.command.experiment import EXPERIMENTS, place
from simulator.errors import RunError
from simulator.results.json_text import parse_object
from simulator.results.shared import SCHEMA, Summary

PARTS = {
    "load": "simulator.results.timed:LoadSummary",
    "step": "simulator.results.suites:StepSummary",
}
"""Summaries of no experiment: of ``latency`` under LoadGen's load, and of a step of ``worst``."""


def shape_of(command: str) -> type[Summary]:
    """Return the model of the summaries of a command, or of a part of one.

    Raises:
        UserError: there is no such experiment here.
    """
    found: type[Summary] = place(PARTS.get(command) or EXPERIMENTS[command].summary)
    return found


def commands() -> list[str]:
    """Return the commands that leave summaries, and the parts of commands that do."""
    return [*(one.name for one in EXPERIMENTS if one.summary), *PARTS]


def parse(content: str | bytes, where: str) -> Summary:
    """Read a ``summary.json``.

    Args:
        content: of the file.
        where: the file, for messages.

    Raises:
        RunError: it is not a summary of this version: one line.
    """
    found = parse_object(content, where)
    refuse_other_version(found, where)
    command = found.get("command")
    kind = "load" if command == "latency" and found.get("scenario") != "SingleStream" else command
    if not isinstance(kind, str) or not (kind in PARTS or kind in EXPERIMENTS):
        raise RunError(f"{where}: command: {command!r} is no experiment that is installed here")
    shape = shape_of(kind)
    try:
        summary = shape.model_validate_json(content, strict=True)
    except ValidationError as error:
        raise RunError(f"{where}: {first_problem(error)}") from error
    if missing := [key for key in summary if key not in found]:
        raise RunError(f"{where}: {missing[0]}: every summary has one")
    return summary


def refuse_other_version(found: Mapping[str, object], where: str) -> None:
    """Refuse a summary of a version that this program does not read.

    Raises:
        RunError: it is of another one; the message says what to do.
    """
    schema = found.get("schema")
    if type(schema) is int and schema != SCHEMA:
        age = "an older" if schema < SCHEMA else "a newer"
        raise RunError(
            f"{where}: written by {age} version (schema {schema}, this one reads {SCHEMA}); "
            "use that version, or start a new run"
        )


def first_problem(error: ValidationError) -> str:
    """Return the first of a model's complaints, and how many more there are, in one line."""
    problems = error.errors(include_url=False)
    first = problems[0]
    place = ".".join(map(str, first["loc"]))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{place}: {' '.join(str(first['msg']).split())}{more}"
