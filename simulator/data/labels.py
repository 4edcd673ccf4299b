"""The classes of a model: index, name and, where there is one, WordNet id."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from simulator.errors import DataError, reading, unknown
from simulator.files import TEXT
from simulator.places import Where, read

_FEW = 10
"""An error lists all classes if there are no more than this, else only the nearest one."""


@dataclass(frozen=True)
class Labels:
    """The classes of a model, in index order.

    Attributes:
        names: one name a class; two classes may share a name (ImageNet has two cranes).
        wnids: one id a class, all different; None where the label file has names only.
    """

    names: tuple[str, ...]
    wnids: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def name(self, index: int) -> str:
        """The name of a class.

        Raises:
            DataError: the model has more classes than the label file.
        """
        if not 0 <= index < len(self.names):
            raise DataError(f"class {index} has no name: the label file has {len(self.names)}")
        return self.names[index]

    def knows(self, text: str) -> bool:
        """Whether ``resolve`` would find exactly one class."""
        return len(self._match(text)) == 1

    def resolve(self, text: str) -> int:
        """Find the class that is meant.

        Args:
            text: a wnid, an index, or a name in any case; a space, ``_`` and ``-`` are the same.

        Returns:
            The class index, 0 to len - 1.

        Raises:
            DataError: no class fits, or more than one.
        """
        found = self._match(text)
        if len(found) == 1:
            return found[0]
        raise DataError(f"{self.why_not(text)}; write {self.forms}")

    def why_not(self, text: str) -> str:
        """Why ``resolve`` refuses *text*, in a few words: unknown, ambiguous, or out of range."""
        text, found = text.strip(), self._match(text)
        if found:
            classes = ", ".join(f"{index} {self.names[index]!r}" for index in found)
            return f"class {text!r} fits {len(found)} classes ({classes})"
        if as_index(text) is not None:
            return f"class index {text} is outside 0 to {len(self.names) - 1}"
        offered = (*self.names, *(self.wnids or ()))
        if len(self.names) <= _FEW:
            return unknown("class", text, offered)
        near = difflib.get_close_matches(text, offered, n=1, cutoff=0.75)
        return f"unknown class {text!r}" + (f" (did you mean {near[0]!r}?)" if near else "")

    @property
    def forms(self) -> str:
        """How a class may be written."""
        wnid = "its wnid, " if self.wnids else ""
        return f"{wnid}its index 0 to {len(self.names) - 1}, or a name that only one class has"

    def _match(self, text: str) -> tuple[int, ...]:
        text = text.strip()
        if text in self._by_wnid:
            return (self._by_wnid[text],)
        found = set(self._by_name.get(_plain(text), ()))
        number = as_index(text)
        if number is not None and 0 <= number < len(self.names):
            found.add(number)
        return tuple(sorted(found))

    @cached_property
    def _by_wnid(self) -> dict[str, int]:
        return {wnid: index for index, wnid in enumerate(self.wnids or ())}

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, name in enumerate(self.names):
            found.setdefault(_plain(name), []).append(index)
        return found


class Written(NamedTuple):
    """A truth as it is written: what it says is the task's.

    Attributes:
        text: a class, or for transcription what is said.
        where: where it is written, begins messages.
        hint: ends messages.
    """

    text: str
    where: str
    hint: str = ""


Read = Callable[[str, str], Any]
"""Returns the truth that a text says; also given is where the text is, for messages."""


def load_labels(path: Where) -> Labels:
    """Read a label file: one class a line in index order, ``wnid<TAB>name`` or ``name``.

    Args:
        path: where a UTF-8 text file is.

    Raises:
        DataError: it cannot be read, is empty, or its lines differ in form.
    """
    lines = read_text(path).rstrip().split("\n")
    if lines == [""]:
        raise DataError(f"{path}: the label file is empty; write one class a line")
    split = [[part.strip() for part in line.split("\t")] for line in lines]
    fields = len(split[0])
    if fields > 2:
        raise DataError(f"{path}:1: {fields} columns; write 'wnid<TAB>name' or 'name'")
    seen: dict[str, int] = {}
    for number, parts in enumerate(split, 1):
        where, wnid = f"{path}:{number}", parts[0] if fields == 2 else ""
        if not all(parts):
            raise DataError(f"{where}: an empty name; it would shift all classes after it")
        if len(parts) != fields:
            raise DataError(f"{where}: {len(parts)} columns, but line 1 has {fields}")
        if wnid and seen.setdefault(wnid, number) != number:
            raise DataError(f"{where}: {wnid!r} is also in line {seen[wnid]}")
        if as_index(wnid) not in (None, number - 1):
            why = f"looks like an index, but this line is class {number - 1}"
            raise DataError(f"{where}: the id {wnid!r} {why}; remove the first column")
    names = tuple(parts[-1] for parts in split)
    return Labels(names, tuple(parts[0] for parts in split) if fields == 2 else None)


def as_index(text: str) -> int | None:
    """The integer that *text* is, or None; it may be negative."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else None


def read_text(path: Where) -> str:
    r"""The text of a UTF-8 file, with or without a byte order mark; lines end in ``\n``.

    Raises:
        DataError: it cannot be read, or a byte is not UTF-8 (the message says in which line).
    """
    with reading(path):
        data = read(path, TEXT)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from error


def numbered_lines(path: Where) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not blank, each with its number from 1.

    Raises:
        DataError: see :func:`read_text`.
    """
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield number, line


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()
