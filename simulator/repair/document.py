"""Documents of repairs: what a deployment may do otherwise, at which cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from simulator.errors import ProfileError
from simulator.profile.document import Document
from simulator.profile.suite import read_suite

FOLDER = "repairs"
"""Below the folder of the built-in suites."""
MEASURED: Literal["measured"] = "measured"
Finite = Annotated[float, Field(allow_inf_nan=False)]
Measure = Literal["ms", "hours", "memory_mib"]


class CostSpec(BaseModel):
    """What an option costs beyond the deployment as it is.

    ``ms`` is the latency that it adds to a sample: a number, or ``measured``, by how much it is
    slower here in the same run. ``memory_mib`` is memory, ``hours`` and ``work`` are of a person.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    ms: Finite | Literal["measured"] = 0.0
    memory_mib: Finite = 0.0
    hours: Finite = 0.0
    work: str = ""


class OptionSpec(BaseModel):
    """One thing that the deployment may do otherwise; ``set`` overrides fields of its profile."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    set_: dict[str, Any] = Field(alias="set", min_length=1)
    cost: CostSpec
    why: str = ""


class RepairSpec(BaseModel):
    """The document.

    ``axes`` are what may be changed, each with one or more named options, of which at most one is
    taken. ``order`` says what cheap means: stacks are ordered by the first measure, and where that
    is equal by the next. ``train`` and ``deploy`` are the stacks where the command names none.
    ``left_out`` says which options could not run where the document was made, and why.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    source: str = ""
    train: str | None = None
    deploy: str | None = None
    order: Annotated[list[Measure], Field(min_length=1)] = ["ms", "hours", "memory_mib"]
    axes: dict[str, dict[str, OptionSpec]]
    left_out: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Repairs:
    """A checked document.

    Attributes:
        spec: its content.
        path: where it was read; None where it was made from what differs.
        document: the same with its lines, for messages; None likewise.
    """

    spec: RepairSpec
    path: Path | None = None
    document: Document | None = None

    @property
    def text(self) -> str:
        """The document as it can be edited and read again."""
        if self.path is not None:
            return self.path.read_text(encoding="utf-8")
        found = self.spec.model_dump(by_alias=True, exclude_defaults=True, exclude_none=True)
        for axis, options in self.spec.axes.items():
            for name, option in options.items():
                found["axes"][axis][name]["set"] = option.set_  # a null takes a field away
        return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=100)

    def where(self, axis: str, option: str) -> str:
        """Return where an option is written, as messages begin."""
        if self.document is None:
            return f"axes.{axis}.{option}"
        return f"{self.document.where(('axes', axis, option))}: axes.{axis}.{option}"


def load_repairs(reference: str) -> Repairs:
    """Load a document: a path with or without ``.yaml``, or a built-in name.

    Raises:
        ProfileError: it does not exist, or is malformed; each problem as ``file:line: key: what``.
    """
    spec, document = read_suite(reference, RepairSpec, "document of repairs", FOLDER)
    if problems := list(_problems(spec, document)):
        raise ProfileError(problems)
    return Repairs(spec, document.path, document)


def _problems(spec: RepairSpec, document: Document) -> list[str]:
    found = []
    if not spec.axes:
        found.append(f"{document.where(('axes',))}: axes: at least one is needed")
    for axis, options in spec.axes.items():
        where = document.where(("axes", axis))
        if not options:
            found.append(f"{where}: axes.{axis}: at least one option is needed")
        for name in (axis, *options):
            if "/" in name or "+" in name or not name.strip():
                found.append(f"{where}: axes.{axis}: {name!r}: a name without / and + is needed")
    if len(set(spec.order)) < len(spec.order):
        found.append(f"{document.where(('order',))}: order: a measure is there twice")
    return found
