r"""Put faults into weights and activations of the artifacts that really run.

  simulate faults --campaign neurons-transient --profile ort_int8 --model model.yaml --data val/ \
           --fail-on "deploy.SDC > 1%"
  simulate faults --campaign weights-transient --train pillow_fp32 --deploy ort_int8
  simulate faults replay RUN --fault 17

A campaign is a YAML file (docs/faults.md). Each fault is a row of faults.parquet in the run folder.
A gate rule on SDC or DUE judges the rate; deploy.SDC.high is the upper end of its 95 % interval.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common
from simulator.errors import UserError

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.faults import FaultsSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    parser.usage = (
        "simulate faults --campaign CAMPAIGN [options]\n"
        "       simulate faults replay RUN --fault N [--json]"
    )
    add("action", nargs="?", metavar="replay", help="run one fault of a finished run again")
    add("run", nargs="?", metavar="RUN", help="of replay: the run's folder")
    add("--fault", type=int, metavar="N", help="of replay: the number of the fault")
    add(
        "--campaign", metavar="CAMPAIGN",
        help="which bits are hit: a path, or neurons-transient, weights-permanent, ...",
    )  # fmt: skip
    add("--faults", type=int, metavar="N", help="so many faults instead of the campaign's number")
    add(
        "--until", type=_width, metavar="N%",
        help="go on until the interval of SDC is no wider in any stack, e.g. 0.5%%",
    )  # fmt: skip
    add(
        "--protect", choices=("clip", "min_max"),
        help="also measure each stack with a range restriction: Clip, or Max and Min, after layers",
    )  # fmt: skip
    common.stacks(parser)
    common.inputs(parser, under=False)
    common.output(parser)
    add(
        "--format", choices=("text", "markdown", "latex", "csv"), default="text",
        help="format of the table",
    )  # fmt: skip
    common.gate(parser, "deploy.SDC > 1%%")


def run(options: argparse.Namespace) -> int:
    """Run a campaign, or one fault of it again."""
    from simulator.cli.progress import Bar
    from simulator.faults.run import faults

    if options.action is not None:
        return _replay(options)
    if options.fault is not None:
        raise UserError("--fault: for replay RUN only; the number of faults is --faults")
    if options.campaign is None:
        from simulator.faults.campaign import builtin_campaigns

        raise UserError(f"--campaign: needed: a path, or {', '.join(builtin_campaigns())}")
    with Bar(options.explain_plan) as bar:
        result = faults(
            options.campaign,
            options.profiles,
            train=options.train,
            deploy=options.deploy,
            model=options.model,
            number=options.faults,
            protect=options.protect,
            until=options.until,
            overrides=options.overrides,
            fail_on=options.fail_on,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            **common.shared(options, bar),
        )
    return show(result, options.json, options.format)


def show(result: Result[FaultsSummary], as_json: bool, form: str = "text") -> int:
    """Print the rates; the exit code is the gate's."""
    from simulator.faults import over_time, screen, tables

    summary = result.summary
    lines = f"run: {result.folder}\nreport: {common.report_of(result.folder)}"
    if as_json:
        common.print_json(summary)
    elif form != "text":
        print(tables.FORMS[form](summary), end="")
        print(lines, file=sys.stderr)
    else:
        common.lead(summary)
        screen.show(summary, common.console())
        over_time.show(summary, common.console())
        print(lines)
    return common.verdict(summary)


def _width(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 0)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(
            f"a width in % expected, for example 0.5%, got {text!r}"
        ) from None


def _replay(options: argparse.Namespace) -> int:
    from simulator.faults import screen
    from simulator.faults.replay import replay

    if options.action != "replay" or options.run is None or options.fault is None:
        raise UserError("simulate faults replay RUN --fault N expected")
    _refuse(options)
    found = replay(Path(options.run), options.fault)
    if options.json:
        common.print_json([
            {
                "fault": one.fault, "stack": one.stack, "sample": one.sample, "equal": one.equal,
                "then": {name: then for name, (then, _) in one.values.items()},
                "now": {name: now for name, (_, now) in one.values.items()},
            }
            for one in found
        ])  # fmt: skip
    else:
        screen.replayed(found, common.console())
    return cli.PASS if all(one.equal for one in found) else cli.GATE_FAILED


def _refuse(options: argparse.Namespace) -> None:
    """Refuse what a replay takes from the run.

    Raises:
        UserError: such an option was given.
    """
    parser = argparse.ArgumentParser()
    arguments(parser)
    usual, names = vars(parser.parse_args([])), {"profiles": "profile", "overrides": "set"}
    taken = {"action", "run", "fault", "json"}
    given = [
        f"--{names.get(name, name).replace('_', '-')}"
        for name, value in usual.items()
        if name not in taken and getattr(options, name) != value
    ]
    if given:
        raise UserError(
            f"{', '.join(given)}: not for replay, which repeats what the run did; it takes RUN, "
            "--fault and --json"
        )
