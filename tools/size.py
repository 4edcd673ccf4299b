"""Hold the size of the project against the limits of size.toml.

python tools/size.py           print each number beside its limit; exit 1 if one is above it
python tools/size.py --lower   first lower the limits to the numbers; of lines and words to hundreds

A person who raises a limit edits size.toml and says why in a comment beside it.

A circle is a set of modules that need each other: imports lead from each to every other. Imports
inside functions count as those at the top do; imports for type checkers alone do not.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import grimp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parent.parent
LIMITS = ROOT / "size.toml"
MEASURES = {
    "simulator_lines": "lines in simulator/",
    "backends_lines": "lines in backends/",
    "tests_lines": "lines in tests/",
    "document_words": "words of docs/ and README.md that a reader sees",
    "untyped_lines": "lines in simulator/ with dict[str, Any] or Mapping[str, Any]",
    "circles": "circles of modules",
}
HUNDREDS = ("simulator_lines", "backends_lines", "tests_lines", "document_words")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
UNTYPED = re.compile(r"(?:dict|Mapping)\[str, Any\]")


def main(arguments: list[str]) -> int:
    """Run the tool and return its exit code."""
    if arguments not in ([], ["--lower"]):
        print("usage: python tools/size.py [--lower]", file=sys.stderr)
        return 2
    limits = tomllib.loads(LIMITS.read_text("utf-8"))
    if set(limits) != set(MEASURES):
        print(f"size.toml must have these keys: {', '.join(MEASURES)}", file=sys.stderr)
        return 2
    found = circles()
    numbers = measured(found)
    if arguments:
        limits = lowered(limits, numbers)
    above = [name for name, number in numbers.items() if number > limits[name]]
    for name, number in numbers.items():
        mark = "above" if name in above else ""
        print(f"{MEASURES[name]:60} {number:>8,} {limits[name]:>8,}  {mark}".rstrip())
    if "circles" in above:
        for members in found:
            print(f"circle: {', '.join(members)}")
    if above:
        print("Make it smaller, or raise its limit in size.toml and say why.", file=sys.stderr)
    return 1 if above else 0


def measured(found: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the number of each of :data:`MEASURES`, given the circles."""
    lines = {
        name: [
            line
            for p in (ROOT / name).rglob("*.py")
            for line in p.read_text("utf-8").split("\n")[:-1]
        ]
        for name in ("simulator", "backends", "tests")
    }
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    read = [COMMENT.sub("", place.read_text("utf-8")) for place in documents]
    return {
        **{f"{name}_lines": len(of) for name, of in lines.items()},
        "document_words": sum(len(text.split()) for text in read),
        "untyped_lines": sum(bool(UNTYPED.search(line)) for line in lines["simulator"]),
        "circles": len(found),
    }


def circles() -> list[list[str]]:
    """Return the names of the modules of each circle."""
    sys.path.insert(0, str(ROOT))
    graph = grimp.build_graph(
        "simulator", "backends", cache_dir=None, exclude_type_checking_imports=True
    )
    names = sorted(graph.modules)
    place = {name: index for index, name in enumerate(names)}
    rows, columns = [], []
    for name in names:
        for other in graph.find_modules_directly_imported_by(name):
            rows.append(place[name])
            columns.append(place[other])
    links = coo_array(([True] * len(rows), (rows, columns)), shape=(len(names), len(names)))
    groups: dict[int, list[str]] = {}
    for name, group in zip(names, connected_components(links, connection="strong")[1], strict=True):
        groups.setdefault(group, []).append(name)
    return [members for members in groups.values() if len(members) > 1]


def lowered(limits: Mapping[str, int], numbers: Mapping[str, int]) -> dict[str, int]:
    """Return the limits, lowered where a number allows it, and write them; comments stay."""
    text, lower = LIMITS.read_text("utf-8"), dict(limits)
    for name, number in numbers.items():
        grain = 100 if name in HUNDREDS else 1
        lower[name] = min(limits[name], -(-number // grain) * grain)
        text = re.sub(rf"(?m)^{name} = [\d_]+", f"{name} = {lower[name]}", text)
    LIMITS.write_text(text, "utf-8")
    return lower


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
