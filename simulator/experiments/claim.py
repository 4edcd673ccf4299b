"""A folder that belongs to one piece of work: the same call goes on in it, another is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from simulator.errors import UserError
from simulator.files import TEXT, read_file
from simulator.results.json_text import finite, parse_json, write_json

PLAN = "plan.json"


def claim(folder: Path, work: Mapping[str, object], what: str) -> None:
    """Take a folder for a piece of work, or find it taken for the same by an earlier call.

    Args:
        folder: made if there is none.
        work: all that its results depend on.
        what: the kind of work.

    Raises:
        UserError: it holds something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / PLAN
    if place.exists():
        if parse_json(read_file(place, TEXT)) != finite(work):
            raise UserError(f"{folder} holds another {what}; choose another --out")
    elif any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; choose another --out")
    else:
        write_json(place, work)
