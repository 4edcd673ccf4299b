"""Every ``summary.json``, and reading one whatever command has left it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from simulator.errors import RunError
from simulator.results.audits import AuditSummary, ReplaySummary
from simulator.results.faults import FaultsSummary
from simulator.results.identify import IdentifySummary
from simulator.results.json_text import parse_json
from simulator.results.pair import PairSummary
from simulator.results.robustness import RobustnessSummary
from simulator.results.shared import SCHEMA, Summary
from simulator.results.suites import ExplainSummary, StepSummary, SweepSummary, WorstSummary
from simulator.results.timed import LatencySummary, LoadSummary, TailSummary

SUMMARIES: Mapping[str, type[Summary]] = {
    "run": PairSummary,
    "explain": ExplainSummary,
    "sweep": SweepSummary,
    "worst": WorstSummary,
    "step": StepSummary,
    "latency": LatencySummary,
    "load": LoadSummary,
    "tail": TailSummary,
    "robustness": RobustnessSummary,
    "faults": FaultsSummary,
    "identify": IdentifySummary,
    "audit": AuditSummary,
    "replay": ReplaySummary,
}
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
