"""The values of a profile and of those that it extends, each with the place where it is written."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from simulator.errors import ProfileError, UserError, shortened, unknown
from simulator.profile import artifact, modality
from simulator.profile.document import (
    MAX_DEPTH,
    Document,
    Key,
    Values,
    inside,
    nearest,
    read,
    read_value,
)
from simulator.profile.implementations import Where
from simulator.profile.lookup import find
from simulator.profile.paper_names import RESIZE, kernel

IDENTITY = ("schema", "name", "summary", "extends")
_FIXED = ("schema", "extends")


class Merged:
    """The values of a document and of those that it extends.

    Attributes:
        values: of all of them.
        origins: where each value was written.
        names_runtime: whether the runtime was named where the artifact was, or after it.
        notes: what an artifact took the place of.
        types: ``storage`` and ``compute`` as they were before an artifact, each with its place.
    """

    def __init__(self) -> None:
        self.values: Values = {}
        self.origins: dict[Key, str] = {}
        self.names_runtime = False
        self.notes: list[str] = []
        self.types: dict[str, tuple[object, str]] = {}

    def where(self, key: Key) -> str:
        """Return where a value is written, or the section that it is in."""
        return nearest(key, self.origins, "profile")

    def take(self, new: Values, where: Where) -> None:
        """Override values; evidence claims about changed sections are not inherited."""
        claims = self.values.get("evidence")
        if isinstance(claims, dict):
            for section in claims.keys() & new.keys():
                del claims[section]
                self.forget(("evidence", section))
        if inside(new, artifact.PLACE) is not None:
            self._leave_making()
        self.names_runtime |= inside(new, ("runtime", "backend")) is not None
        self._merge(self.values, new, (), where)

    def _leave_making(self) -> None:
        """Inherit nothing that makes a model file: an artifact is one."""
        self.names_runtime = False
        for section, name in artifact.REPLACED:
            held = self.values.get(section)
            if isinstance(held, dict) and (value := held.pop(name, None)) is not None:
                if (section, name) in artifact.MAKERS:
                    self.notes.append(f"{section}.{name}")
                else:
                    self.types[name] = value, self.where((section, name))
                self.forget((section, name))

    def _merge(self, values: Values, new: Values, key: Key, where: Where) -> None:
        for name, value in new.items():
            here = (*key, name)
            if isinstance(value, dict):
                inner = values.get(name)
                values[name] = inner = inner if isinstance(inner, dict) else {}
                self.origins[here] = where(here)
                self._merge(inner, value, here, where)
            elif value is None and key:
                values.pop(name, None)
                self.forget(here)
            else:
                values[name] = value
                self.forget(here)
                self.origins[here] = where(here)

    def forget(self, key: Key) -> None:
        """Keep no place of a value that is gone, nor of what is in it."""
        for known in [known for known in self.origins if known[: len(key)] == key]:
            del self.origins[known]

    def override(self, override: str, prefix: str) -> None:
        """Set one value.

        Args:
            override: ``KEY=VALUE``, the key dotted, the value YAML.
            prefix: the stack's, for messages.

        Raises:
            UserError: it is none.
        """
        text = prefix + override
        if not text.isprintable():  # messages are one line without control characters
            text = repr(text)[1:-1]
        dotted, equals, written = override.partition("=")
        names = dotted.split(".")
        if len(names) > MAX_DEPTH:
            start = shortened(text, 80)
            raise UserError(f"--set {start}: {len(names):,} words; a key has {MAX_DEPTH} at most")
        if not equals or not all(names):
            raise UserError(f"--set {text}: KEY=VALUE expected, for example resize.backend=opencv")
        if names[0] in _FIXED:
            raise UserError(f"--set {text}: {names[0]} cannot be overridden; write a profile")
        try:
            value = read_value(written)
        except ValueError as error:
            raise UserError(f"--set {text}: {written!r}: {error}") from error
        for name in reversed(names[1:]):
            value = {name: value}
        new = {names[0]: value}
        if problem := _unabridged(new):
            raise UserError(f"--set {text}: {problem}")
        self.take(new, lambda _: f"--set {text}")


def merged_of(document: Document, chain: tuple[Path, ...] = ()) -> Merged:
    """Return the values of a document and of those that it extends.

    Args:
        document: what was written.
        chain: the files that extend it.

    Raises:
        ProfileError: a profile that is extended is missing or invalid, or extends itself.
    """
    path = document.path
    if problem := _unabridged(document.values):
        raise ProfileError([f"{document.where(('resize',))}: resize: {problem}"])
    parent = document.values.get("extends")
    if parent is None:
        merged = Merged()
    elif isinstance(parent, str):
        try:
            above = find(parent, path.parent)
        except ProfileError as error:
            raise ProfileError([f"{document.where(('extends',))}: extends: {error}"]) from error
        chain = (*chain, path.resolve())
        if above.resolve() in chain:
            raise ProfileError([f"{above}: extends itself through {chain[-1]}"])
        merged = merged_of(read(above), chain)
    else:
        raise ProfileError([f"{document.where(('extends',))}: extends: a profile's name expected"])
    for name in IDENTITY:
        merged.values.pop(name, None)
        merged.forget((name,))
    merged.origins[()] = document.where(())
    merged.take(document.values, document.where)
    return merged


def _unabridged(values: Values) -> str | None:
    """Write the fields of a short name of ``resize`` in its place; return what is wrong with it."""
    resize = values.get("resize")
    if isinstance(resize, str):
        if resize not in RESIZE:
            return unknown("resize", resize, RESIZE)
        values["resize"] = kernel(resize)
    return None


def modality_of(merged: Merged) -> str:
    """Return the modality of a document; images by default."""
    name = merged.values.get("modality", modality.IMAGE)
    if isinstance(name, str):
        with suppress(UserError):
            modality.SCHEMAS.require(name)
            return name
    what = unknown("modality", name, modality.SCHEMAS.names)
    raise ProfileError([f"{merged.where(('modality',))}: modality: {what}"])
