"""Documents as text: one line per field, with its value in YAML and a note."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.errors import UserError

_NOTES = 44
"""The rightmost column at which notes start, unless a line is longer."""


@dataclass(frozen=True, slots=True)
class Line:
    """One field, or the first line of a section.

    Attributes:
        depth: the number of sections around it.
        key: its name; empty for a line with only a note.
        value: in YAML; empty for the first line of a section.
        note: the comment after the value, or the whole line if the key is empty.
        off: the depth at which it is commented out; None if it is not commented out.
    """

    depth: int
    key: str
    value: str = ""
    note: str = ""
    off: int | None = None


class _Dumper(yaml.SafeDumper):
    """Keeps every text on one line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def flow(value: Any) -> str:
    """Return a value in YAML on one line."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        width=float("inf"),
        allow_unicode=True,
        sort_keys=False,
    )
    return str(text).removesuffix("\n").removesuffix("\n...")


def write_new(path: Path, text: str) -> None:
    """Write a document to a new file.

    Raises:
        UserError: the file exists already, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{path} exists already; choose another --out, or remove it") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error


def render(lines: Sequence[Line]) -> str:
    """Return the text; notes of neighbouring lines are aligned."""
    return "".join(f"{line}\n" for block in _blocks(lines) for line in _aligned(block))


def _blocks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the blocks of lines to align: fields between notes and empty lines."""
    block: list[Line] = []
    for line in lines:
        if line.key:
            block.append(line)
            continue
        yield block
        yield [line]
        block = []
    yield block


def _aligned(block: Sequence[Line]) -> list[str]:
    bare = [_bare(line) for line in block]
    noted = [len(text) for text, line in zip(bare, block, strict=True) if line.note and line.key]
    column = max((length for length in noted if length <= _NOTES), default=0)
    return [
        f"{text:<{column}}  # {line.note}" if line.note and line.key else text
        for text, line in zip(bare, block, strict=True)
    ]


def _bare(line: Line) -> str:
    if not line.key:
        return f"{'  ' * line.depth}# {line.note}" if line.note else ""
    field = f"{line.key}: {line.value}".rstrip()
    if line.off is None:
        return "  " * line.depth + field
    return f"{'  ' * line.off}# {'  ' * (line.depth - line.off)}{field}"
