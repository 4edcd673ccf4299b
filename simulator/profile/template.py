"""A new profile to be filled in: all that its nearest says, and what else could be written there.

A commented field has the value that stands behind it. So a fresh document describes the very stack
that it extends, whatever is uncommented; only its evidence is its own, and that is ``assumed``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.contract import Stage, StageSpec
from simulator.contract.stage import STAGES
from simulator.errors import UserError
from simulator.profile import allowed as admitted
from simulator.profile.axes import TODO, is_open, is_recorded
from simulator.profile.document import Key
from simulator.profile.hints import Hint
from simulator.profile.implementations import Choices, choose
from simulator.profile.load import Profile, find, load, name_of, names
from simulator.profile.modality import IMAGE, at, filled, sections
from simulator.profile.resolved import behind, fields, is_written
from simulator.profile.text import Line, flow, render, write_new

_SOURCE = f"{TODO}: the document, call or measurement that says so"
_SUMMARY = f"{TODO}: one line that says which hardware and software this is"
_HEAD = """\
As it stands this is {nearest} in every field, and its evidence claims nothing.
1. Write what your stack does otherwise. Remove "# " before a field to write another value.
2. Delete what it does not do otherwise, claims included: that is inherited, with its evidence.
   A field that your backend does not have is taken away by null.
3. Cite a source for what is left, and say what kind of evidence that is.
4. Run: simulate profiles check {file}
The fields in full: docs/profiles.md; the way into the library: docs/contributing-a-profile.md"""
_KINDS = """\
How you know each section; a claim stronger than the backend's own is refused. Strongest first:
  native            the very library or device, run here
  vendor_simulator  the vendor's own arithmetic, run without the device
  emulated          rebuilt from a public source, or by a library that stands in
  recorded          dumped on the device and replayed
  assumed           nobody has said so"""
_PAGES = {
    "decode": "decoders", "resize": "resizers", "graph": "graph", "precision": "profiles",
    "runtime": "runtimes", "color": "profiles", "postprocess": "profiles",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def write(name: str, nearest: str, out: str | None) -> Path:
    """Write a new document.

    Args:
        name: of the new profile.
        nearest: the profile that it extends: a path or a name.
        out: the file; by default the name with ``.yaml``, here.

    Raises:
        UserError: the name cannot be one or is taken, or the file is there.
        ProfileError: the nearest profile is none, or is not well-formed.
    """
    if not _NAME.fullmatch(name) or name.endswith((".yaml", ".yml")):
        raise UserError(
            f"{name!r} cannot be a profile's name: letters, digits, '_', '-' and '.' are taken, "
            "and no folder or ending"
        )
    if name in names():
        raise UserError(f"{name} is a profile already: simulate profiles show {name}")
    path = Path(out or f"{name}.yaml")
    text = document(name, nearest, path)
    write_new(path, text)
    return path


def document(name: str, nearest: str, path: Path) -> str:
    """Return the text of a new document.

    Args:
        name: of the new profile.
        nearest: the profile that it extends: a path or a name.
        path: where the document will lie.

    Raises:
        UserError: the nearest profile is none, is not well-formed, or replays a recording.
    """
    profile = load(nearest)
    choices = choose(profile)
    if is_recorded(profile):
        raise UserError(f"{nearest} replays a recording; start from the stack that was recorded")
    above = find(nearest)
    extends = name_of(above) or os.path.relpath(above, path.parent)
    lines = [*_words(_HEAD.format(nearest=nearest, file=path))]
    lines += [Line(0, "schema", "1"), Line(0, "name", flow(name))]
    lines += [Line(0, "summary", flow(_SUMMARY)), Line(0, "extends", flow(extends))]
    if profile.spec.modality != IMAGE:
        lines.append(Line(0, "modality", flow(profile.spec.modality)))
    claims = []
    for key in sections(profile.spec.modality):
        section = at(profile.spec, (key,))
        if section is None:
            lines += _absent(profile, key)
            continue
        off = None if is_written(profile, (key,)) else 0
        page = f" See docs/{_PAGES[key]}.md." if key in _PAGES else ""
        lines += [Line(0, ""), *_words(f"{_about(section)}.{page}"), Line(0, key, off=off)]
        lines += _section(profile, choices, (key,), section, off)
        claim = {"kind": "assumed", "source": _SOURCE}
        own = _evidence(profile, choices, key)
        claims.append(Line(1, key, flow(claim), own, off if off is None else 1))
    return render([*lines, Line(0, ""), *_words(_KINDS), Line(0, "evidence"), *claims])


def unfinished(profile: Profile) -> dict[str, str]:
    """Return the keys of a profile that are still to be written, each with where that is."""
    texts: dict[Key, str] = {("summary",): profile.spec.summary}
    for section, claim in profile.spec.evidence.items():
        texts["evidence", section] = claim.source
    open_keys = [key for key, text in texts.items() if is_open(text)]
    return {".".join(map(str, key)): profile.where(key) for key in open_keys}


def _section(
    profile: Profile, choices: Choices, key: Key, section: BaseModel, off: int | None
) -> Iterator[Line]:
    """The lines of one section: what is written, what is implied, what could be written."""
    choice, spec = behind(profile, choices, key), _spec(profile, key)
    offered = admitted.fields_of(choice) if choice else {}
    own = ("backend", *spec.own) if spec else ()
    depth = len(key)
    written = fields(section)
    for name in dict.fromkeys([*written, *offered]):
        value, here = written.get(name), (*key, name)
        if choice and name not in (*offered, *own):
            continue
        mine = off if off is not None or is_written(profile, here) else depth
        if isinstance(value, BaseModel) and name != "keep":
            yield Line(depth, name, note=_about(value), off=mine)
            yield from _section(profile, choices, here, value, mine)
            continue
        note = _note(profile, choices, here, section)
        if value is None:
            value, mine = offered.get(name), depth if off is None else off
            note = f"implied {note}" if value is not None else note
        plain = value.model_dump() if isinstance(value, BaseModel) else value
        yield Line(depth, name, flow(plain), note, mine)


def _absent(profile: Profile, name: str) -> Iterator[Line]:
    """The line of a stage that the stack lacks."""
    spec = _spec(profile, (name,))
    if spec is not None:
        yield from (Line(0, ""), *_words(f"{spec.about}."))
        yield Line(0, name, "null", f"[{admitted.by_stage(spec.name)}]", 0)


def _note(profile: Profile, choices: Choices, key: Key, section: BaseModel) -> str:
    """What can be written in a field, in brackets, and what it says."""
    *above, name = key
    info = type(section).model_fields.get(str(name))
    around, inside = _spec(profile, tuple(above)), _spec(profile, key)
    choice = behind(profile, choices, tuple(above))
    about = info.description if info else ""
    if name == "backend" and around:
        admits = admitted.by_stage(around.name)
    elif inside and info:
        admits, about = admitted.by_stage(inside.name), _about(Hint(info.annotation).bare)
    elif key in STAGES[Stage.RUNTIME].shared:
        admits = admitted.by_backend(choices[Stage.RUNTIME], str(name))
    elif choice and around and name not in around.own:
        admits = admitted.by_backend(choice, str(name))
        about = choice.backend.fields.get(str(name)) or about
    else:
        admits = admitted.by_schema(info.annotation if info else Any)
    return f"[{admits}] {about or ''}".rstrip()


def _spec(profile: Profile, key: Key) -> StageSpec | None:
    """The stage whose backend fills the section at a key."""
    return next((spec for spec in filled(profile.spec.modality) if spec.section == key), None)


def _evidence(profile: Profile, choices: Choices, section: str) -> str:
    """What the backends of a section say of themselves: a claim cannot be stronger."""
    specs = (spec for spec in filled(profile.spec.modality) if spec.section[0] == section)
    own = [choices[spec.name] for spec in specs if spec.name in choices]
    made = dict.fromkeys((choice.backend.name, choice.offer.evidence) for choice in own)
    return ", ".join(f"{name} is {evidence}" for name, evidence in made)


def _about(section: Any) -> str:
    """The first sentence of what a section is."""
    return str(section.__doc__).partition(";")[0].partition("\n")[0].rstrip(".")


def _words(text: str) -> Iterator[Line]:
    return (Line(0, "", note=words) for words in text.split("\n"))
