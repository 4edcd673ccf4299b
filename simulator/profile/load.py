"""Load a profile: merge what it extends, override, find its files, validate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from simulator import registry
from simulator.command import allowed
from simulator.contract import Stage
from simulator.errors import ProfileError
from simulator.profile import messages, modality
from simulator.profile.document import (
    Document,
    inside,
    read,
)
from simulator.profile.implementations import problems_of
from simulator.profile.lookup import find
from simulator.profile.merged import IDENTITY, Merged, merged_of, modality_of
from simulator.profile.own_files import find_files, settle_artifact
from simulator.profile.profile import Profile
from simulator.profile.reference import BASE, Named, code_of, read_reference

_CODE = (Stage.FRONT_END, Stage.RUNTIME)
"""The sections that may name code."""
_PLACING = (("geometry",), ("decode", "exif"))
"""What says where pixels lie, also of a front end that is not ours."""
_OF_THE_RUNTIME = ("device", "threads")
"""The fields of ``runtime`` that a stack keeps whose answers come from code or a recording."""


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
        merged = merged_of(given)
    for one in overrides:
        merged.override(one, f"{side}." if side else "")
    kind = modality_of(merged)
    _refuse_described(merged, kind, overrides, f"{side}." if side else "")
    find_files(merged, kind)
    settle_artifact(merged, keep_runtime)
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


def _around(named: Named, base: str, reference: str) -> Merged:
    """Fill a section of a profile with code, a program or a recording, in place of its own."""
    merged = merged_of(read(find(base)))
    for name in IDENTITY:
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


def _refuse_described(merged: Merged, kind: str, overrides: Sequence[str], prefix: str) -> None:
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


def _may_run_code(merged: Merged) -> bool:
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


def _problems(error: ValidationError, kind: str, merged: Merged) -> list[str]:
    """Return all problems, invalid values and missing offers, in the order of the sections."""
    reason = "nothing that changes a pixel has a default"
    schema = modality.schema_of(kind)
    found = messages.keyed(error, schema, merged.where, "profile", reason=reason)
    found += problems_of(kind, merged.values, merged.where, [key for key, _ in found])
    known = [*IDENTITY, "modality", *modality.sections(kind), "evidence"]
    places = {name: place for place, name in enumerate(known)}
    found.sort(key=lambda one: places.get(str(one[0][0]) if one[0] else "", len(known)))
    return [line for _, line in found]
