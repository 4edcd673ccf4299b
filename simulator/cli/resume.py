"""Continue an interrupted run; what it had finished is kept.

simulate resume runs/NAME

The exit code is that of the run: 1 where a rule of its gate failed, also if there is nothing left
to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from simulator.cli import common, supervised
from simulator.cli.exits import GATE_FAILED, PASS
from simulator.data.address import again
from simulator.errors import RunError, UserError, one_line, shortened


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
    from simulator.cli.experiment import show
    from simulator.cli.progress import Bar
    from simulator.command.experiment import EXPERIMENTS
    from simulator.experiments.job import Result
    from simulator.results.read import read_manifest, read_summary
    from simulator.results.store import complete

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
        known = summary.command in EXPERIMENTS.names  # else a pass of a run, which has no verdict
        passed = EXPERIMENTS.of(summary.command).passed(summary) if known else summary.gate.passed
        return PASS if passed else GATE_FAILED
    try:
        request = manifest["request"]
        experiment = EXPERIMENTS.of(request["command"])
        arguments = experiment.again(request["arguments"])
        if options.data is not None:
            arguments["data"] = again(str(arguments.get("data")), options.data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{folder}: its manifest has no valid request to repeat: {shortened(one_line(error))}"
        ) from error
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
        found = experiment.run(asked)
    sign(folder)
    return show(experiment, found if isinstance(found, list) else [found], options.json)


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
