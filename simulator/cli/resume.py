"""Continue an interrupted run; what it had finished is kept.

simulate resume runs/NAME

The exit code is that of the run: 1 where a rule of its gate failed, also if there is nothing left
to do.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from simulator.cli import common, supervised
from simulator.data.address import again
from simulator.errors import RunError, UserError, one_line, shortened, unknown

if TYPE_CHECKING:
    from simulator.results.store import Report

EXPERIMENTS = {
    "run": "simulator.experiments.compare:compare",
    "explain": "simulator.experiments.explain:explain",
    "sweep": "simulator.experiments.sweep:sweep",
    "worst": "simulator.experiments.worst:worst",
    "robustness": "simulator.robustness.run:robustness",
    "faults": "simulator.faults.run:faults",
    "repair": "simulator.repair.run:repair",
    "identify": "simulator.identify.run:identify",
    "latency": "simulator.latency.measure:latency",
    "tail": "simulator.latency.tail:tail",
    "audit": "simulator.audit.run:audit",
    "replay": "simulator.audit.replay:replay",
}
"""The function that is called for each command."""


BY_MODEL = ("sweep", "robustness")
"""Commands that take several models, and leave a run for each."""
_OURS = ("out", "resume", "workers", "progress", "report", "executor")
"""Arguments that this command gives."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument("--workers", type=int, metavar="N", help="samples processed at once")
    parser.add_argument(
        "--executor", metavar="NAME[:PLACE]", help="what runs the samples; default: as before"
    )
    parser.add_argument(
        "--data", metavar="URL", help="the URL of the samples again, where it had a query"
    )
    common.timeout(parser)
    common.signer(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Repeat the request of the run, skipping finished samples."""
    from simulator.cli.progress import Bar
    from simulator.results.read import read_manifest, read_summary

    folder = Path(options.run)
    manifest = read_manifest(folder)
    if options.sign and manifest.get("command") != "audit":
        raise UserError(f"{folder}: not an audit; --sign is for the bundle of one")
    sign = common.signing(options.sign)
    if manifest["status"] == "complete":
        sign(folder)
        print(f"{folder}: the run is complete; there is nothing to resume", file=sys.stderr)
        summary = read_summary(folder)[1]
        if options.json:
            common.print_json(summary)
        return common.verdict(summary)
    try:
        request = manifest["request"]
        command, arguments = request["command"], dict(request["arguments"])
        module, _, function = EXPERIMENTS[command].partition(":")
        if command in BY_MODEL:
            arguments["models"] = [arguments.pop("model")]
        job = getattr(importlib.import_module(module), function)
        _check(job, arguments)
        if options.data is not None:
            arguments["data"] = again(str(arguments.get("data")), options.data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{folder}: its manifest has no valid request to repeat: {shortened(one_line(error))}"
        ) from error
    show = importlib.import_module(f"simulator.cli.{command}").show
    report = common.report_all if command == "audit" else common.report
    if manifest["status"] == "reporting":
        with Bar() as bar:
            found = _reported(folder, command, report, bar.note)
        sign(folder)
        return int(show(found, options.json))
    executor = options.executor or _executor(folder, manifest)
    code = supervised.apart(executor)
    if code is not None:
        return code
    with Bar() as bar:
        found = job(
            **arguments, out=folder, resume=True, workers=options.workers, progress=bar,
            report=report, executor=executor,
        )  # fmt: skip
    sign(folder)
    return int(show(found, options.json))


def _executor(folder: Path, manifest: dict[str, Any]) -> str:
    """The executor of a run; an address, which anyone may have edited, is never taken from it.

    Raises:
        RunError: it was a cluster elsewhere.
        UserError: there is no such executor here.
    """
    from simulator.pipeline.executor import EXECUTORS

    known = manifest.get("executor")
    known = known if isinstance(known, dict) else {}
    name, place = str(known.get("name", "local")), str(known.get("place", ""))
    EXECUTORS.require(name)
    if place:
        raise RunError(
            f"{folder}: ran on the cluster at {shortened(place)}; resume it there with "
            f"--executor {name}:{shortened(place)}, or here with --executor local"
        )
    return name


def _check(job: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Hold the arguments of a manifest, which anyone may have edited, against the signature.

    Raises:
        TypeError: one is missing or unknown.
        ValueError: one is of another type.
    """
    from pydantic import TypeAdapter, ValidationError

    from simulator.experiments.job import Options

    inspect.signature(job).bind(**arguments)
    hints = get_type_hints(job) | get_type_hints(Options)
    for name, value in arguments.items():
        if name not in hints or name in _OURS:
            raise TypeError(unknown("argument", name, hints))
        try:
            TypeAdapter(hints[name]).validate_python(value, strict=True)
        except ValidationError as error:
            raise ValueError(f"{name}: {error.errors()[0]['msg']}") from error


def _reported(folder: Path, command: str, report: Report, note: Callable[[str], None]) -> Any:
    """Write the report that is all a run lacks; return what its command shows."""
    from simulator.experiments.job import Result
    from simulator.results.read import read_summary
    from simulator.results.store import complete

    complete(folder, report, note)
    found = Result(read_summary(folder)[1], folder)
    return [found] if command in BY_MODEL else found
