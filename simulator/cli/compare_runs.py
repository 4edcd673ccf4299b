r"""Say what changed between two finished runs, and which answers changed with it; runs nothing.

A new driver, a new firmware, a new version of a library: run the same command before and after.

  simulate compare-runs runs/monday runs/tuesday
"""

from __future__ import annotations

import argparse

from simulator import cli
from simulator.cli import common

_WORDS = {
    "inputs": "What was asked",
    "surroundings": "What it ran on",
    "answers": "What came of it",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("old", metavar="OLD", help="the folder of the earlier run")
    add("new", metavar="NEW", help="the folder of the later run")
    add("--model", metavar="CARD", help="the model card, where it has moved since")
    add("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print what changed."""
    from textwrap import fill

    from rich.markup import escape

    from simulator.audit.two_runs import compare_runs, lines

    found = compare_runs(options.old, options.new, model=options.model)
    if options.json:
        common.print_json(found.model_dump())
        return cli.PASS
    console = common.console()
    changed = sum(stack.changed for stack in found.stacks.values())
    verdict = f"{changed:,} answers differ." if changed else "No answer differs."
    for side, stack in found.stacks.items():
        if stack.fails:
            verdict = f"{side} fails on {stack.fails:,} more samples than before. {verdict}"
    console.print(f"[bold]{verdict}[/]", highlight=False)
    for part, said in lines(found).items():
        console.print(f"\n[bold]{_WORDS[part]}[/]", highlight=False)
        for line in said or ["nothing changed"]:
            folded = fill(line, console.width, initial_indent="  ", subsequent_indent="    ",
                          break_long_words=False, break_on_hyphens=False)  # fmt: skip
            console.print(escape(folded), highlight=False)
    return cli.PASS
