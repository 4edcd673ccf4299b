"""Draw the rates of each bit of finished campaigns, with their intervals, as one SVG file.

  python tools/fault_plots.py OUT.svg "weights, FP32=RUN:STACK" "weights, INT8=RUN:STACK" ...

Each argument is a panel: its title, a run folder of `simulate faults`, and a stack of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from simulator.report.colors import STACKS
from simulator.results.faults import FaultGroup, FaultsSummary, Rate

WIDE, HIGH, PLOT, LEFT, TOP, COLUMNS = 440, 190, 130, 44, 34, 2
INK, FAINT = "#222222", "#d5d5d5"
KINDS = (("sdc", "SDC", STACKS[0][0], -0.15), ("due", "DUE", STACKS[1][0], 0.15))
"""Field, name, color, and where in a bit's room it is drawn."""


def panel(title: str, groups: Mapping[str, FaultGroup]) -> Iterator[str]:
    """Return the shapes of one panel, from its own origin; bits from the highest to the lowest."""
    bits = sorted(map(int, groups), reverse=True)
    room = (WIDE - LEFT - 8) / len(bits)
    faults = [groups[str(bit)].sdc.of for bit in bits]
    few = f"{min(faults)} to {max(faults)} faults a bit" if faults else ""
    yield text(LEFT, 16, f"{title}: {few}", "start")
    for percent in (0, 25, 50, 75, 100):
        y = height(percent / 100)
        yield line(LEFT, y, WIDE - 8, y, FAINT)
        yield text(LEFT - 4, y + 4, f"{percent} %", "end")
    for at, bit in enumerate(bits):
        middle = LEFT + (at + 0.5) * room
        if bit % (4 if len(bits) > 16 else 1) == 0 or at == 0:
            yield text(middle, TOP + PLOT + 14, str(bit), "middle")
        for name, _, color, shift in KINDS:
            rate: Rate = getattr(groups[str(bit)], name)
            low, high = rate.ci95
            if rate.rate is None or low is None or high is None:
                continue
            x = middle + shift * room
            yield line(x, height(low), x, height(high), color)
            yield f'<circle cx="{x:.1f}" cy="{height(rate.rate):.1f}" r="2.5" fill="{color}"/>'


def height(rate: float) -> float:
    """Return where a rate is drawn."""
    return TOP + PLOT * (1 - rate)


def line(x1: float, y1: float, x2: float, y2: float, color: str) -> str:
    """Return a line."""
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{color}"/>'


def text(x: float, y: float, words: str, anchor: str, color: str = INK) -> str:
    """Return a text."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{color}">{escape(words)}</text>'


def drawing(panels: Mapping[str, Mapping[str, FaultGroup]]) -> str:
    """Return an SVG file with a panel for each title."""
    rows = -(-len(panels) // COLUMNS)
    wide, high = COLUMNS * WIDE, rows * HIGH + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, groups) in enumerate(panels.items()):
        x, y = number % COLUMNS * WIDE, number // COLUMNS * HIGH
        parts += [f'<g transform="translate({x} {y})">', *panel(title, groups), "</g>"]
    said = "share of the faults in a bit, with Clopper and Pearson's 95 % interval; x: the bit"
    parts.append(text(LEFT, high - 8, said, "start"))
    for at, (_, name, color, _) in enumerate(KINDS):
        parts.append(text(wide - 90 + 45 * at, high - 8, f"● {name}", "start", color))
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("panels", nargs="+", metavar="TITLE=RUN:STACK")
    given = parser.parse_args()
    found = {}
    for one in given.panels:
        title, _, place = one.rpartition("=")
        run, _, stack = place.rpartition(":")
        summary = FaultsSummary.model_validate_json((Path(run) / "summary.json").read_text("utf-8"))
        found[title] = summary.stacks[stack].by_bit
    given.out.write_text(drawing(found), encoding="utf-8")
    print(f"{given.out}: {given.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
