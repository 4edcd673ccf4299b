"""The JSON of results: what is not finite becomes null."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from simulator.errors import RunError, one_line
from simulator.files import write_whole

JsonObject = Mapping[str, Any]
"""An object as it is read from a file, whoever has written it."""
MOST_VALUES = 8_000_000
"""Keys, values and commas in them: the manifest of a million images has half as many."""


def json_text(value: Any) -> str:
    """Return models, dataclasses, mappings and lists as JSON; NaN and infinities become null."""
    return to_json(value, indent=2, inf_nan_mode="null").decode() + "\n"


def finite(value: Any) -> Any:
    """Return a value as it comes back from its JSON: dictionaries, lists, finite numbers."""
    return from_json(to_json(value, inf_nan_mode="null"))


def parse_json(content: str | bytes) -> Any:
    """Return the value of a JSON text from anyone.

    Raises:
        ValueError: it is no JSON, holds half a character, or more than :data:`MOST_VALUES`.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    check_size(data)
    return from_json(data)


def parse_object(content: str | bytes, where: str) -> JsonObject:
    """Return a JSON object from anyone.

    Args:
        content: its text.
        where: the file, for messages.

    Raises:
        RunError: it is none.
    """
    try:
        found = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where}: not JSON: {one_line(error, 100)}") from error
    if not isinstance(found, dict):
        raise RunError(f"{where}: not a JSON object")
    return found


def check_size(data: bytes) -> None:
    """Refuse a JSON text from anyone that holds too many values.

    Raises:
        ValueError: it holds more than :data:`MOST_VALUES`.
    """
    if sum(map(data.count, (b"[", b"{", b",", b":"))) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values")


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one step: readers see the old file or the new one, never half."""
    write_whole(path, json_text(value).encode())
