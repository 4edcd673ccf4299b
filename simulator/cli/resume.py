"""Go on with a run that was interrupted; what it had finished is kept.

simulate resume runs/NAME
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simulator import cli
from simulator.errors import RunError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument("--workers", type=int, metavar="N", help="samples in flight")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Ask again for what the run was asked, after what it has."""
    from simulator.cli.progress import Bar
    from simulator.store import read_manifest

    folder = Path(options.run)
    manifest = read_manifest(folder)
    if manifest["status"] == "complete":
        print(f"{folder}: the run is complete; there is nothing to resume")
        return cli.PASS
    try:
        request = manifest["request"]
        command, arguments = request["command"], dict(request["arguments"])
        job = _JOBS[command]
    except (KeyError, TypeError) as error:
        raise RunError(f"{folder}: its manifest does not say what was asked for") from error
    with Bar() as bar:
        return int(
            job(
                {**arguments, "out": folder, "resume": True, "workers": options.workers},
                bar,
                options.json,
            )
        )


def _pair(arguments: dict[str, Any], bar: Any, as_json: bool) -> int:
    from simulator.cli.run import show
    from simulator.jobs.pair import simulate

    result = simulate(**arguments, progress=bar)
    bar.stop()
    return show(result, as_json)


def _explain(arguments: dict[str, Any], bar: Any, as_json: bool) -> int:
    from simulator.cli.explain import show
    from simulator.jobs.explain import explain

    result = explain(**arguments, progress=bar)
    bar.stop()
    return show(result, as_json)


def _sweep(arguments: dict[str, Any], bar: Any, as_json: bool) -> int:
    from simulator.cli.sweep import show
    from simulator.jobs.sweep import sweep

    results = sweep(models=[arguments.pop("model")], **arguments, progress=bar)
    bar.stop()
    return show(results, as_json)


def _worst(arguments: dict[str, Any], bar: Any, as_json: bool) -> int:
    from simulator.cli.worst import show
    from simulator.jobs.worst import worst

    result = worst(**arguments, progress=bar)
    bar.stop()
    return show(result, as_json)


_JOBS = {"run": _pair, "explain": _explain, "sweep": _sweep, "worst": _worst}
