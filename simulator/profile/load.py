"""Find profile documents, merge them along ``extends``, and validate them."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from simulator import registry
from simulator.command import allowed
from simulator.contract import File, Stage
from simulator.errors import ModelError, ProfileError, UserError, shortened, unknown
from simulator.profile import artifact, installed, messages, modality
from simulator.profile.document import (
    MAX_DEPTH,
    Document,
    Key,
    Values,
    inside,
    nearest,
    read,
    read_value,
)
from simulator.profile.implementations import Where, problems_of
from simulator.profile.paper_names import RESIZE, kernel
from simulator.profile.profile import Profile
from simulator.profile.reference import BASE, Named, code_of, read_reference

_IDENTITY = ("schema", "name", "summary", "extends")
_FIXED = ("schema", "extends")
_CODE = (Stage.FRONT_END, Stage.RUNTIME)
"""The sections that may name code."""
_PLACING = (("geometry",), ("decode", "exif"))
"""What says where pixels lie, also of a front end that is not ours."""
_OF_THE_RUNTIME = ("device", "threads")
"""The fields of ``runtime`` that a stack keeps whose answers come from code or a recording."""


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


def load(
    reference: str | Document,
    overrides: Sequence[str] = (),
    side: str = "",
    keep_runtime: bool = False,
) -> Profile:
    """Load one profile, or the profile that stands for code, a program or a recording.

    Args:
        reference: a path or a built-in name, see :func:`find`; what a file would say; or what
            :func:`simulator.profile.reference.read_reference` reads.
        overrides: ``KEY=VALUE`` with a dotted key and a YAML value; ``null`` removes.
        side: ``train`` or ``deploy`` where the profile is one of a pair, for messages.
        keep_runtime: whether the profile's runtime was asked for by name, so that no other takes
            its place where it does not open the profile's own model file.

    Raises:
        ProfileError: it lists every problem found.

    Examples:
        >>> load("pillow_fp32", ["resize.interpolation=bilinear"]).spec.resize.interpolation
        'bilinear'
    """
    named = None if isinstance(reference, Document) else read_reference(reference)
    whole = overrides
    base = BASE
    if named is not None:
        base, overrides = _base(overrides)
        merged = _around(named, base, str(reference))
    else:
        given = reference if isinstance(reference, Document) else read(find(reference))
        merged = _merged(given, ())
    for override in overrides:
        _override(merged, override, f"{side}." if side else "")
    kind = _modality(merged)
    _refuse_described(merged, kind, overrides, f"{side}." if side else "")
    _find_files(merged, kind)
    _settle_artifact(merged, keep_runtime)
    try:
        spec = modality.schema_of(kind).model_validate(merged.values)
    except ValidationError as error:
        raise ProfileError(_problems(error, kind, merged)) from error
    notes = (*([named.remark(base)] if named is not None else ()), *merged.notes)
    may_run_code = _may_run_code(merged)
    return Profile(spec.name, spec, merged.origins, tuple(whole), notes, may_run_code)


def _base(overrides: Sequence[str]) -> tuple[str, list[str]]:
    """What a stack extends that is no profile, and the other overrides."""
    bases = [one for one in overrides if one.startswith("extends=")]
    others = [one for one in overrides if one not in bases]
    return (bases[-1].removeprefix("extends=") if bases else BASE), others


def _around(named: Named, base: str, reference: str) -> _Merged:
    """Fill a section of a profile with code, a program or a recording, in place of its own."""
    merged = _merged(read(find(base)), ())
    for name in _IDENTITY:
        merged.values.pop(name, None)
        merged.forget((name,))
    if isinstance(runtime := merged.values.get(named.section), dict):
        for name in [name for name in runtime if name not in _OF_THE_RUNTIME]:
            del runtime[name]
            merged.forget((named.section, name))
    merged.origins[()] = reference
    document = {"schema": 1, **named.document(base)}
    merged.take(document, lambda _: reference)
    return merged


def _refuse_described(merged: _Merged, kind: str, overrides: Sequence[str], prefix: str) -> None:
    """Refuse overrides of what only describes a front end that is not ours.

    Raises:
        ProfileError: a line for each.
    """
    backend = inside(merged.values, (Stage.FRONT_END, "backend"))
    if backend is None:
        return
    places, steps = modality.places(kind), modality.steps_of_front_end(kind)
    described = {places[axis][0] for axis in steps if axis in places}
    keys = [(one, tuple(one.partition("=")[0].split("."))) for one in overrides]
    if problems := [
        f"--set {prefix}{one}: changes nothing: {key[0]} only describes what {backend} makes in "
        f"front_end; --set {prefix}front_end=null lets the profile make it"
        for one, key in keys
        if key[0] in described and key[0] != _PLACING[0][0] and key not in _PLACING
    ]:
        raise ProfileError(problems)


def _may_run_code(merged: _Merged) -> bool:
    """Whether the user of this call named the code of a stack, wrote it, or allows it."""
    call = allowed.current()
    if call.allowed:
        return True
    written = {f"--set {one}" for one in call.named} | call.named
    for stage in _CODE:
        if runs_code(stage, inside(merged.values, (stage, "backend"))):
            keys = [key for key in merged.origins if key[:1] == (stage,) and len(key) > 1]
            own = [key for key in keys if key[1] not in _OF_THE_RUNTIME]
            if all(merged.origins[key] in written for key in own):
                continue
            code = code_of(inside(merged.values, (stage,)))
            known = {code_of(one.values) for one in map(_named, call.named) if one}
            if code is None or code not in known:
                return False
    return True


def _named(reference: str) -> Named | None:
    with suppress(ProfileError):
        return read_reference(reference)
    return None


def runs_code(stage: str, backend: object) -> bool:
    """Whether a section that names a backend names code as well, which the backend runs."""
    if not isinstance(backend, str) or backend not in registry.BACKENDS.points:
        return False
    offers = registry.backend(backend).of(stage)
    return any(getattr(offer.make, "runs_code", False) for offer in offers)


def movable(document: Document) -> Values:
    """Return the values of a document with whole paths, so that it can be written elsewhere.

    Raises:
        ProfileError: it is not valid.
    """
    own, whole = _Merged(), _merged(document, ())
    own.values, own.origins[()] = copy.deepcopy(document.values), document.where(())
    _find_files(own, _modality(whole), whole.values)
    file, precision = inside(own.values, artifact.PLACE), own.values.get("precision")
    if isinstance(file, str) and isinstance(precision, dict):
        precision["artifact"] = str(_beside(document.where(artifact.PLACE), file))
    if parent := document.values.get("extends"):
        place = find(str(parent), document.path.parent)
        own.values["extends"] = name_of(place) or str(place.resolve())
    return own.values


class _Merged:
    """The values of a document and of those that it extends.

    Attributes:
        values: of all of them.
        origins: where each value was written.
        names_runtime: whether the runtime was named where the artifact was, or after it.
        notes: what an artifact took the place of.
        types: ``storage`` and ``compute`` as they were before an artifact, each with its place.
    """

    def __init__(self) -> None:
        self.values: Values = {}
        self.origins: dict[Key, str] = {}
        self.names_runtime = False
        self.notes: list[str] = []
        self.types: dict[str, tuple[object, str]] = {}

    def where(self, key: Key) -> str:
        return nearest(key, self.origins, "profile")

    def take(self, new: Values, where: Where) -> None:
        """Override values; evidence claims about changed sections are not inherited."""
        claims = self.values.get("evidence")
        if isinstance(claims, dict):
            for section in claims.keys() & new.keys():
                del claims[section]
                self.forget(("evidence", section))
        if inside(new, artifact.PLACE) is not None:
            self._leave_making()
        self.names_runtime |= inside(new, ("runtime", "backend")) is not None
        self._merge(self.values, new, (), where)

    def _leave_making(self) -> None:
        """Inherit nothing that makes a model file: an artifact is one."""
        self.names_runtime = False
        for section, name in artifact.REPLACED:
            held = self.values.get(section)
            if isinstance(held, dict) and (value := held.pop(name, None)) is not None:
                if (section, name) in artifact.MAKERS:
                    self.notes.append(f"{section}.{name}")
                else:
                    self.types[name] = value, self.where((section, name))
                self.forget((section, name))

    def _merge(self, values: Values, new: Values, key: Key, where: Where) -> None:
        for name, value in new.items():
            here = (*key, name)
            if isinstance(value, dict):
                inner = values.get(name)
                values[name] = inner = inner if isinstance(inner, dict) else {}
                self.origins[here] = where(here)
                self._merge(inner, value, here, where)
            elif value is None and key:
                values.pop(name, None)
                self.forget(here)
            else:
                values[name] = value
                self.forget(here)
                self.origins[here] = where(here)

    def forget(self, key: Key) -> None:
        for known in [known for known in self.origins if known[: len(key)] == key]:
            del self.origins[known]


def _merged(document: Document, chain: tuple[Path, ...]) -> _Merged:
    path = document.path
    if problem := _unabridged(document.values):
        raise ProfileError([f"{document.where(('resize',))}: resize: {problem}"])
    parent = document.values.get("extends")
    if parent is None:
        merged = _Merged()
    elif isinstance(parent, str):
        try:
            above = find(parent, path.parent)
        except ProfileError as error:
            raise ProfileError([f"{document.where(('extends',))}: extends: {error}"]) from error
        chain = (*chain, path.resolve())
        if above.resolve() in chain:
            raise ProfileError([f"{above}: extends itself through {chain[-1]}"])
        merged = _merged(read(above), chain)
    else:
        raise ProfileError([f"{document.where(('extends',))}: extends: a profile's name expected"])
    for name in _IDENTITY:
        merged.values.pop(name, None)
        merged.forget((name,))
    merged.origins[()] = document.where(())
    merged.take(document.values, document.where)
    return merged


def _unabridged(values: Values) -> str | None:
    """Write the fields of a short name of ``resize`` in its place; return what is wrong with it."""
    resize = values.get("resize")
    if isinstance(resize, str):
        if resize not in RESIZE:
            return unknown("resize", resize, RESIZE)
        values["resize"] = kernel(resize)
    return None


def _override(merged: _Merged, override: str, prefix: str) -> None:
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
    for name in reversed(names[1:]):
        value = {name: value}
    new = {names[0]: value}
    if problem := _unabridged(new):
        raise UserError(f"--set {text}: {problem}")
    merged.take(new, lambda _: f"--set {text}")


def _modality(merged: _Merged) -> str:
    """Return the modality of a document; images by default."""
    name = merged.values.get("modality", modality.IMAGE)
    if isinstance(name, str):
        with suppress(UserError):
            modality.SCHEMAS.require(name)
            return name
    what = unknown("modality", name, modality.SCHEMAS.names)
    raise ProfileError([f"{merged.where(('modality',))}: modality: {what}"])


def _find_files(merged: _Merged, kind: str, whole: Values | None = None) -> None:
    """Write the whole path of each file that lies beside the document which names it.

    Args:
        merged: the values, of which some may be left to the profile that they extend.
        kind: the modality.
        whole: these values and that profile's.
    """
    for spec in modality.filled(kind):
        section = inside(merged.values, spec.section)
        if not isinstance(section, dict):
            continue
        backend = inside(whole or merged.values, (*spec.section, "backend"))
        for name, value in section.items():
            if isinstance(value, str):
                path = str(_beside(merged.where((*spec.section, name)), value))
                if os.path.isfile(path) and _is_file(spec.name, backend, name):
                    section[name] = path


def _settle_artifact(merged: _Merged, keep_runtime: bool) -> None:
    """Find the profile's own model file, its types, and a runtime that opens it.

    Raises:
        ProfileError: there is no such file, or it cannot be read.
    """
    written = inside(merged.values, artifact.PLACE)
    if not isinstance(written, str):
        merged.notes.clear()
        return
    where = merged.where(artifact.PLACE)
    try:
        found = artifact.read(_beside(where, written))
    except ModelError as error:
        raise ProfileError([f"{where}: precision.artifact: {error}"]) from error
    if found.format.native and not allowed.may(merged.origins[artifact.PLACE]):
        raise ProfileError(
            [f"{where}: precision.artifact: {found.format.about} holds code that runs here; where "
             "you trust it, add --allow-code, or name it with --deploy-artifact"]
        )  # fmt: skip
    name, precision = found.path.name, merged.values["precision"]
    assert isinstance(precision, dict)
    precision["artifact"] = str(found.path)
    merged.notes[:] = [f"{name} takes the place of {part}" for part in merged.notes]
    named = merged.names_runtime or keep_runtime
    own = inside(merged.values, ("runtime",))
    if not named and (section := artifact.runtime_for(found, own)):
        merged.notes.append(
            f"{name} is {found.format.about}, which {inside(own, ('backend',))} does not open: "
            f"runtime {section['backend']} takes its place"
        )
        merged.values["runtime"] = {}
        merged.forget(("runtime",))
        merged.take({"runtime": section}, lambda _: f"{where}: the runtime of {name}")
    for kind, value in artifact.types_of(found, inside(merged.values, ("runtime",))).items():
        if kind not in precision:
            precision[kind] = value
            merged.origins["precision", kind] = f"{where}: read from {name}"
    for kind, (value, place) in merged.types.items():  # a file that does not say its types
        if kind not in precision:
            precision[kind] = value
            merged.origins["precision", kind] = place


def _beside(where: str, written: str) -> Path:
    """Return the whole path of a file that is named relative to the document at a place."""
    folder = os.path.dirname(where.rpartition(":")[0])
    return Path(os.path.abspath(os.path.join(folder, os.path.expanduser(written))))


def _is_file(stage: str, backend: object, name: str) -> bool:
    """Whether a backend takes a field for the path of a file."""
    if not isinstance(backend, str) or backend not in registry.BACKENDS.points:
        return False
    offers = registry.backend(backend).of(stage)
    return any(isinstance(offer.options.get(name), File) for offer in offers)


def _problems(error: ValidationError, kind: str, merged: _Merged) -> list[str]:
    """Return all problems, invalid values and missing offers, in the order of the sections."""
    reason = "nothing that changes a pixel has a default"
    schema = modality.schema_of(kind)
    found = messages.keyed(error, schema, merged.where, "profile", reason=reason)
    found += problems_of(kind, merged.values, merged.where, [key for key, _ in found])
    known = [*_IDENTITY, "modality", *modality.sections(kind), "evidence"]
    places = {name: place for place, name in enumerate(known)}
    found.sort(key=lambda one: places.get(str(one[0][0]) if one[0] else "", len(known)))
    return [line for _, line in found]
