r"""Write a data set under conditions to disk, for other tools.

  simulate corrupt --under fog:3 --under snow:1 --data val/ --out val-c/
  simulate corrupt --suite imagenet-c --data val/ --out imagenet-c/

Each condition gets a folder OUT/NAME/PARAMETERS with all images and their truth; --data takes it.
"""

from __future__ import annotations

import argparse

from simulator import cli
from simulator.errors import UserError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--under", action="append", default=[], metavar="CONDITION", help="repeatable: fog:3, ...")
    add("--suite", metavar="SUITE", help="instead: all conditions of a suite, by name or path")
    add("--trial", type=int, default=0, metavar="N", help="which random draw, from 0; default 0")
    add("--data", metavar="PATH", help="a folder of images, or a data card (YAML)")
    add("--model", metavar="CARD", help="a model card, for its task and its classes")
    add("--out", required=True, metavar="DIR", help="a new or an empty folder")
    add("--limit", type=int, metavar="N", help="take a random subset of N images")
    add("--seed", type=int, default=0, metavar="S", help="of the subset; default 0")
    add("--workers", type=int, metavar="N", help="images at once; default: the number of cores")


def run(options: argparse.Namespace) -> int:
    """Write the images, and say where they are."""
    from simulator.conditions.condition import under
    from simulator.robustness.corrupted import corrupt
    from simulator.robustness.document import load_suite

    if bool(options.under) == bool(options.suite):
        raise UserError("give --under, once or more, or --suite")
    texts = list(options.under)
    if options.suite:
        texts = [one.condition.text for one in load_suite(options.suite).conditions()]
    conditions = [found for text in texts if (found := under(text, options.trial))]
    written = corrupt(
        conditions,
        options.data,
        options.out,
        model=options.model,
        limit=options.limit,
        seed=options.seed,
        workers=options.workers,
    )
    for one in written:
        skipped = f", {len(one.skipped)} skipped" if one.skipped else ""
        print(f"{one.text}: {one.images} images{skipped} in {one.folder}")
        for name, why in list(one.skipped.items())[:3]:
            print(f"  {name}: {why}")
        if one.turned:
            print(f"  {one.turned} say by EXIF how they are to be turned; a PNG does not keep that")
    return cli.PASS
