r"""Find which layers of an INT8 stack to keep in FP32.

  simulate sensitivity --profile ort_int8 --model model.yaml --data val/ \
           --goal 'flip_rate < 2%' --out DIR

Flips are counted against the same stack in FP32. DIR gets summary.json, and profile.yaml with the
shortest keep list that was found. Some images calibrate, half of the others are searched, and the
list is confirmed on the rest. Run the same command again to go on after an interruption. The exit
code is 1 where no list reaches the goal, or where it is not confirmed.
"""

from __future__ import annotations

import argparse
from typing import Any

from simulator import cli
from simulator.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--profile", required=True, metavar="PROFILE", help="a stack with a quantizer")
    add("--goal", required=True, metavar="RULE", help="what must hold: 'flip_rate < 2%%'")
    add("--out", required=True, metavar="DIR", help="a new folder, or that of the same command")
    add("--top", type=int, default=8, metavar="N", help="layers tried one by one; default 8")
    common.inputs(parser)
    add("--workers", type=int, metavar="N", help="samples processed at once")
    add("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> int:
    """Search, and say what was found."""
    from simulator.cli.progress import Bar
    from simulator.experiments.sensitivity import PROFILE, Settings, sensitivity

    settings = Settings(options.profile, options.goal, options.top, seed=options.seed)
    with Bar() as bar:
        found = sensitivity(
            options.model,
            options.data,
            options.out,
            settings,
            limit=options.limit,
            workers=options.workers,
            progress=bar,
        )
    if options.json:
        common.print_json(found)
    else:
        for line in _lines(found, f"{options.out}/{PROFILE}"):
            print(line)
    told = found["confirmed"] if found["keep"] is not None else {}
    return cli.PASS if told.get("holds") and told["sure"] else cli.GATE_FAILED


def _lines(found: dict[str, Any], profile: str) -> list[str]:
    layers, goal = len(found["layers"]), found["goal"]
    if found["keep"] is None:
        first = f"no keep list reaches {goal}, not even all {layers} layers in FP32"
        lines = [first, f"without: {_rate(found['searched'])}"]
    else:
        told = found["confirmed"]
        kept = len(found["keep"])
        what = f"{kept} of {layers} layers in FP32 reach" if kept else "no layer need be kept for"
        lines = [f"{what} {goal}: {_confirmed(told)}", f"without: {_rate(told['without'])}"]
        if kept:
            lines += [
                f"with:    {_rate(told['with'])}, paired p {told['p']:.2g}",
                f"profile: {profile}",
            ]
    if found["skipped"]:
        lines.append(f"skipped: {found['skipped']} images that a stack could not read")
    searched = found["searched"]["flips"]
    tried = sum("flips" in one for one in found["layers"])
    lines += [
        f"alone in FP32, flips of {found['searched']['images']} (without {searched}); with {tried} "
        f"layers tried, p above {0.05 / max(tried, 1):.2g} is within chance:"
    ]
    lines += [
        f"  {one['name']}: {one['flips']} ({-one['won']:+d}), p {one['p']:.2g}"
        for one in found["layers"]
        if "flips" in one
    ]
    return lines


def _confirmed(told: dict[str, Any]) -> str:
    """Return whether images that were not searched confirm it, and how sure that is."""
    flips, images = told["with"]["flips"], told["with"]["images"]
    seen = f"{flips} of {images} images that were not searched flip"
    if told["sure"]:
        return f"confirmed, {seen}" if told["holds"] else f"not confirmed, {seen}"
    end = told["with"]["ci95"][1 if told["holds"] else 0]
    more = f"; {told['more']:,} more would decide it if the rate stays" if told["more"] else ""
    return f"UNDECIDED, {seen}, but {100 * end:.1f} % cannot be excluded{more}"


def _rate(of: dict[str, Any]) -> str:
    low, high = (100 * end for end in of["ci95"])
    return (
        f"{100 * of['rate']:.1f} % of {of['images']} images flip "
        f"(95 % interval {low:.1f} to {high:.1f})"
    )
