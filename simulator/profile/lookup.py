"""Where profiles are: built in, in other packages, in files."""

from __future__ import annotations

import importlib.util
import os
from importlib import resources
from pathlib import Path

from simulator.entry_points import of_group
from simulator.errors import ProfileError, UserError, unknown


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
    return [*builtin_names(), *_of_packages()]


def name_of(path: Path) -> str | None:
    """Return the profile name of a file, which works from any folder; None if it has none."""
    known = {"": builtin_folder(), **folders()}
    for package, folder in known.items():
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
    brought = place(reference)
    if brought is not None and os.path.isfile(brought):
        return brought
    if name.suffix in (".yaml", ".yml"):
        raise ProfileError([f"{written}: there is no such file, and no profile of this name"])
    if reference.startswith(("./", "../")):
        what = "there is no such profile; a program is named 'exec:PROGRAM --in {image} --out"
        raise ProfileError([f"{reference}: {what} {{tensor}}'"])
    named = "or give a path, FILE.py:NAME or 'exec:PROGRAM …'"
    raise ProfileError([f"{unknown('profile', reference, names())}; {named}"])


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


def _of_packages() -> list[str]:
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
