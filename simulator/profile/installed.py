"""Profiles of other installed packages; they are called ``PACKAGE/NAME``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from simulator.entry_points import of_group
from simulator.errors import UserError

GROUP = "simulator.profiles"


def folders() -> dict[str, Path]:
    """Return every package's folder of profiles by the name of its entry point.

    The entry point names the folder as a module, for example ``acme = "acme_npu.profiles"``.
    Nothing is imported; a missing folder is skipped.

    Raises:
        UserError: two installed packages use the same name.
    """
    found: dict[str, str] = {}
    for point in of_group(GROUP):
        known = found.setdefault(point.name, point.value)
        if known != point.value:
            raise UserError(
                f"two packages have profiles called {point.name!r}: {known} and {point.value}; "
                "uninstall one of them"
            )
    places = {name: _place(value) for name, value in sorted(found.items())}
    return {name: place for name, place in places.items() if place is not None}


def names() -> list[str]:
    """Return the names of the profiles in these folders."""
    return [
        f"{name}/{path.relative_to(folder).with_suffix('').as_posix()}"
        for name, folder in folders().items()
        for path in sorted(folder.rglob("*.yaml"))
    ]


def place(name: str) -> Path | None:
    """Return the path that the profile ``PACKAGE/NAME`` would have; None without such a package."""
    package, slash, rest = name.partition("/")
    folder = folders().get(package) if slash else None
    return folder / f"{rest}.yaml" if folder else None


def _place(module: str) -> Path | None:
    """Return the folder of a module; nothing is imported, only its top package is searched."""
    outermost, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(outermost)
    except (ImportError, ValueError):
        return None
    for parent in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(parent, *inner)
        if folder.is_dir():
            return folder
    return None
