"""Options and output that several commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import UserError
from simulator.limits import SECONDS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from simulator.results.shared import Summary
    from simulator.spent import Mark


def exemplify(options: argparse.Namespace) -> None:
    """Set the model and the data to those of ``--example``, where the command has it.

    Raises:
        UserError: there is no such example, or ``--model`` is given as well.
        MissingLibrary: a library that it needs is not installed.
    """
    name = getattr(options, "example", None)
    if name is None:
        return
    several = hasattr(options, "models")
    if options.models if several else options.model:
        raise UserError("--example is a model with its samples; leave out --model, or --example")
    from simulator.data import example

    card = str(example.model_card(name))
    vars(options).update({"models": [card]} if several else {"model": card})
    found = example.data_card(name)
    if options.data is None and found is not None:
        options.data = str(found)


def signer(parser: argparse.ArgumentParser) -> None:
    """Add the key that signs the bundle of an audit."""
    parser.add_argument(
        "--sign", metavar="KEY",
        help="sign bundle.zip with this key (PEM, Ed25519), for simulate verify --key",
    )  # fmt: skip


def signing(key: str | None) -> Callable[[Path], None]:
    """Read the key of ``--sign``, before anything is run; return what signs a run's bundle."""
    if key is None:
        return lambda folder: None
    from simulator.audit import signing
    from simulator.results.layout import BUNDLE

    found = signing.private_key(Path(key))

    def sign(folder: Path) -> None:
        place = signing.sign(folder / BUNDLE, found)
        own = signing.fingerprint(found.public_key())
        print(f"signature: {place}, by {own}", file=sys.stderr)

    return sign


def allow_code(parser: argparse.ArgumentParser) -> None:
    """Add the leave to run what a folder asks for."""
    parser.add_argument(
        "--allow-code", action="store_true", help="run code that the folder names, where the run "
        "was not begun here: who sent it could have it run anything",
    )  # fmt: skip


def form(parser: argparse.ArgumentParser, of: str) -> None:
    """Add the form in which tables are printed; *of* says which."""
    parser.add_argument(
        "--format", choices=("text", "markdown", "latex", "csv"), default="text", help=of
    )


def form_of(form: str, table: str | None) -> str:
    """Return the form that is printed: of a table that is asked for by name, Markdown."""
    return "markdown" if table and form == "text" else form


def timeout(parser: argparse.ArgumentParser) -> None:
    """Add the time limit of an inference."""
    parser.add_argument(
        "--timeout", type=_seconds, default=SECONDS, metavar="SECONDS",
        help="end the command where one inference, or another step of a sample, takes longer; "
        f"default {SECONDS:g}; 0: never",
    )  # fmt: skip


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < inf:
        raise ValueError(text)
    return seconds


def lead(summary: Summary, of: str = "") -> None:
    """Print the verdict, and the condition that every stack was under, if there was one.

    Args:
        summary: of a run.
        of: which one, where several are shown.
    """
    from rich.markup import escape

    from simulator.report.verdict import STYLES, line, verdict
    from simulator.report.words import condition, failures

    found = verdict(summary)
    said = f"{of}: {line(found)}" if of else line(found)
    console().print(f"[{STYLES[found.decision]}]{escape(said)}[/]", highlight=False)
    for failure in failures(summary):
        console().print(f"[red]fails[/] {escape(failure)}", highlight=False)
    if found.next:
        console().print(f"next: {escape(found.next)}", highlight=False, soft_wrap=True)
    if summary.under is not None:
        console().print(f"\nEvery stack is under {condition(summary.under)}.", highlight=False)


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    from simulator.results.json_text import json_text

    print(json_text(value), end="")


def explain_time(begun: Mark) -> None:
    """Print where the time of a command went, on standard error so that the output can be piped."""
    from simulator.cli.screen import Screen
    from simulator.report.time import render
    from simulator.results.time_spent import time_spent
    from simulator.spent import last_workers

    render(time_spent(begun, last_workers()), Screen(stderr=True, width=120, highlight=False))


def console() -> Console:
    """Return the terminal; without one, a plain console of $COLUMNS or else 120 columns."""
    from simulator.cli.screen import Screen

    found = Screen(highlight=False, emoji=False)
    wide = found.is_terminal or "COLUMNS" in os.environ
    return found if wide else Screen(width=120, highlight=False, emoji=False)


def table(*columns: str) -> Table:
    """Return an empty table whose cells wrap; nothing in it is cut."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        found.add_column(column, overflow="fold")
    return found
