"""YAML documents that remember the line of every value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from simulator.errors import ProfileError
from simulator.files import LARGE, open_file

try:
    from yaml._yaml import CParser
except ImportError:  # PyYAML was built without libyaml
    Loader = yaml.SafeLoader
else:

    class Loader(Composer, CParser, SafeConstructor, Resolver):  # type: ignore[no-redef]
        """Parses with libyaml, in a sixth of the time.

        Nodes are composed in Python: libyaml would do that by recursion in C, which a document of
        ten thousand brackets ends with the whole process.
        """

        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)


Key = tuple[str | int, ...]
Values = dict[str, object]
"""A mapping of a document, as plain Python values."""
Known = TypeVar("Known")
MAX_BYTES = 100_000
MAX_NODES = 10_000
MAX_DEPTH = 32
_MAX_BITS = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML mapping.

    Attributes:
        path: the file.
        values: the mapping, as plain Python values.
        lines: the line of every key and list item, from 1.
    """

    path: Path
    values: Values
    lines: dict[Key, int]

    def where(self, key: Key) -> str:
        """Return ``file:line`` of *key*, or of the innermost section around it that has a line."""
        return f"{self.path}:{nearest(key, self.lines, 1)}"


def nearest(key: Key, known: Mapping[Key, Known], otherwise: Known) -> Known:
    """Return what is known of *key*, or of the innermost section around it that is known."""
    while key and key not in known:
        key = key[:-1]
    return known.get(key, otherwise)


def inside(values: object, key: Iterable[str | int]) -> Any:
    """Return the value at a key of nested mappings; None if a part of the key is missing."""
    for part in key:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def read(path: Path) -> Document:
    """Read a YAML mapping. Nothing in it is executed; duplicate keys are refused.

    Raises:
        ProfileError: the file cannot be read or parsed, each problem as ``file:line: what``.
    """
    try:
        with open_file(path, LARGE) as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProfileError([f"{path}: cannot be read: {reason}"]) from error
    if len(raw) > MAX_BYTES:
        raise ProfileError([f"{path}: the document is larger than {MAX_BYTES:,} bytes"])
    try:
        loader, root = compose(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ProfileError([f"{path}:{line}: not UTF-8 text (byte {error.start})"]) from error
    except yaml.MarkedYAMLError as error:
        raise ProfileError([_syntax(path, error)]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ProfileError([f"{path}: {str(error).splitlines()[0]}"]) from error
    except RecursionError as error:
        raise ProfileError([f"{path}: nested too deeply"]) from error
    if not isinstance(root, yaml.MappingNode):
        raise ProfileError([f"{path}:1: a mapping of keys to values expected"])
    walker = _Walker(str(path), loader)
    values = walker.mapping(root, ())
    if walker.problems:
        raise ProfileError(walker.problems)
    return Document(path, values, walker.lines)


def read_value(text: str) -> Any:
    """Read one YAML value by the same rules as a document.

    Raises:
        ValueError: it is not a valid YAML value; the message says why.
    """
    try:
        loader, root = compose(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError("not a YAML value") from error
    if root is None:
        return None
    walker = _Walker("", loader)
    try:
        found = walker.value(root, ())
    except ProfileError as error:
        walker.problems += error.problems
    if walker.problems:
        raise ValueError(walker.problems[0].partition(": ")[2])
    return found


def compose(text: str) -> tuple[Loader | yaml.SafeLoader, yaml.Node | None]:
    """Return the only document of a text, None where it is empty, and what constructs its values.

    Raises:
        YAMLError: it is not valid YAML.
        RecursionError: it is nested too deeply.
    """
    if "\t" not in text:  # where tabs may be, the two parsers do not agree
        with suppress(yaml.YAMLError, ValueError):  # the other one says better what is wrong
            fast = Loader(text)
            return fast, fast.get_single_node()
    plain = yaml.SafeLoader(text)
    return plain, plain.get_single_node()


def _syntax(path: Path, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    what = error.problem or error.context or "not valid YAML"
    if "\\t" in what:
        what = "a tab; YAML indents with spaces"
    return f"{path}:{line}: {what}"


class _Walker:
    def __init__(self, path: str, loader: Loader | yaml.SafeLoader) -> None:
        self.path = path
        self.loader = loader
        self.lines: dict[Key, int] = {}
        self.problems: list[str] = []
        self.nodes = 0
        self.open: set[int] = set()

    def value(self, node: yaml.Node, key: Key) -> object:
        self.nodes += 1
        line = node.start_mark.line + 1
        self.lines.setdefault(key, line)
        if id(node) in self.open:
            raise ProfileError([f"{self.path}:{line}: an anchor that contains itself"])
        if self.nodes > MAX_NODES:
            raise ProfileError([f"{self.path}:{line}: more than {MAX_NODES:,} values"])
        if len(key) > MAX_DEPTH:
            raise ProfileError([f"{self.path}:{line}: nested more than {MAX_DEPTH} deep"])
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, key)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(child, (*key, i)) for i, child in enumerate(node.value)]
            return self._scalar(node, line)
        finally:
            self.open.discard(id(node))

    def mapping(self, node: yaml.MappingNode, key: Key) -> Values:
        return dict(self._pairs(node, key))

    def _pairs(self, node: yaml.MappingNode, key: Key) -> Iterator[tuple[str, object]]:
        first: dict[str, int] = {}
        for name_node, child in node.value:
            line = name_node.start_mark.line + 1
            if not isinstance(name_node, yaml.ScalarNode) or not name_node.value.isprintable():
                self.problems.append(f"{self.path}:{line}: a key must be a plain word")
                continue
            name = str(name_node.value)
            if name in first:
                dotted = ".".join(map(str, (*key, name)))
                self.problems.append(
                    f"{self.path}:{line}: {dotted}: given twice, first on line {first[name]}"
                )
                continue
            first[name] = line
            self.lines[(*key, name)] = line
            yield name, self.value(child, (*key, name))

    def _scalar(self, node: yaml.Node, line: int) -> object:
        try:
            found = self.loader.construct_object(node)
        except yaml.MarkedYAMLError as error:
            what = error.problem or error.context or "not valid YAML"
        except ValueError as error:  # month 13, or more digits than Python's limit
            what = "a number with too many digits" if "digits" in str(error) else str(error)
        except (LookupError, AttributeError):  # what PyYAML raises for !!bool x, !!timestamp x
            what = f"{str(node.value)[:40]!r} does not fit its tag {node.tag}"
        else:
            if isinstance(found, str) and _SURROGATE.search(found):
                what = "text with half of a character (a lone surrogate)"
            elif not isinstance(found, int) or found.bit_length() <= _MAX_BITS:
                return found
            else:
                what = f"a number with {found.bit_length()} bits; at most {_MAX_BITS} are allowed"
        self.problems.append(f"{self.path}:{line}: {what}")
        return None


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> Values:
    """Return the values of one document that override another's, key by key.

    Args:
        before: the values of the document that is extended.
        after: the values of the result.

    Returns:
        The keys whose values differ; None for those that *after* does not have.
    """
    found: Values = {}
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            new = changes(old, new)
        found[key] = new
    return found
