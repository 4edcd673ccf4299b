"""Suites: a training stack, and the options to try for each axis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.errors import ProfileError, unknown
from simulator.profile import messages
from simulator.profile.document import read
from simulator.profile.load import shipped_folder

Option = Mapping[str, Any]
"""Dotted profile keys and their values, as for ``--set``."""


class SuiteSpec(BaseModel):
    """The document.

    ``columns`` are the columns of the table, each with one or more named options; ``combined``
    is one more setting, usually the last option of every column at once.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    source: str = ""
    train: str
    columns: dict[str, dict[str, dict[str, Any]]]
    combined: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """A checked suite."""

    spec: SuiteSpec
    path: Path

    def options(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yield the column, the name of the option, and the option's overrides."""
        for column, options in self.spec.columns.items():
            for name, option in options.items():
                yield column, name, overrides(option)


def overrides(option: Option) -> list[str]:
    """Return an option as ``KEY=VALUE`` overrides."""
    return [f"{key}={json.dumps(value)}" for key, value in option.items()]


def builtin_suites() -> list[str]:
    """Return the names of the built-in suites."""
    return sorted(path.stem for path in shipped_folder("suites").glob("*.yaml"))


def load_suite(reference: str) -> Suite:
    """Load a suite: a path with or without ``.yaml``, or a built-in name.

    Raises:
        ProfileError: it does not exist, or is malformed; each problem as ``file:line: key: what``.
    """
    folder = shipped_folder("suites")
    places = (reference, f"{reference}.yaml", folder / f"{reference}.yaml")
    path = next((Path(place) for place in places if os.path.isfile(place)), None)
    if path is None:
        raise ProfileError([f"{unknown('suite', reference, builtin_suites())}; or give a path"])
    document = read(path)
    try:
        spec = SuiteSpec.model_validate(document.values)
    except ValidationError as error:
        lines = messages.problems(error, SuiteSpec, document.where, "suite")
        raise ProfileError(lines) from error
    empty = [column for column, options in spec.columns.items() if not options]
    if not spec.columns or empty:
        where = document.where(("columns", *empty[:1]))
        raise ProfileError([f"{where}: columns: each column needs at least one option"])
    return Suite(spec, path)
