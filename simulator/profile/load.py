"""Find profile documents, merge them along ``extends``, and validate them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simulator import registry
from simulator.contract import File
from simulator.errors import ProfileError, UserError, shortened, unknown
from simulator.profile import installed, messages, modality
from simulator.profile.document import MAX_DEPTH, Document, Key, read, read_value
from simulator.profile.implementations import problems_of
from simulator.profile.paper_names import RESIZE, kernel
from simulator.profile.profile import Profile

_IDENTITY = ("schema", "name", "summary", "extends")
_FIXED = ("schema", "extends")


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
    raise ProfileError([f"{unknown('profile', reference, names())}; or give a path"])


def load(reference: str, overrides: Sequence[str] = (), side: str = "") -> Profile:
    """Load one profile.

    Args:
        reference: a path or a built-in name, see :func:`find`.
        overrides: ``KEY=VALUE`` with a dotted key and a YAML value; ``null`` removes.
        side: ``train`` or ``deploy`` where the profile is one of a pair, for messages.

    Raises:
        ProfileError: it lists every problem found.

    Examples:
        >>> load("pillow_fp32", ["resize.interpolation=bilinear"]).spec.resize.interpolation
        'bilinear'
    """
    values, origins = _merged(find(reference), ())
    for override in overrides:
        _override(values, origins, override, f"{side}." if side else "")
    kind = _modality(values, origins)
    _find_files(values, kind, origins)
    try:
        spec = modality.schema_of(kind).model_validate(values)
    except ValidationError as error:
        raise ProfileError(_problems(error, kind, values, origins)) from error
    return Profile(spec.name, spec, origins, tuple(overrides))


def _merged(path: Path, chain: tuple[Path, ...]) -> tuple[dict[str, Any], dict[Key, str]]:
    if path.resolve() in chain:
        raise ProfileError([f"{path}: extends itself through {chain[-1]}"])
    document = read(path)
    problems = _alias_problems(document)
    if problems:
        raise ProfileError(problems)
    parent = document.values.get("extends")
    if parent is None:
        values: dict[str, Any] = {}
        origins: dict[Key, str] = {}
    elif isinstance(parent, str):
        try:
            above = find(parent, path.parent)
        except ProfileError as error:
            raise ProfileError([f"{document.where(('extends',))}: extends: {error}"]) from error
        values, origins = _merged(above, (*chain, path.resolve()))
    else:
        raise ProfileError([f"{document.where(('extends',))}: extends: a profile's name expected"])
    for name in _IDENTITY:
        values.pop(name, None)
        _forget(origins, (name,))
    origins[()] = document.where(())
    _inherit(values, origins, document.values, document)
    return values, origins


def _inherit(
    values: dict[str, Any], origins: dict[Key, str], new: dict[str, Any], document: Document
) -> None:
    """Merge *new* into *values*; evidence claims about changed sections are not inherited."""
    claims = values.get("evidence")
    if not isinstance(claims, dict):
        claims = {}
    for section in set(claims) & set(new):
        del claims[section]
        _forget(origins, ("evidence", section))
    _merge(values, origins, new, (), document)


def _alias_problems(document: Document) -> list[str]:
    resize = document.values.get("resize")
    if isinstance(resize, str):
        if resize not in RESIZE:
            where = document.where(("resize",))
            return [f"{where}: resize: {unknown('resize', resize, RESIZE)}"]
        document.values["resize"] = kernel(resize)
    return []


def _merge(
    values: dict[str, Any],
    origins: dict[Key, str],
    new: dict[str, Any],
    key: Key,
    document: Document,
) -> None:
    for name, value in new.items():
        here = (*key, name)
        if isinstance(value, dict):
            inner = values.get(name)
            values[name] = inner if isinstance(inner, dict) else {}
            origins[here] = document.where(here)
            _merge(values[name], origins, value, here, document)
        elif value is None and key:
            values.pop(name, None)
            _forget(origins, here)
        else:
            values[name] = value
            _forget(origins, here)
            origins[here] = document.where(here)


def _forget(origins: dict[Key, str], key: Key) -> None:
    for known in [known for known in origins if known[: len(key)] == key]:
        del origins[known]


def _override(values: dict[str, Any], origins: dict[Key, str], override: str, prefix: str) -> None:
    text = prefix + override
    if not text.isprintable():  # messages are one line without control characters
        text = repr(text)[1:-1]
    dotted, equals, written = override.partition("=")
    names = dotted.split(".")
    if len(names) > MAX_DEPTH:
        start = shortened(text, 80)
        raise UserError(f"--set {start}: {len(names):,} words; a key has {MAX_DEPTH} at most")
    if not equals or not all(names):
        raise UserError(f"--set {text}: KEY=VALUE expected, for example resize.backend=opencv")
    if names[0] in _FIXED:
        raise UserError(f"--set {text}: {names[0]} cannot be overridden; write a profile")
    try:
        value = read_value(written)
    except ValueError as error:
        raise UserError(f"--set {text}: {written!r}: {error}") from error
    if names == ["resize"] and isinstance(value, str):
        if value not in RESIZE:
            raise UserError(f"--set {text}: {unknown('resize', value, RESIZE)}")
        value = kernel(value)
    new: Any = value
    for name in reversed(names):
        new = {name: new}
    _inherit(values, origins, new, _Override(Path(f"--set {text}"), {}, {}))


class _Override(Document):
    def where(self, key: Key) -> str:
        return str(self.path)


def _modality(values: dict[str, Any], origins: dict[Key, str]) -> str:
    """Return the modality of a document; images by default."""
    name = values.get("modality", modality.IMAGE)
    try:
        modality.SCHEMAS.require(name)
    except (UserError, TypeError) as error:
        what = unknown("modality", name, modality.SCHEMAS.names)
        where = _nearest(("modality",), origins)
        raise ProfileError([f"{where}: modality: {what}"]) from error
    return str(name)


def _find_files(values: dict[str, Any], kind: str, origins: dict[Key, str]) -> None:
    """Write the whole path of each file that lies beside the document which names it."""
    for spec in modality.filled(kind):
        section: Any = values
        for part in spec.section:
            section = section.get(part) if isinstance(section, dict) else None
        if not isinstance(section, dict):
            continue
        for name, value in section.items():
            if isinstance(value, str):
                place = _nearest((*spec.section, name), origins).rpartition(":")[0]
                path = os.path.abspath(
                    os.path.join(os.path.dirname(place), os.path.expanduser(value))
                )
                if os.path.isfile(path) and _is_file(spec.name, section.get("backend"), name):
                    section[name] = path


def _is_file(stage: str, backend: Any, name: str) -> bool:
    """Whether a backend takes a field for the path of a file."""
    if not isinstance(backend, str) or backend not in registry.BACKENDS.points:
        return False
    offers = registry.backend(backend).of(stage)
    return any(isinstance(offer.options.get(name), File) for offer in offers)


def _problems(
    error: ValidationError, kind: str, values: dict[str, Any], origins: dict[Key, str]
) -> list[str]:
    """Return all problems, invalid values and missing offers, in the order of the sections."""
    where = partial(_nearest, origins=origins)
    reason = "nothing that changes a pixel has a default"
    schema = modality.schema_of(kind)
    found = messages.keyed(error, schema, where, "profile", reason=reason)
    found += problems_of(kind, values, where, [key for key, _ in found])
    known = [*_IDENTITY, "modality", *modality.sections(kind), "evidence"]
    places = {name: place for place, name in enumerate(known)}
    found.sort(key=lambda one: places.get(str(one[0][0]) if one[0] else "", len(known)))
    return [line for _, line in found]


def _nearest(key: Key, origins: dict[Key, str]) -> str:
    while key and key not in origins:
        key = key[:-1]
    return origins.get(key, "profile")
