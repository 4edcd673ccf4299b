"""Help as wide as the terminal: paragraphs are filled, and example commands go on below."""

from __future__ import annotations

import argparse
import re
from itertools import groupby
from textwrap import fill

_FURTHER = "           "


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
