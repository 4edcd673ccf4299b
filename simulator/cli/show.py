"""``simulate model show``: what a model file says of itself, on one screen or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.contract.description import Description, Preprocessing, Scheme, Value
    from simulator.profile.artifact import OwnFile

KINDS = 40
"""Rows of the table of operators; the rarest are counted together."""


def run(options: argparse.Namespace) -> int:
    """Show one file.

    Raises:
        ModelError: there is none, its format is not known, or it is damaged.
    """
    from simulator.profile.artifact import read

    found = read(Path(options.file).absolute())
    if options.json:
        common.print_json(_document(found))
    else:
        _screen(found)
    return cli.PASS


def _sizes(found: OwnFile) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in found.format.files(found.path)}


def _document(found: OwnFile) -> dict[str, object]:
    from simulator.registry import openers

    return {
        "file": str(found.path),
        "format": found.format.name,
        "sha256": found.digest,
        "bytes": _sizes(found),
        "opened_by": openers(found.format.name),
        **asdict(found.description),
    }


def _screen(found: OwnFile) -> None:
    from simulator.registry import openers

    console, said, sizes = common.console(), found.description, _sizes(found)
    files = ", ".join(sizes) if len(sizes) > 1 else ""
    able = openers(found.format.name)
    lines = {
        "file": f"{found.path.name}: {found.format.about}, {sum(sizes.values()):,} bytes",
        "files": files,
        "SHA-256": found.digest,
        "opened by": ", ".join(able) or "no runtime here; its outputs can be recorded elsewhere",
        "weights": said.storage or "",
        "arithmetic": said.compute or "",
        "quantized": quantized(said),
        "input": preprocessed(said.preprocessing) if said.preprocessing else "",
        "boxes": f"suppressed in the graph: {', '.join(said.postprocessing)}"
        if said.postprocessing else "",
        "unread": said.unread,
    }  # fmt: skip
    told = [(name, words) for name, words in lines.items() if words]
    told += [(f"  {_shown(name)}", words) for name, words in said.metadata.items() if words]
    width = max(len(name) for name, _ in told)
    for name, words in told:
        console.print(f"{name:<{width}}  {_shown(words)}", markup=False)
    _table(("input or output", "type", "shape"), (
        (f"{side} {_shown(one.name)}", _type(one), _shape(one.shape))
        for side, values in (("in ", said.inputs), ("out", said.outputs)) for one in values
    ))  # fmt: skip
    shown, rest = said.operators[:KINDS], said.operators[KINDS:]
    rows = [(one.operator, str(one.count), one.weights, one.activations) for one in shown]
    if rest:
        rows.append((f"{len(rest)} kinds more", str(sum(one.count for one in rest)), "", ""))
    _table(("operator", "count", "weights", "takes"), rows)


def quantized(said: Description) -> str:
    """Say how a file is quantized; empty where it is not."""
    schemes = "; ".join(map(_scheme, said.quantization))
    return ": ".join(filter(None, (said.form, schemes)))


def _scheme(one: Scheme) -> str:
    about = {True: ", symmetric", False: ", asymmetric", None: ""}[one.symmetric]
    return f"{one.count} {one.of} {one.dtype} per {one.per}{about}"


def preprocessed(found: Preprocessing) -> str:
    """Say what a graph does with its input before the network begins."""
    return " → ".join(found.steps)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.markup import escape

    table = common.table(*heads)
    for row in rows:
        table.add_row(*map(escape, row))
    if table.row_count:
        common.console().print(table)


def _type(one: Value) -> str:
    real = f", (q - {one.zero}) x {one.scale:.6g}" if one.scale else ""
    return f"{one.dtype or '-'}{real}"


def _shape(shape: Sequence[int | None]) -> str:
    return "x".join("?" if side is None else str(side) for side in shape) or "one number"


def _shown(words: str) -> str:
    """A text of a file in one line, without what a terminal would obey."""
    from simulator.errors import shortened

    plain = words if words.isprintable() else " ".join(repr(words)[1:-1].split())
    return shortened(plain, 400)
