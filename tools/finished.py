"""What tools that go on where they were stopped ask of a run that they find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.errors import RunError
from simulator.results.read import read_manifest


def of_same_settings(folder: Path, **wanted: Any) -> None:
    """Refuse a run that was asked for with other arguments.

    Args:
        folder: the run.
        wanted: arguments as the manifest's ``request`` has them; paths are made absolute, and
            None is the same as an argument that is not there.

    Raises:
        RunError: it is of other settings, or not a run.
    """
    asked = (read_manifest(folder).get("request") or {}).get("arguments", {})
    for name, value in wanted.items():
        expected = str(value.resolve()) if isinstance(value, Path) else value
        if asked.get(name) != expected:
            raise RunError(
                f"{folder}: of other settings: {name} is {asked.get(name)}, {expected} expected; "
                "choose another folder"
            )
