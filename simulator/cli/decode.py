"""A folder through every decoder: what each reads, and how far apart they are."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.testing.corpus import Outcome, Tried

ENDED = ("died", "hung", "broken")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every decoder")
    parser.add_argument(
        "--seconds", type=float, default=20, help="after which a decoder has hung; default 20"
    )
    parser.add_argument(
        "--memory", type=int, default=4096, metavar="MIB", help="a decoder may hold; default 4096"
    )
    parser.add_argument(
        "--json", action="store_true", help="print every file, and what was not tried, as JSON"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decode, and print a row for each format and decoder.

    Returns:
        0: every file was read or refused; 1: one ended a decoder.

    Raises:
        UserError: there is no such folder or backend, or none of its files is an image.
    """
    from simulator.errors import UserError
    from simulator.testing.corpus import decoders, tried

    folder = Path(options.folder)
    if not sys.platform.startswith("linux"):
        raise UserError("simulate backends decode needs Linux, which limits a process's memory")
    if not folder.is_dir():
        raise UserError(f"{folder}: a folder expected")
    if not (0 < options.seconds < inf and options.memory > 0):
        raise UserError("--seconds and --memory: more than 0 expected")
    able, unable = decoders(options.names)
    if not able:
        raise UserError("; ".join(f"{name} {why}" for name, why in unable.items()) or "no decoder")
    found = list(tried(folder, able, options.seconds, options.memory))
    if not found:
        raise UserError(f"{folder}: no file of a known format")
    if options.json:
        common.print_json({"files": [asdict(one) for one in found], "not_tried": unable})
    else:
        _show(found, unable)
    ended = any(o.kind in ENDED for one in found for o in one.outcomes.values())
    return cli.GATE_FAILED if ended else cli.PASS


def _show(found: Sequence[Tried], unable: dict[str, str]) -> None:
    from rich.markup import escape

    console = common.console()
    outside = Counter(one.reason for one in found if one.format is None)
    bad = [
        f"{o.kind}: {name}: {one.name}: {o.reason}"
        for one in found for name, o in one.outcomes.items() if o.kind in ENDED
    ]  # fmt: skip
    console.print(
        f"{len(found)} files: {outside.total()} refused before any decoder; "
        f"{len(bad)} times a file ended a decoder"
    )
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for one in found:
        for name, outcome in one.outcomes.items():
            cells.setdefault((one.format or "", name), []).append(outcome)
    table = common.table(
        "format", "decoder", "read", "refused", *ENDED, "other pixels", "mean, most", "MiB"
    )
    for (format, name), outcomes in sorted(cells.items()):
        table.add_row(format, name, *row(outcomes))
    console.print(table, highlight=False)
    for why, count in outside.most_common():
        console.print(escape(f"{count} refused: {why}"), soft_wrap=True)
    for line in (*bad, *(f"not tried: {name}: {why}" for name, why in unable.items())):
        console.print(escape(line), soft_wrap=True)


def row(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the counts of a decoder's outcomes, and how far it is from the first decoder."""
    counts = Counter[str](one.kind for one in outcomes)
    off = [(one.mean, one.most) for one in outcomes if one.mean is not None and one.most]
    against = sum(one.mean is not None for one in outcomes)
    far = "–" if not against else "equal"
    if off:
        far = f"{sum(mean for mean, _ in off) / against:.3f}, {max(most for _, most in off)}"
    kinds = [str(counts[kind]) for kind in ("read", "refused", *ENDED)]
    most = max(one.mib for one in outcomes)
    return [*kinds, str(len(off)) if against else "–", far, str(most)]
