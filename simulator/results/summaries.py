"""Every ``summary.json``, and reading one whatever command has left it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from simulator.errors import RunError
from simulator.results.json_text import parse_json
from simulator.results.shared import SCHEMA, Summary


class _Lazy(Mapping[str, type[Summary]]):
    """Imports the model of a command when it is asked for: building all of them takes long."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, command: str) -> type[Summary]:
        module, _, name = self._places[command].partition(".")
        found: type[Summary] = getattr(import_module(f"simulator.results.{module}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


SUMMARIES: Mapping[str, type[Summary]] = _Lazy(
    {
        "run": "pair.PairSummary",
        "explain": "suites.ExplainSummary",
        "sweep": "suites.SweepSummary",
        "worst": "suites.WorstSummary",
        "step": "suites.StepSummary",
        "latency": "timed.LatencySummary",
        "load": "timed.LoadSummary",
        "tail": "timed.TailSummary",
        "robustness": "robustness.RobustnessSummary",
        "faults": "faults.FaultsSummary",
        "repair": "repair.RepairSummary",
        "identify": "identify.IdentifySummary",
        "audit": "audits.AuditSummary",
        "replay": "audits.ReplaySummary",
    }
)
"""By command; ``load`` is ``latency`` under LoadGen's load, ``step`` a part of ``worst``."""


def parse(content: str | bytes, where: str) -> Summary:
    """Read a ``summary.json``.

    Args:
        content: of the file.
        where: the file, for messages.

    Raises:
        RunError: it is not a summary of this version: one line.
    """
    try:
        found = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{where}: not a JSON object")
    refuse_other_version(found, where)
    command = found.get("command")
    kind = "load" if command == "latency" and found.get("scenario") != "SingleStream" else command
    shape = SUMMARIES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise RunError(f"{where}: command: {command!r} is not one of ours")
    try:
        summary = shape.model_validate_json(content, strict=True)
    except ValidationError as error:
        raise RunError(f"{where}: {first_problem(error)}") from error
    if missing := [key for key in summary if key not in found]:
        raise RunError(f"{where}: {missing[0]}: every summary has one")
    return summary


def refuse_other_version(found: Mapping[str, Any], where: str) -> None:
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
