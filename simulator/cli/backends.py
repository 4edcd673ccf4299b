"""The backends found here: library, version, what each offers, and why one is missing."""

from __future__ import annotations

import argparse
import json
from typing import Any

from simulator import cli


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """List every backend; no library is imported."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from simulator import registry

    rows = [_row(backend) for backend in registry.backends()]
    if options.json:
        print(json.dumps(rows, indent=2))
        return cli.PASS
    table = Table("backend", "library", "offers", "evidence", box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        library = row["library"] or "(our own arithmetic)"
        version = row["version"] or ""
        if row["missing"]:
            version = (
                f"[yellow]not installed: pip install 'pipeline-simulator\\[{row['extra']}]'[/]"
            )
        offers = "\n".join(f"{stage}: {what}" for stage, what in row["offers"].items())
        table.add_row(row["name"], f"{library} {version}", offers, ", ".join(row["evidence"]))
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table, highlight=False)
    return cli.PASS


def _row(backend: Any) -> dict[str, Any]:
    libraries = backend.libraries
    offers: dict[str, Any] = {}
    for offer in backend.offers:
        values = offers.setdefault(str(offer.stage), [])
        values.append(_headline(offer.options))
    return {
        "name": backend.name,
        "summary": backend.summary,
        "library": libraries[0].distribution if libraries else None,
        "version": libraries[0].version if libraries else None,
        "extra": libraries[0].extra if libraries else None,
        "missing": [lib.distribution for lib in libraries if lib.version is None],
        "offers": {
            stage: "; ".join(dict.fromkeys(v for v in values if v)) or "yes"
            for stage, values in offers.items()
        },
        "evidence": sorted({str(offer.evidence) for offer in backend.offers}),
    }


def _headline(options: Any) -> str:
    """The fields by which people look for an implementation."""
    for name in ("interpolation", "compute", "method", "preset", "matrix", "idct", "storage"):
        admits = options.get(name)
        if isinstance(admits, tuple):
            return f"{name} {', '.join(map(str, admits))}"
    return ""
