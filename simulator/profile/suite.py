"""Suites: a training stack, and the options to try for each axis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from simulator.errors import ProfileError, unknown
from simulator.profile import messages
from simulator.profile.document import Document, Values, read
from simulator.profile.lookup import shipped_folder

S = TypeVar("S", bound=BaseModel)
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
    columns: dict[str, dict[str, Values]]
    combined: Values | None = None


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
    return [f"{key}={_flow(value)}" for key, value in option.items()]


def builtin_suites(below: str = "") -> list[str]:
    """Return the names of the built-in suites, or of those of a kind, which are in a folder."""
    return sorted(path.stem for path in (shipped_folder("suites") / below).glob("*.yaml"))


def load_suite(reference: str) -> Suite:
    """Load a suite: a path with or without ``.yaml``, or a built-in name.

    Raises:
        ProfileError: it does not exist, or is malformed; each problem as ``file:line: key: what``.
    """
    spec, document = read_suite(reference, SuiteSpec, "suite")
    empty = [column for column, options in spec.columns.items() if not options]
    if not spec.columns or empty:
        where = document.where(("columns", *empty[:1]))
        raise ProfileError([f"{where}: columns: each column needs at least one option"])
    return Suite(spec, document.path)


def read_suite(reference: str, shape: type[S], kind: str, below: str = "") -> tuple[S, Document]:
    """Find and read a suite of any kind: a path with or without ``.yaml``, or a built-in name.

    Args:
        reference: the path or the name.
        shape: of the document.
        kind: what it is called in messages.
        below: the folder of the built-in ones of this kind.

    Raises:
        ProfileError: it does not exist, or is malformed.
    """
    builtin = shipped_folder("suites") / below / f"{reference}.yaml"
    places = (reference, f"{reference}.yaml", builtin)
    path = next((Path(place) for place in places if os.path.isfile(place)), None)
    if path is None:
        raise ProfileError([f"{unknown(kind, reference, builtin_suites(below))}; or give a path"])
    document = read(path)
    return messages.checked(shape, document.values, document.where, "suite"), document


def _flow(value: object) -> str:
    """Return a value as YAML reads it: JSON, but 1e-10 is a word there and 1.0e-10 a number."""
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(key)}: {_flow(one)}" for key, one in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = json.dumps(value)
    plain = isinstance(value, float) and "e" in text and "." not in text
    return text.replace("e", ".0e") if plain else text
