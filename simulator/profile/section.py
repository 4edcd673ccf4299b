"""What the sections of a profile are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Means = Annotated[list[Finite], Field(min_length=3, max_length=3)]
Deviations = Annotated[list[Above0], Field(min_length=3, max_length=3)]


class Section(BaseModel):
    """A part of a document: no unknown keys, no coercion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OpenSection(Section):
    """A part that a backend fills: the field's words are typed, the rest is for its offers to say.

    Attributes:
        backend: who fills it; further fields are held against what it offers.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    backend: str
