r"""What does a network lose between the stack it was trained on and the stack it runs on?

Runs the same model on the same images through two stacks and compares the answers:

  simulate --train pillow_fp32 --deploy ascend_nv12_int8
  simulate --train pillow_fp32 --deploy openvino_int8 --model model.yaml --data val/ \
           --fail-on "flip_rate > 1%" --fail-on "delta.top1 < -0.5%"
"""

from __future__ import annotations

import argparse
import json

from simulator import cli


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--train", required=True, metavar="PROFILE", help="the training stack: a path or a name")
    add("--deploy", required=True, metavar="PROFILE", help="the deployment stack, likewise")
    add("--model", metavar="CARD", help="a model card (YAML); default: the built-in model")
    add("--data", metavar="FOLDER", help="a folder of images; default: the built-in images")
    add(
        "--set", dest="overrides", action="append", default=[], metavar="SIDE.KEY=VALUE",
        help="override one field of one side, e.g. deploy.resize.interpolation=nearest",
    )  # fmt: skip
    add(
        "--fail-on", action="append", default=[], metavar="RULE",
        help='fail the gate if the rule holds, e.g. "flip_rate > 1%%"; exit code 1',
    )  # fmt: skip
    add("--limit", type=int, metavar="N", help="take a random subset of N images")
    add("--seed", type=int, default=0, metavar="S", help="of the subset and the calibration")
    add("--out", metavar="DIR", help="run folder; default: runs/<time>-<train>-vs-<deploy>")
    add("--overwrite", action="store_true", help="replace the run that is already in --out")
    add("--workers", type=int, metavar="N", help="samples in flight; default: the cores; 1 for "
        "undisturbed latency")  # fmt: skip
    add("--strict", action="store_true", help="an option that is not in force is an error")
    add("--json", action="store_true", help="print the summary as JSON, and nothing else")


def run(options: argparse.Namespace) -> int:
    """Simulate one pair and print the answer."""
    from rich.console import Console

    from simulator.api import simulate
    from simulator.cli.progress import Bar
    from simulator.report.terminal import render
    from simulator.store import finite

    with Bar() as bar:
        result = simulate(
            options.train,
            options.deploy,
            model=options.model,
            data=options.data,
            overrides=options.overrides,
            fail_on=options.fail_on,
            limit=options.limit,
            seed=options.seed,
            out=options.out,
            overwrite=options.overwrite,
            workers=options.workers,
            strict=options.strict,
            progress=bar,
        )
    if options.json:
        print(json.dumps(finite(result.summary), indent=2, ensure_ascii=False))
    else:
        console = Console()
        if not console.is_terminal:
            console = Console(width=120)
        render(result.summary, str(result.folder), console)
    return cli.PASS if result.passed else cli.GATE_FAILED
