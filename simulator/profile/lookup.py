"""Where profiles are: built in, in other packages, in files."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from simulator.errors import ProfileError, unknown
from simulator.profile import installed


def shipped_folder(name: str) -> Path:
    """Return a folder of built-in documents, in the wheel or in the checkout."""
    package = Path(str(resources.files("simulator")))
    shipped = package / f"builtin_{name}"
    return shipped if shipped.is_dir() else package.parent / name


def builtin_folder() -> Path:
    """Return the folder of the built-in profiles."""
    return shipped_folder("profiles")


def builtin_names() -> list[str]:
    """Return the names of the built-in profiles, with their vendor's folder."""
    folder = builtin_folder()
    return sorted(str(p.relative_to(folder).with_suffix("")) for p in folder.rglob("*.yaml"))


def names() -> list[str]:
    """Return the names of the built-in profiles and of those in other packages."""
    return [*builtin_names(), *installed.names()]


def name_of(path: Path) -> str | None:
    """Return the profile name of a file, which works from any folder; None if it has none."""
    folders = {"": builtin_folder(), **installed.folders()}
    for package, folder in folders.items():
        if path.resolve().is_relative_to(folder.resolve()):
            inside = path.resolve().relative_to(folder.resolve()).with_suffix("").as_posix()
            return f"{package}/{inside}" if package else inside
    return None


def find(reference: str, base: Path | None = None) -> Path:
    """Find the file for a path, with or without ``.yaml``, or a profile name.

    A path wins over a built-in name, and a built-in name over one of another package.

    Args:
        reference: what was written.
        base: the folder for relative paths; the current one by default.

    Raises:
        ProfileError: there is no such file and no such profile.
    """
    written = (base or Path()) / os.path.expanduser(reference)
    builtin = builtin_folder()
    name = Path(reference)
    if name.parts[:1] == ("profiles",):
        name = name.relative_to("profiles")
    for candidate in (written, Path(f"{written}.yaml"), builtin / f"{name}.yaml", builtin / name):
        if os.path.isfile(candidate):  # unlike Path.is_file, no error if a name is too long
            return candidate
    brought = installed.place(reference)
    if brought is not None and os.path.isfile(brought):
        return brought
    if name.suffix in (".yaml", ".yml"):
        raise ProfileError([f"{written}: there is no such file, and no profile of this name"])
    if reference.startswith(("./", "../")):
        what = "there is no such profile; a program is named 'exec:PROGRAM --in {image} --out"
        raise ProfileError([f"{reference}: {what} {{tensor}}'"])
    named = "or give a path, FILE.py:NAME or 'exec:PROGRAM …'"
    raise ProfileError([f"{unknown('profile', reference, names())}; {named}"])
