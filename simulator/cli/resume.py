"""Continue an interrupted run; what it had finished is kept.

simulate resume runs/NAME
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from simulator import cli
from simulator.cli import common
from simulator.errors import RunError

EXPERIMENTS = {
    "run": "simulator.experiments.compare:compare",
    "explain": "simulator.experiments.explain:explain",
    "sweep": "simulator.experiments.sweep:sweep",
    "worst": "simulator.experiments.worst:worst",
    "latency": "simulator.latency.measure:latency",
    "tail": "simulator.latency.tail:tail",
    "audit": "simulator.audit.run:audit",
    "replay": "simulator.audit.replay:replay",
}
"""The function that is called for each command."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument("--workers", type=int, metavar="N", help="samples processed at once")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Repeat the request of the run, skipping finished samples."""
    from simulator.cli.progress import Bar
    from simulator.results.read import read_manifest, read_summary

    folder = Path(options.run)
    manifest = read_manifest(folder)
    if manifest["status"] == "complete":
        print(f"{folder}: the run is complete; there is nothing to resume", file=sys.stderr)
        if options.json:
            common.print_json(read_summary(folder)[1])
        return cli.PASS
    try:
        request = manifest["request"]
        command, arguments = request["command"], dict(request["arguments"])
        module, _, function = EXPERIMENTS[command].partition(":")
        if command == "sweep":
            arguments["models"] = [arguments.pop("model")]
    except (KeyError, TypeError) as error:
        raise RunError(f"{folder}: its manifest has no valid request to repeat") from error
    job = getattr(importlib.import_module(module), function)
    with Bar() as bar:
        found = job(**arguments, out=folder, resume=True, workers=options.workers, progress=bar)
    return int(importlib.import_module(f"simulator.cli.{command}").show(found, options.json))
