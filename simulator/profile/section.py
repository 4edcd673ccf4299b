"""The base classes of profile sections."""

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
    """A section of a document, without unknown keys and without conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class OpenSection(Section):
    """A section that names a backend; the backend's offers check the fields without a type here.

    Attributes:
        backend: the name of the backend; its offers decide which other fields are allowed.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, defer_build=True)

    backend: str
