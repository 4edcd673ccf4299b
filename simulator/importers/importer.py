"""Importers: another tool's configuration becomes a profile. Each is found by entry point."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from simulator.entry_points import Table
from simulator.errors import ProfileError
from simulator.files import LARGE, open_file
from simulator.importers.draft import Draft
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile, of_draft
from simulator.importers.values import Object, plain
from simulator.profile import document
from simulator.profile.document import Document
from simulator.profile.load import load

MAX_BYTES = 4_000_000
"""Bytes of a document; an importer of networks may ask :meth:`ConfigFile.whole` for more."""


class ConfigFile:
    """A file of another tool, read as far as an importer asks.

    Raises:
        ProfileError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        inner = sorted(path.glob("Data/*/*.mlmodel")) if path.suffix == ".mlpackage" else []
        self.path = inner[0] if inner else path
        self.head = self._read(64)

    def whole(self, most: int = MAX_BYTES) -> bytes:
        """Return all bytes.

        Raises:
            ProfileError: there are more than *most*.
        """
        raw = self._read(most + 1)
        if len(raw) > most:
            raise ProfileError([f"{self.path}: at most {most:,} bytes can be imported"])
        return raw

    @cached_property
    def text(self) -> str:
        """The text.

        Raises:
            ProfileError: it is not UTF-8, or too long.
        """
        try:
            return self.whole().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            where = f"{self.path}:{line}"
            raise ProfileError([f"{where}: not UTF-8 text (byte {error.start})"]) from error

    @property
    def is_json(self) -> bool:
        """Whether it is JSON, by its name or its first character."""
        return self.path.suffix == ".json" or self.text.lstrip().startswith("{")

    @cached_property
    def json(self) -> Object:
        """The JSON object; a key that is given twice is refused.

        Raises:
            ProfileError: it is none.
        """
        return _json(self.path, self.text)

    @cached_property
    def yaml(self) -> Document:
        """The YAML mapping.

        Raises:
            ProfileError: it is none.
        """
        return document.read(self.path)

    def has_key(self, *keys: str) -> bool:
        """Whether it is a JSON object with one of these keys."""
        return self.is_json and not self.json.keys().isdisjoint(keys)

    def has_line(self, pattern: str) -> bool:
        """Whether it is a text, but no JSON, in which a regular expression is found."""
        return not self.is_json and re.search(pattern, self.text, re.MULTILINE) is not None

    def json_keys(self, draft: Draft) -> Keys:
        """Return the keys of the JSON object."""
        return Keys(draft, self.json, lambda _: str(self.path))

    def yaml_keys(self, draft: Draft) -> Keys:
        """Return the keys of the YAML mapping."""
        return Keys(draft, self.yaml.values, self.yaml.where)

    def _read(self, most: int) -> bytes:
        try:
            with open_file(self.path, LARGE) as file:
                return file.read(most)
        except OSError as error:
            why = error.strerror or error
            raise ProfileError([f"{self.path}: cannot be read: {why}"]) from error


def _json(path: Path, raw: str) -> Object:
    problems: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> Object:
        found: Object = {}
        for key, value in items:
            if key in found:
                problems.append(f"{path}: {plain(key)[:80]}: given twice in one object")
            found[key] = value
        return found

    def constant(word: str) -> None:
        problems.append(f"{path}: {word} is not a JSON number")

    try:
        found = json.loads(raw, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise ProfileError([f"{path}:{error.lineno}: not JSON: {error.msg}"]) from error
    except ValueError as error:  # more digits than Python's limit
        raise ProfileError([f"{path}: a number with too many digits"]) from error
    except RecursionError as error:
        raise ProfileError([f"{path}: nested too deeply"]) from error
    if not isinstance(found, dict):
        problems.append(f"{path}:1: a JSON object expected")
    if problems:
        raise ProfileError(list(dict.fromkeys(problems)))
    return dict(found)


class Importer(ABC):
    """One format of configuration files.

    Attributes:
        name: the name of its entry point, which ``--format`` takes.
        about: the tool and its file, in words.
        tool: the name of the format in comments.
        base: the built-in profile that gives all values that such a file does not have.
        stems: names, without suffix, that every such file has; they name no profile.
        keys: a JSON object with one of these is such a file.
        line: a text, but no JSON, in which this regular expression is found is such a file.
        beside: names of such files that lie beside a network, and describe it.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    tool: ClassVar[str]
    base: ClassVar[str]
    stems: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    line: ClassVar[str] = ""
    beside: ClassVar[tuple[str, ...]] = ()

    def recognises(self, file: ConfigFile) -> bool:
        """Whether a file is of this format and of no other, by :attr:`keys` or :attr:`line`.

        Raises:
            ProfileError: it cannot be read as such a file would have to be.
        """
        return file.has_line(self.line) if self.line else file.has_key(*self.keys)

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the stacks that a file describes; most have one.

        Raises:
            ProfileError: the file cannot be read.
        """
        return ["the only one"]

    @abstractmethod
    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Write what a file says of a stack into a draft; what no profile can say is a problem.

        Args:
            file: the file.
            draft: the profile, which extends the base, and the notes on it.
            stack: the place of the stack in :meth:`stacks`, from 0.

        Raises:
            ProfileError: the file cannot be read.
        """

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return what such a file beside a network says for its model card; None: there is none.

        Raises:
            ProfileError: the file cannot be read.
        """
        for path in network.beside(self.beside):
            file = ConfigFile(path)
            if self.recognises(file) and len(self.stacks(file)) == 1:
                draft = Draft(load(self.base), self.tool)
                self.read(file, draft, 0)
                return of_draft(draft, f"{path.name} beside it")
        return None


IMPORTERS: Table[Importer] = Table(
    "simulator.importers", "format", lambda one: isinstance(one, Importer)
)
"""Every importer by name; entry points name objects."""
