"""The manifest of an evidence bundle."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.audit import bundle
from simulator.audit.archive import Archive
from simulator.errors import RunError

MANIFEST = "manifest.json"
SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Conformance(_Part):
    """One check of the conformance suite; see :class:`simulator.testing.Finding`."""

    stage: str
    options: str
    check: str
    mark: Literal["passed", "failed", "cannot"]
    remark: str


class Recorded(_Part):
    """What one implementation made of the inputs of its stage.

    ``inputs`` has the SHA-256 of each input by its name; ``arrays`` the SHA-256 of the NumPy files
    that it became, which are members ``arrays/SHA256.npy``; ``refused`` why there are none.
    """

    stage: str
    options: dict[str, Any]
    what: str
    inputs: dict[str, str]
    arrays: dict[str, list[str]]
    refused: dict[str, str]


class Evidence(_Part):
    """What is in a bundle: who was asked, where it ran, and what it gave."""

    schema_: Literal[1] = Field(alias="schema")
    simulator: str
    commit: dict[str, Any] | None
    backend: str
    package: str
    libraries: dict[str, str | None]
    device: str
    drivers: dict[str, str]
    machine: dict[str, Any]
    made: str
    seconds: float
    findings: list[Conformance]
    recordings: list[Recorded]


def read(packed: Archive) -> Evidence:
    """Return the manifest of an open bundle.

    Raises:
        RunError: it is not of this form; the first few problems in one line.
    """
    found = bundle.read_json(packed, MANIFEST)
    try:
        return Evidence.model_validate_json(packed.read(MANIFEST, bundle.MOST_TEXT))
    except ValidationError as error:
        if found.get("schema") not in (None, SCHEMA):
            why = f"schema {found['schema']!r}; this simulator reads {SCHEMA}: update it"
        else:
            lines = (
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3]
            )
            why = "; ".join(lines)
        raise RunError(f"{packed.path}: {MANIFEST}: {why[:300]}") from error
