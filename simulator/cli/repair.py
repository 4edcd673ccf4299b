r"""Find the cheapest change of a deployment that passes a gate.

  simulate repair --train dali_fp32 --deploy ascend_nv12_int8 --gate "flip_rate < 2%" \
           --model model.yaml --data val/
  simulate repair --options board.yaml --gate "delta.top1 > -1 point" --model model.yaml --data val/

What the deployment may do otherwise, and at which cost, is in a YAML file (docs/repair.md); without
one it is made from what differs. One half of the samples is searched, the other one confirms; with
--until-decided all judge, and as few as will do.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.repair import RepairSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--train", metavar="PROFILE", help="the training stack: a path or a name")
    add("--deploy", metavar="PROFILE", help="the deployment stack, likewise")
    add(
        "--options", dest="repairs", metavar="DOCUMENT",
        help="what the deployment may do otherwise: a path or a built-in name; default: made from "
        "what differs, and left in the run as options.yaml",
    )  # fmt: skip
    add(
        "--gate", action="append", required=True, metavar="RULE",
        help='what must hold, e.g. "flip_rate < 2%%"; repeatable',
    )  # fmt: skip
    add(
        "--undecided", choices=("pass", "fail"), default="fail",
        help="what a rule gives whose figure the samples do not give; default: fail",
    )  # fmt: skip
    common.allow_failed(parser)
    add(
        "--set", dest="overrides", action="append", default=[], metavar="STACK.KEY=VALUE",
        help="override one field of one stack, e.g. deploy.runtime.threads=1",
    )  # fmt: skip
    add(
        "--until-decided", action="store_true",
        help="search no half first: take the samples in a random order, and drop a stack when it "
        "passes or fails for certain, or a cheaper one passes. The answer is wrong in 5 %% of the "
        "runs at most",
    )  # fmt: skip
    common.inputs(parser)
    common.output(parser)


def run(options: argparse.Namespace) -> int:
    """Search and print the answer."""
    from simulator.cli.progress import Bar
    from simulator.repair.run import repair

    with Bar(options.explain_plan) as bar:
        result = repair(
            options.train,
            options.deploy,
            gate=options.gate,
            repairs=options.repairs,
            model=options.model,
            overrides=options.overrides,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            until_decided=options.until_decided,
            **common.shared(options, bar),
        )
    return show(result, options.json)


def show(result: Result[RepairSummary], as_json: bool) -> int:
    """Print the answer; the exit code is the gate's."""
    from simulator.repair import screen

    return common.show(result, as_json, screen.show)
