"""Protobuf's text format, without its schema: fields in order, with their lines.

Source: protobuf.dev, "Text Format Language Specification".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.errors import ProfileError
from simulator.importers.values import Object, show
from simulator.profile.document import Key, nearest

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*|[,;])|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<mark>[{}<>\[\]:])|(?P<word>[^\s{}<>\[\]:,;"'#]+)"""
)
_ENDS = {"{": "}", "<": ">", "[": "]"}
_DEPTH = 40
_MOST = 100_000
_WORDS: dict[str, bool] = {"true": True, "True": True, "false": False, "False": False}


@dataclass(slots=True)
class TextProto:
    """A document.

    Attributes:
        path: the file.
        values: its fields; one that is given several times has the list of its values.
        lines: the line of every field.
    """

    path: Path
    text: str
    values: Object = field(default_factory=dict)
    lines: dict[Key, int] = field(default_factory=dict)
    _tokens: list[tuple[str, str, int]] = field(default_factory=list)
    _at: int = 0

    def where(self, key: Key) -> str:
        """Return ``FILE:LINE`` of a field, or of the innermost message around it."""
        return f"{self.path}:{nearest(key, self.lines, 1)}"

    @classmethod
    def read(cls, path: Path, text: str) -> TextProto:
        """Read a document.

        Raises:
            ProfileError: it is none.
        """
        made = cls(path, text)
        made._split()
        made.values = made._message("", (), 0)
        return made

    def _split(self) -> None:
        at, line = 0, 1
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None or len(self._tokens) > _MOST:
                raise self._broken(line, self.text[at : at + 20])
            if found.lastgroup != "skip":
                self._tokens.append((str(found.lastgroup), found[0], line))
            line += found[0].count("\n")
            at = found.end()

    def _broken(self, line: int, got: str) -> ProfileError:
        return ProfileError([f"{self.path}:{line}: not protobuf text: {show(got)}"])

    def _next(self) -> tuple[str, str, int]:
        last = self._tokens[-1][2] if self._tokens else 1
        self._at += 1
        past = self._at > len(self._tokens)
        return ("end", "", last) if past else self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _message(self, end: str, place: Key, depth: int) -> Object:
        made: Object = {}
        while True:
            kind, name, line = self._next()
            if name == end and kind in ("mark", "end"):
                return made
            if kind != "word" or depth > _DEPTH:
                raise self._broken(line, name or "it ends inside of a message")
            colon = self._peek() == ":"
            self._at += colon
            if not colon and self._peek() not in ("{", "<", "["):
                raise self._broken(line, f"{name} without a value")
            before = made.get(name)
            key = (*place, name)
            if before is not None:
                before = made[name] = before if isinstance(before, list) else [before]
                key = (*key, len(before))
            self.lines[key] = line
            value = self._value(key, depth + 1)
            if isinstance(before, list):
                before.extend(value if isinstance(value, list) else [value])
            else:
                made[name] = value

    def _value(self, place: Key, depth: int) -> Any:
        kind, token, line = self._next()
        if depth > _DEPTH:
            raise self._broken(line, token)
        if token in ("{", "<"):
            return self._message(_ENDS[token], place, depth)
        if token == "[" and kind == "mark":
            made: list[Any] = []
            while self._peek() != "]":
                self.lines[(*place, len(made))] = line
                made.append(self._value((*place, len(made)), depth + 1))
            self._at += 1
            return made
        if kind == "text":
            while self._at < len(self._tokens) and self._tokens[self._at][0] == "text":
                token = token[:-1] + self._next()[1][1:]
            return token[1:-1]
        if kind != "word":
            raise self._broken(line, token or "it ends inside of a message")
        return _WORDS.get(token, _number(token))


def _number(token: str) -> int | float | str:
    """Return a number, or the name of an enumeration's value."""
    for kind in (int, float):
        try:
            return kind(token.rstrip("fF") if kind is float else token)
        except ValueError:
            continue
    return token
