r"""Find the stack that made a recording.

  simulate identify --recording board/recording.yaml --model model.yaml --data val/

A recording (docs/recordings.md) has the network's inputs or outputs, predictions, or frames of
some of the images. The profile that reproduces it is identified.yaml in the run's folder.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.identify import IdentifySummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--recording", required=True, metavar="FILE", help="the manifest of the recording")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--base", metavar="PROFILE",
        help="the profile whose options are changed: a path or a name; default: pillow_fp32",
    )  # fmt: skip
    place.add_argument(
        "--space", metavar="FILE",
        help="the options to try, in the form of a suite; default: all that run here",
    )  # fmt: skip
    add(
        "--minutes", type=float, metavar="M",
        help="end the search after so long, with the nearest stack so far; default: when nothing "
        "gets nearer, which may take many minutes",
    )  # fmt: skip
    common.inputs(parser, under=False)
    common.output(parser)


def run(options: argparse.Namespace) -> int:
    """Search and print the answer; the exit code says whether a stack was found."""
    from simulator.cli.progress import Bar
    from simulator.identify.run import BASE, identify

    with Bar(options.explain_plan) as bar:
        shared = common.shared(options, bar)
        result = identify(
            options.recording,
            base=options.base or BASE,
            space=options.space,
            model=options.model,
            minutes=options.minutes,
            **shared,
        )
    return show(result, options.json)


def show(result: Result[IdentifySummary], as_json: bool) -> int:
    """Print the answer; the exit code is 1 where no stack gives what was recorded."""
    from simulator.identify import screen

    common.show(result, as_json, screen.show)
    return cli.PASS if result.summary.exact else cli.GATE_FAILED
