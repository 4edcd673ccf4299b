"""Continue an interrupted run, or a folder of corrupt, finetune, quantize or sensitivity.

simulate resume runs/NAME

What it had finished is kept. The exit code is that of the run: 1 where a rule of its gate failed,
also if there is nothing left to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.cli import common, supervised
from simulator.cli.exits import GATE_FAILED, PASS
from simulator.command.experiment import EXPERIMENTS, Command, Experiment
from simulator.data.address import again
from simulator.errors import RunError, UserError, one_line, shortened
from simulator.results.layout import PLAN


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", metavar="RUN", help="the run folder, or that of a command")
    parser.add_argument("--workers", type=int, metavar="N", help="samples processed at once")
    parser.add_argument(
        "--executor", metavar="NAME[:PLACE]", help="what runs the samples; default: as before"
    )
    parser.add_argument(
        "--data", metavar="URL", help="the URL of the samples again, where it had a query"
    )
    common.allow_code(parser)
    common.timeout(parser)
    common.signer(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Repeat the request of the run, skipping finished samples."""
    from simulator.cli.experiment import show
    from simulator.cli.progress import Bar
    from simulator.experiments.claim import trusting
    from simulator.experiments.job import Result
    from simulator.results.read import read_manifest, read_summary
    from simulator.results.store import complete

    folder = Path(options.run)
    if (folder / PLAN).is_file():
        return _command(folder, options)
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
        known = summary.command in EXPERIMENTS.names  # else a pass of a run, which has no verdict
        passed = EXPERIMENTS.of(summary.command).passed(summary) if known else summary.gate.passed
        return PASS if passed else GATE_FAILED
    experiment, arguments = _request(folder, manifest, options.data, Experiment)
    if manifest["status"] == "reporting":
        with Bar() as bar:
            complete(folder, experiment.report, bar.note)
        sign(folder)
        return show(experiment, [Result(read_summary(folder)[1], folder)], options.json)
    executor = options.executor or _executor(folder, manifest)
    code = supervised.apart(executor)
    if code is not None:
        return code
    with Bar() as bar:
        asked = experiment.Options(
            **arguments, out=folder, resume=True, workers=options.workers, progress=bar,
            report=experiment.report if experiment.reported else None, executor=executor,
        )  # fmt: skip
        with trusting(manifest["request"], options.allow_code):
            found = experiment.run(asked)
    sign(folder)
    return show(experiment, found if isinstance(found, list) else [found], options.json)


def _command(folder: Path, options: argparse.Namespace) -> int:
    """Go on with a command that leaves no run."""
    from simulator.cli.experiment import finished
    from simulator.cli.progress import Bar
    from simulator.command.options import declared
    from simulator.experiments.claim import trusting
    from simulator.results.read import read_plan

    plan = read_plan(folder).model_dump()
    command, arguments = _request(folder, plan, options.data, Command)
    taken = {"json"} if command.json else set()
    taken |= declared(command.Options).keys()
    for name in ("workers", "executor", "sign", "json"):
        if getattr(options, name) and name not in taken:
            raise UserError(f"{folder}: --{name} is not for {command.name}; leave it out")
    if options.workers is not None:
        arguments["workers"] = options.workers
    with Bar() as bar, trusting(plan["request"], options.allow_code):
        found = command.run(command.Options(**arguments, out=folder, progress=bar))
    return finished(command, found, str(folder), options.json)


def _request(
    folder: Path, content: Mapping[str, Any], data: str | None, kind: type[Command[Any]]
) -> tuple[Any, dict[str, Any]]:
    """Return the command that a folder asks for again, and its options.

    Args:
        folder: that of the request.
        content: what it says, which anyone may have edited.
        data: the URL of the samples again.
        kind: of the commands that leave such a folder: of runs, or any.

    Raises:
        RunError: the request is not valid.
    """
    try:
        request = content["request"]
        command = EXPERIMENTS.of(request["command"])
        if isinstance(command, Experiment) != (kind is Experiment):
            raise ValueError(f"{command.name} leaves no such folder")
        arguments = command.again(request["arguments"])
        if data is not None:
            arguments["data"] = again(str(arguments.get("data")), data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        where = "manifest" if kind is Experiment else "plan"
        raise RunError(
            f"{folder}: its {where} has no valid request to repeat: {shortened(one_line(error))}"
        ) from error
    return command, arguments


def _executor(folder: Path, manifest: Mapping[str, object]) -> str:
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
