"""Type annotations of pydantic models, read to write messages to the author of a document."""

from __future__ import annotations

from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo


class Hint:
    """What an annotation allows; ``Annotated`` and ``| None`` are removed.

    Attributes:
        bare: the remaining type.
        origin: of ``bare``: ``list``, ``tuple``, ``dict``, ``Literal``, ``Union``; else itself.
        args: of ``bare``.

    Args:
        written: the annotation.
    """

    def __init__(self, written: Any) -> None:
        self._notes: list[FieldInfo] = []
        while True:
            self.origin, self.args = get_origin(written) or written, get_args(written)
            some = [arg for arg in self.args if arg is not NoneType]
            if self.origin is Annotated:
                written, *notes = self.args
                self._notes += [note for note in notes if isinstance(note, FieldInfo)]
            elif self.origin in (Union, UnionType) and len(some) == 1:
                (written,) = some
            else:
                self.bare = written
                return

    @cached_property
    def options(self) -> list[Hint]:
        """The branches of a union; any other type has one, itself."""
        if self.origin in (Union, UnionType):
            return [Hint(arg) for arg in self.args if arg is not NoneType]
        return [self]

    @property
    def tag(self) -> str | None:
        """The key whose value selects the branch of a union; None without one."""
        return next((str(note.discriminator) for note in self._notes if note.discriminator), None)

    @property
    def words(self) -> tuple[Any, ...]:
        """The values of a ``Literal``."""
        return self.args if self.origin is Literal else ()

    @cached_property
    def keys(self) -> dict[str, Hint]:
        """The keys of a section as they are written; for a union, the keys of all branches."""
        if len(self.options) > 1:
            first, *others = self.options
            return {k: v for k, v in first.keys.items() if all(k in o.keys for o in others)}
        if self.origin is dict:
            return {str(word): Hint(self.args[1]) for word in Hint(self.args[0]).words}
        fields: dict[str, FieldInfo] = getattr(self.bare, "model_fields", {})
        return {f.alias or name: Hint(Annotated[f.annotation, f]) for name, f in fields.items()}

    @property
    def fixed(self) -> bool:
        """Whether it is a tuple with a type for each item."""
        return self.origin is tuple and ... not in self.args

    @property
    def lengths(self) -> tuple[int, int | None]:
        """The minimum and maximum number of items of a list."""
        if self.fixed:
            return len(self.args), len(self.args)
        rules = [rule for note in self._notes for rule in note.metadata]
        least = [rule.min_length for rule in rules if hasattr(rule, "min_length")]
        most = [rule.max_length for rule in rules if hasattr(rule, "max_length")]
        return max(least, default=0), min(most, default=None)

    def inside(self, part: str | int) -> Hint:
        """Return what is allowed for a key of a section, or for an item of a list."""
        if self.origin is dict:
            return Hint(self.args[1])
        if self.origin in (list, tuple):
            return Hint(self.args[int(part) if self.fixed else 0])
        return self.keys.get(str(part), Hint(Any))

    def branch(self, name: str | int) -> Hint:
        """Return the branch of a union that has this name in pydantic: its tag, or its type.

        A type is named for example ``constrained-float`` or ``literal['model']``.
        """
        if self.tag:
            return next(o for o in self.options if name in o.keys[self.tag].words)
        stem = str(name).partition("[")[0].removeprefix("constrained-")
        return next(
            (o for o in self.options if stem == getattr(o.origin, "__name__", "literal").lower()),
            Hint(Any),
        )
