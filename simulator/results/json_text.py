"""The JSON of results: what is not finite becomes null."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json


def json_text(value: Any) -> str:
    """Return models, dataclasses, mappings and lists as JSON; NaN and infinities become null."""
    return to_json(value, indent=2, inf_nan_mode="null").decode() + "\n"


def finite(value: Any) -> Any:
    """Return a value as it comes back from its JSON: dictionaries, lists, finite numbers."""
    return from_json(to_json(value, inf_nan_mode="null"))


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one step: readers see the old file or the new one, never half."""
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(json_text(value), encoding="utf-8")
    os.replace(draft, path)
