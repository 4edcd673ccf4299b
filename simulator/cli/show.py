"""``simulate model show``: what a model file says of itself, on one screen or as JSON."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.contract.description import Description, Scheme, Value
    from simulator.profile.artifact import OwnFile

ROWS = 40
"""Of the table of operators, of inputs and of outputs; the others are counted together."""
_WIDE = 160
"""Characters of a value of the metadata."""


def run(options: argparse.Namespace) -> int:
    """Show one file.

    Raises:
        ModelError: there is none, its format is not known, or it is damaged.
    """
    from simulator.profile.artifact import read
    from simulator.registry import openers

    found = read(Path(options.file).absolute())
    sizes = {file.name: file.stat().st_size for file in found.format.files(found.path)}
    able = openers(found.format.name)
    if options.json:
        common.print_json({
            "file": str(found.path), "format": found.format.name, "sha256": found.digest,
            "bytes": sizes, "opened_by": able, **asdict(found.description),
        })  # fmt: skip
    else:
        _screen(found, sizes, able)
    return cli.PASS


def _screen(found: OwnFile, sizes: dict[str, int], able: Sequence[str]) -> None:
    from rich.markup import escape
    from rich.table import Table

    said, console = found.description, common.console()
    console.print(escape(_shown(f"{found.path.name}: {verdict(said) or found.format.about}")))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    told = [*_facts(said), (
        "file", f"{found.format.about}, {sum(sizes.values()):,} bytes"
        f"{f' in {len(sizes)} files' if len(sizes) > 1 else ''}",
    ), ("opened by", ", ".join(able) or "no runtime here; its outputs can be recorded elsewhere"),
       ("SHA-256", found.digest)]  # fmt: skip
    told += [(f"  {_shown(name)}", words) for name, words in said.metadata.items() if words]
    for name, words in told:
        grid.add_row(escape(name), escape(_shown(words)))
    console.print(grid)
    table = common.table("operator", "count", "weights", "takes")
    made = sorted(said.operators, key=lambda one: not one.weights)
    for one in made[:ROWS]:
        table.add_row(escape(one.operator), str(one.count), one.weights, one.activations)
    if made[ROWS:]:
        rest = str(sum(one.count for one in made[ROWS:]))
        table.add_row(f"{len(made) - ROWS} kinds more", rest, "", "")
    if made:
        console.print(table)


def verdict(said: Description) -> str:
    """Say in one line what a file computes in; empty where it does not say."""
    kinds = Counter[str]()
    for one in said.operators:
        kinds[one.weights] += one.count
    del kinds[""]
    of = kinds.total()
    weights = ", ".join(
        f"weights {kind}" + f" of {count} of {of} products" * (len(kinds) > 1)
        for kind, count in kinds.most_common()
    ) or (f"weights {said.storage}" if said.storage else "")  # fmt: skip
    parts = [weights, f"arithmetic {said.compute}" if said.compute else ""]
    if said.form or said.quantization:
        parts.append(f"quantized ({said.form})" if said.form else "quantized")
    if (own := said.preprocessing) and (any(own.mean) or {*own.std} != {1}):
        parts.append("normalizes its input itself")
    if said.postprocessing:
        parts.append("suppresses boxes itself")
    return "; ".join(filter(None, parts))


def _facts(said: Description) -> Iterator[tuple[str, str]]:
    for side, values in (("takes", said.inputs), ("gives", said.outputs)):
        for number, one in enumerate(values[:ROWS]):
            yield side if number == 0 else "", _value(one)
        if values[ROWS:]:
            yield "", f"{len(values) - ROWS} more"
    for number, scheme in enumerate(said.quantization):
        yield "quantized" if number == 0 else "", _scheme(scheme)
    if said.preprocessing:
        yield "input", " → ".join(said.preprocessing.steps)
    if said.postprocessing:
        yield "boxes", f"suppressed in the graph: {', '.join(said.postprocessing)}"
    if said.unread:
        yield "unread", said.unread


def _scheme(one: Scheme) -> str:
    about = {True: ", symmetric", False: ", asymmetric", None: ""}[one.symmetric]
    return f"{one.count} {one.of} {one.dtype} per {one.per}{about}"


def _value(one: Value) -> str:
    real = f", (q - {one.zero}) x {one.scale:.6g}" if one.scale else ""
    sides = "x".join("?" if side is None else str(side) for side in one.shape)
    return " ".join(filter(None, (one.name, one.dtype, sides))) + real


def _shown(words: str) -> str:
    """A text of a file in one line, without what a terminal would obey."""
    from simulator.errors import shortened

    plain = words if words.isprintable() else " ".join(repr(words)[1:-1].split())
    return shortened(plain, _WIDE)
