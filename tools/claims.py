"""Hold what the documents say of their figures against the tables beside them.

  python tools/claims.py            say how many claims hold
  python tools/claims.py --check    the same, for CI; exit 1 if one does not, or one is missing

A paragraph that compares figures has the comparison below it, on lines of its own, in an HTML
comment that readers do not see:

  <!-- table: noise -->             names the table below it, for all documents

  Resizing flips more answers than decoding.
  <!-- claim: noise["resize", "flips"] > noise["decode", "flips"] -->

``noise["row", "column"]`` is the first number of a cell, ``noise["row", "column", 1]`` the next: of
``0.28 (2.00) / 3.3 (7.3) %`` these are 0.28 and 2.0. ``noise.rows("resize:")`` are the names of the
rows that begin so. ``said(0.5, 1.37)`` tells whether a document may say 0.5 where a table says
1.37: whether rounding to the digits of the first gives it. Besides these, ``abs``, ``all``,
``any``, ``len``, ``max``, ``min``, ``round``, ``sorted`` and ``sum``.

A paragraph, or an item of a list, has at least as many claims as sentences with a word of
``RISKY``. Code, tables and headings are not looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RISKY = re.compile(
    r"\b(loud|louder|loudest|quiet|quieter|quietest|far (?:fewer|more|less)|close to|"
    r"within (?:noise|chance)|beyond (?:noise|chance)|(?:as|than) in the paper|as the paper|"
    r"the paper's (?:order|pattern)|confirm(?:s|ed)?|hardly (?:costs|differs?|moves)|"
    r"outside its interval|adds up|every model|about (?:what its|as))\b",
    re.IGNORECASE,
)
_MARK = re.compile(r"<!-- (claim|table): (.*?) -->", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
_SENTENCE = re.compile(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z*`\[\"])")
_FUNCTIONS = (abs, all, any, len, max, min, round, sorted, sum)


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, an item of a list, a heading, a table or code: its first line and its text."""

    line: int
    text: str

    @property
    def kind(self) -> str:
        """``prose``, ``table``, or ``other`` for code and headings."""
        if self.text.startswith("|"):
            return "table"
        return "other" if self.text.startswith(("#", "```", "    ")) else "prose"


class Table:
    """The numbers of a Markdown table, by the texts of its first column and of its head."""

    def __init__(self, text: str) -> None:
        head, _, *rows = (
            [cell.strip() for cell in row.strip()[1:-1].split("|")] for row in text.splitlines()
        )
        names = [row[0] for row in rows]  # a name of two rows names neither
        self.cells = {
            row[0]: dict(zip(head, row, strict=True)) for row in rows if names.count(row[0]) == 1
        }

    def rows(self, start: str = "") -> list[str]:
        """Return the names of the rows that begin with *start*; there must be one."""
        found = [name for name in self.cells if name.startswith(start)]
        if not found:
            raise KeyError(start)
        return found

    def __getitem__(self, key: tuple[Any, ...]) -> float:
        """Return a number of a cell: the first, or that of the third part of the key."""
        row, column, *which = key
        numbers = _NUMBER.findall(self.cells[row][column])
        return float(numbers[which[0] if which else 0].replace(",", ""))


def blocks(text: str) -> Iterator[Block]:
    """Split a document: at empty lines, at items of lists, around headings, tables and code."""
    lines: list[str] = []
    start, fenced = 1, False
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        table = [one.startswith("|") for one in (lines[-1] if lines else "", line)]
        begins = re.match(r"#|- |\d+\. |```", line) or table[0] != table[1]
        if lines and not fenced and (not line.strip() or begins):
            yield Block(start, "\n".join(lines))
            lines = []
        if line.strip() or fenced:
            if not lines:
                start = number
            lines.append(line)
        if line.startswith("```"):
            fenced = not fenced
            if not fenced:
                yield Block(start, "\n".join(lines))
                lines = []


def said(figure: float, exact: float) -> bool:
    """Whether *exact*, rounded to the decimals of *figure*, is that figure (either way at 5)."""
    decimals = len(repr(figure).partition(".")[2].rstrip("0"))
    return abs(figure - exact) <= 0.5 * 10.0**-decimals + 1e-9


def tables(documents: dict[str, str]) -> tuple[dict[str, Table], list[str]]:
    """Return the named tables of all documents, and what is wrong with the names."""
    found: dict[str, Table] = {}
    problems: list[str] = []
    for path, text in documents.items():
        name = None
        for block in blocks(text):
            if block.kind == "table" and name:
                found[name], name = Table(block.text), None
            for mark in _MARK.finditer(block.text if block.kind == "prose" else ""):
                if mark[1] == "table":
                    name = mark[2].strip()
                    if name in found:
                        problems.append(f"{path}:{block.line}: a second table {name}")
        if name:
            problems.append(f"{path}: no table follows <!-- table: {name} -->")
    return found, problems


def judged(block: Block, names: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with each claim, empty where it holds; then the missing claims."""
    claims = [
        " ".join(mark[2].split()) for mark in _MARK.finditer(block.text) if mark[1] == "claim"
    ]
    for claim in claims:
        yield _evaluated(claim, names)
    text = " ".join(re.sub(r"`[^`]*`", "", _MARK.sub("", block.text)).split())
    risky = [one for one in _SENTENCE.split(text) if RISKY.search(one)]
    for sentence in risky[len(claims) :]:
        words = ", ".join(RISKY.findall(sentence))
        yield f"no claim for this sentence ({words}): {sentence[:90]}"


def _evaluated(expression: str, names: dict[str, Any]) -> str:
    try:
        # The documents are the repository's own, like this code.
        holds = eval(expression, {"__builtins__": {}, **names})
    except Exception as error:
        return f"claim cannot be evaluated ({type(error).__name__}: {error}): {expression}"
    if not isinstance(holds, bool):
        return f"claim is neither true nor false: {expression}"
    return "" if holds else f"claim is false: {expression}"


def check(documents: dict[str, str]) -> tuple[int, list[str]]:
    """Return how many claims hold, and a line for each that does not or is missing."""
    found, problems = tables(documents)
    names = {**{one.__name__: one for one in (*_FUNCTIONS, said)}, **found}
    held = 0
    for path, text in documents.items():
        for block in blocks(text):
            for problem in judged(block, names) if block.kind == "prose" else ():
                held += not problem
                if problem:
                    problems.append(f"{path}:{block.line}: {problem}")
    return held, problems


def main(arguments: Sequence[str]) -> int:
    if list(arguments) not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    documents = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in paths}
    held, problems = check(documents)
    print("\n".join([*problems, f"{held} claims hold, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
