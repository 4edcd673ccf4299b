"""The base of typed results: a pydantic model that also reads like the JSON it is written as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field


class Unit(StrEnum):
    """What a number of a result is counted in. A share of 1.5 % is 0.015, a point is 0.01."""

    SHARE = "share"
    POINTS = "points"
    RATIO = "ratio"
    COUNT = "count"
    MS = "ms"
    SECONDS = "s"
    PER_SECOND = "per second"
    HOURS = "hours"
    MIB = "MiB"
    MHZ = "MHz"
    LEVELS = "levels of 0-255"
    PER_MEGAPIXEL = "ms per megapixel"
    NATS = "nats"
    DECIBELS = "dB"
    PROBABILITY = "probability"
    NUMBER = ""
    """Of no unit, or of one that a text beside it names."""


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a figure; an annotation of its field.

    Of a dictionary it is said of the values, of a part with an interval of the value and its ends.

    Attributes:
        unit: what it is counted in.
        better: 1 where more is better, -1 where less is, 0 where neither.
        short: its name in rules, where that is not the one that its place gives.
        hidden: of the run and not of what it found: rules may name it, lists leave it out.
    """

    unit: Unit = Unit.NUMBER
    better: int = 0
    short: str = ""
    hidden: bool = False

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Return the schema of a field with its unit, where it has one."""
        return {**handler(core), **({"unit": self.unit.value} if self.unit.value else {})}


@dataclass(frozen=True, slots=True)
class Named:
    """How rules call a part that figures lie in; an annotation of its field.

    Attributes:
        word: in place of the field's name; empty: it is left out.
        behind: whether it stands behind the name of the next part.
    """

    word: str = ""
    behind: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """Says what the keys of a dictionary name; an annotation: ``dict[str, X], Keys("stage")``.

    Attributes:
        of: the kind of names, under which a job's vocabulary lists those that a run will have.
        usual: the key that rules may leave out.
    """

    of: str
    usual: str | None = None


class LateModel(BaseModel):
    """A model that is built when it is first used: importing hundreds of them takes no time.

    Types are looked up in the module of the class, never in the function that happens to use it
    first: reading its variables crashes CPython 3.13.0 inside comprehensions.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def model_rebuild(cls, **how: Any) -> bool | None:
        """Build it; see :meth:`pydantic.BaseModel.model_rebuild`."""
        return super().model_rebuild(**how | {"_parent_namespace_depth": 0})


class ResultModel(LateModel):
    """A part of a result. ``part["flips"]`` is ``part.flips``, as in the JSON file.

    A subclass that sets ``extra="allow"`` is open: further figures, which a task names, lie beside
    its fields. :attr:`OPEN` has, by the word under which a job's vocabulary lists their names, what
    is known of them; the first of a name that no vocabulary has.
    """

    OPEN: ClassVar[Mapping[str, About]] = {}

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


def plain(part: BaseModel) -> dict[str, Any]:
    """Return a model as dictionaries and lists, by the names of the JSON file."""
    return part.model_dump(by_alias=True)


@cache
def _names(shape: type[BaseModel]) -> dict[str, str]:
    """From each name in the JSON file to the attribute."""
    return {field.alias or name: name for name, field in shape.model_fields.items()}


Share = Annotated[float, About(Unit.SHARE)]
"""A fraction, written in percent."""
Points = Annotated[float, About(Unit.POINTS)]
"""The difference of two fractions, written in points."""
Ratio = Annotated[float, About(Unit.RATIO)]
"""Of two figures of one unit."""
Ms = Annotated[float, About(Unit.MS)]
Seconds = Annotated[float, About(Unit.SECONDS)]
PerSecond = Annotated[float, About(Unit.PER_SECOND)]
Nats = Annotated[float, About(Unit.NATS)]
Decibels = Annotated[float, About(Unit.DECIBELS)]
Probability = Annotated[float, About(Unit.PROBABILITY)]
"""A p-value, or the probability of an error."""
Interval = Annotated[list[float | None], Field(min_length=2, max_length=2)]
"""The lower and the upper end of a 95 % interval; None for an end that is not known."""
Known = Annotated[list[float], Field(min_length=2, max_length=2)]
"""Both ends of an interval, which are always known."""
Pixels = Annotated[list[int], Field(min_length=2, max_length=2)]
"""Rows and columns."""
