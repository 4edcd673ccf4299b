"""The base of typed results: a pydantic model that also reads like the JSON it is written as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Keys:
    """Says what the keys of a dictionary name; an annotation: ``dict[str, X], Keys("stage")``.

    Attributes:
        of: the kind of names, under which a job's vocabulary lists those that a run will have.
    """

    of: str


class Typed(BaseModel):
    """A part of a result. ``part["flips"]`` is ``part.flips``, as in the JSON file.

    A subclass that sets ``extra="allow"`` is open: further figures, which a task names, lie beside
    its fields. Their names are listed in a job's vocabulary under :attr:`open_for`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    def __getitem__(self, key: str) -> Any:
        """Return a field by its name in the JSON file.

        Raises:
            KeyError: there is none.
        """
        name = _names(type(self)).get(key)
        if name is not None:
            return getattr(self, name)
        return (self.__pydantic_extra__ or {})[key]

    def __contains__(self, key: object) -> bool:
        """Whether there is a field of that name in the JSON file."""
        return key in _names(type(self)) or key in (self.__pydantic_extra__ or {})

    def keys(self) -> list[str]:
        """Return the names of all fields in the JSON file."""
        return [*_names(type(self)), *(self.__pydantic_extra__ or {})]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field by its name in the JSON file, or *default* where there is none."""
        try:
            return self[key]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        """Yield the names of all fields in the JSON file."""
        return iter(self.keys())

    def __eq__(self, other: object) -> bool:
        """Whether the other is equal, or a dictionary of the same; what is None may be left out."""
        if isinstance(other, Mapping):
            return {*other} <= {*self} and all(self[key] == other.get(key) for key in self)
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]


def open_for(shape: type[BaseModel]) -> str | None:
    """Return under which word a vocabulary lists the further names of an open part."""
    found = getattr(shape, "OPEN_FOR", None)
    return found if isinstance(found, str) else None


def plain(part: BaseModel) -> dict[str, Any]:
    """Return a model as dictionaries and lists, by the names of the JSON file."""
    return part.model_dump(by_alias=True)


def _names(shape: type[BaseModel]) -> dict[str, str]:
    """From each name in the JSON file to the attribute."""
    return {field.alias or name: name for name, field in shape.model_fields.items()}


Interval = Annotated[list[float | None], Field(min_length=2, max_length=2)]
"""The lower and the upper end of a 95 % interval; None for an end that is not known."""
Known = Annotated[list[float], Field(min_length=2, max_length=2)]
"""Both ends of an interval, which are always known."""
Pixels = Annotated[list[int], Field(min_length=2, max_length=2)]
"""Rows and columns."""
