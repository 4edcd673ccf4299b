"""The base classes of profile sections."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from simulator.typed import LateModel

Positive = Annotated[int, Field(ge=1)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Means = Annotated[list[Finite], Field(min_length=3, max_length=3)]
Deviations = Annotated[list[Above0], Field(min_length=3, max_length=3)]


def refuse_misplaced(
    section: BaseModel, kind: str, needed: Collection[str], others: Collection[str] = ()
) -> None:
    """Refuse a section that lacks a field of its kind, or has one of another kind; ValueError.

    Args:
        section: with a field ``kind``.
        kind: its value.
        needed: the fields that its kind must have.
        others: fields that it may have besides.
    """
    fields = (name for name in type(section).model_fields if name != "kind")
    written = {name for name in fields if getattr(section, name) is not None}
    if missing := set(needed) - written:
        raise ValueError(f"kind {kind} needs {', '.join(sorted(missing))}")
    if unused := written - set(needed) - set(others):
        names = ", ".join(sorted(unused))
        raise ValueError(f"kind {kind} has no {names}; null removes what is inherited")


class Section(LateModel):
    """A section of a document, without unknown keys and without conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OpenSection(Section):
    """A section that names a backend; the backend's offers check the fields without a type here.

    Attributes:
        backend: the name of the backend; its offers decide which other fields are allowed.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    backend: str
