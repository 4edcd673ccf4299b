"""Help as wide as the terminal, and one line of what is wrong with the arguments."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from itertools import groupby
from textwrap import fill
from typing import NoReturn

from simulator.cli.exits import USER_ERROR
from simulator.errors import shortened

_FURTHER = "           "


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, and where the options are listed."""

    def error(self, message: str) -> NoReturn:
        """End the command."""
        self.exit(USER_ERROR, f"error: {message}; {self.prog} --help lists the options\n")

    def refuse(self, rest: Sequence[str], elsewhere: Sequence[str] = ()) -> NoReturn:
        """End the command where arguments are left over.

        Args:
            rest: the arguments.
            elsewhere: options that ``simulate`` without a command has.
        """
        left = next((one for one in rest if one.startswith("-")), rest[0]).split("=")[0]
        if not left.startswith("-"):
            self.error(f"{shortened(left)!r} stands behind no option")
        if left in elsewhere:
            self.error(f"{self.prog} has no {left}, which simulate without a command has")
        near = difflib.get_close_matches(left, list(self._option_string_actions), 1, 0.75)
        self.error(f"unknown option {left}" + (f"; did you mean {near[0]}?" if near else ""))


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Fills paragraphs; commands and lists keep their lines, which go on below where too long."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        found: list[str] = []
        for kept, lines in groupby(text.splitlines(), _kept):
            if kept:
                found += [_line(line, width) for line in lines]
            else:
                found.append(fill(" ".join(lines), width, break_on_hyphens=False))
        return "\n".join(indent + one for one in found)


def _kept(line: str) -> bool:
    return not line or line.startswith((" ", "simulate "))


def _line(line: str, width: int) -> str:
    """Return an entry of a list with its words in their column, or a command."""
    entry = re.match(r"( *\S.*? {2,})(\S.*)", line)
    if entry is None or len(line) <= width:
        return _command(line, width)
    name, words = entry.groups()
    return fill(words, width, initial_indent=name, subsequent_indent=" " * len(name))


def _command(line: str, width: int) -> str:
    """Return a command in lines of a width, each of which begins with an option."""
    first, *options = re.split(r" (?=--)", line)
    lines = [first]
    for option in options:
        room = width - 2 * (option is not options[-1])
        if len(lines[-1]) + 1 + len(option) > room:
            lines.append(_FURTHER + option)
        else:
            lines[-1] += f" {option}"
    return " \\\n".join(lines)
