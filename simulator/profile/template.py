"""A template for a new profile: all values of the profile it extends, and the other options.

A commented field has the value that is in effect. So a new document describes exactly the stack
that it extends, whichever fields are uncommented; only its evidence differs: it is ``assumed``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator import registry
from simulator.contract import Admits, KeepList, Options, Stage, StageSpec
from simulator.contract.stage import STAGES
from simulator.errors import UserError
from simulator.profile.axes import TODO, is_open, is_recorded
from simulator.profile.document import Key
from simulator.profile.fit import listed
from simulator.profile.hints import Hint
from simulator.profile.implementations import Choice, Choices, choose
from simulator.profile.load import load
from simulator.profile.lookup import find, name_of, names
from simulator.profile.modality import IMAGE, at, filled, sections
from simulator.profile.modeline import modeline, schema_name
from simulator.profile.profile import Profile
from simulator.profile.resolved import behind, fields, is_written
from simulator.profile.text import Line, flow, render, write_new

_SOURCE = f"{TODO}: the document, call or measurement that shows it"
_SUMMARY = f"{TODO}: one line that says which hardware and software this is"
_HEAD = """\
This profile still equals {nearest} in every field, and it claims no evidence.
1. Change what your stack does differently. Remove "# " before a field to write another value.
2. Delete everything that is the same, with its claim: it is inherited, with its evidence.
   Set a field that your backend does not have to null.
3. Cite a source for each remaining section, and say what kind of evidence it is.
4. Run: simulate profiles check {file}
All fields: docs/profiles.md. How to contribute a profile: docs/contributing-a-profile.md"""
_KINDS = """\
How you know each section; a claim stronger than the backend's own is refused. Strongest first:
  native            the library or device itself, run here
  vendor_simulator  the vendor's own arithmetic, run without the device
    emulated          rebuilt from a public source, or by a substitute library
    recorded          dumped on the device and replayed
    assumed           not confirmed by any source"""
_PAGES = {
    "decode": "decoders", "resize": "resizers", "graph": "graph", "precision": "profiles",
    "runtime": "runtimes", "color": "profiles", "postprocess": "profiles",
}  # fmt: skip
_TYPES = {float: "a number", int: "a whole number", str: "words", bool: "true, false"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def write(name: str, nearest: str, out: str | None) -> Path:
    """Write a new profile document and return its path.

    Args:
        name: the name of the new profile.
        nearest: the profile that it extends: a path or a name.
        out: the file; by default the name with ``.yaml``, in the current folder.

    Raises:
        UserError: the name is not valid or already used, or the file exists.
        ProfileError: the profile to extend does not exist, or is not valid.
    """
    if not _NAME.fullmatch(name) or name.endswith((".yaml", ".yml")):
        raise UserError(
            f"{name!r} is not a valid profile name: use letters, digits, '_', '-' and '.', without "
            "a folder or suffix"
        )
    if name in names():
        raise UserError(f"a profile {name} already exists: simulate profiles show {name}")
    path = Path(out or f"{name}.yaml")
    text = document(name, nearest, path)
    write_new(path, text)
    return path


def document(name: str, nearest: str, path: Path) -> str:
    """Return the text of a new document.

    Args:
        name: the name of the new profile.
        nearest: the profile that it extends: a path or a name.
        path: the path of the new document.

    Raises:
        UserError: the profile to extend does not exist, is not valid, or replays a recording.
    """
    profile = load(nearest)
    choices = choose(profile)
    if is_recorded(profile):
        raise UserError(f"{nearest} replays a recording; start from the stack that was recorded")
    above = find(nearest)
    extends = name_of(above) or os.path.relpath(above, path.parent)
    schema = schema_name(profile.spec.modality)
    head = f"{modeline(schema, path)}\n{_HEAD.format(nearest=nearest, file=path)}"
    lines = [*_words(head)]
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
        inner = list(_section(profile, choices, (key,), section, off))
        if all(line.off is not None for line in inner):  # a key without a value would be null
            off, inner = 0, list(_section(profile, choices, (key,), section, 0))
        lines += [Line(0, ""), *_words(f"{_about(section)}.{page}"), Line(0, key, off=off), *inner]
        claim = {"kind": "assumed", "source": _SOURCE}
        own = _evidence(profile, choices, key)
        claims.append(Line(1, key, flow(claim), own, off if off is None else 1))
    return render([*lines, Line(0, ""), *_words(_KINDS), Line(0, "evidence"), *claims])


def unfinished(profile: Profile) -> dict[str, str]:
    """Return the keys of a profile that still have to be written, each with its place."""
    texts: dict[Key, str] = {("summary",): profile.spec.summary}
    for section, claim in profile.spec.evidence.items():
        texts["evidence", section] = claim.source
    open_keys = [key for key, text in texts.items() if is_open(text)]
    return {".".join(map(str, key)): profile.where(key) for key in open_keys}


def _section(
    profile: Profile, choices: Choices, key: Key, section: BaseModel, off: int | None
) -> Iterator[Line]:
    """Yield the lines of one section: values that are written, implied, and possible."""
    choice, spec = behind(profile, choices, key), _spec(profile, key)
    offered = _offered(choice) if choice else {}
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
    """Yield the line of a stage that the stack does not have."""
    spec = _spec(profile, (name,))
    if spec is not None:
        yield from (Line(0, ""), *_words(f"{spec.about}."))
        yield Line(0, name, "null", f"[{_of_stage(spec.name)}]", 0)


def _note(profile: Profile, choices: Choices, key: Key, section: BaseModel) -> str:
    """Return a field's allowed values in brackets, and its description."""
    *above, name = key
    info = type(section).model_fields.get(str(name))
    around, inside = _spec(profile, tuple(above)), _spec(profile, key)
    choice = behind(profile, choices, tuple(above))
    about = info.description if info else ""
    if name == "backend" and around:
        admits = _of_stage(around.name)
    elif inside and info:
        admits, about = _of_stage(inside.name), _about(Hint(info.annotation).bare)
    elif key in STAGES[Stage.RUNTIME].shared:
        admits = _of_backend(choices[Stage.RUNTIME], str(name))
    elif choice and around and name not in around.own:
        admits = _of_backend(choice, str(name))
        about = choice.backend.fields.get(str(name)) or about
    else:
        admits = _of_schema(info.annotation if info else Any)
    return f"[{admits}] {about or ''}".rstrip()


def _of_stage(stage: str) -> str:
    """Return the names of the backends that implement a stage."""
    return ", ".join(backend.name for backend in registry.backends() if backend.of(stage))


def _of_backend(choice: Choice, name: str) -> str:
    """Return the values of a field that any of a backend's offers for a stage supports."""
    every = choice.backend.admitted(choice.stage).get(name, [])
    words = dict.fromkeys(word for admits in every for word in listed(admits))
    return f"{choice.backend.name}: {', '.join(words)}"


def _of_schema(annotation: Any) -> str:
    """Return the values that the schema allows for a field that does not belong to a backend."""
    words = []
    for option in Hint(annotation).options:
        if option.words:
            words += listed(option.words)
        elif option.origin is list:
            least, most = option.lengths
            number = f"{least} " if least == most else ""
            item = Hint(option.args[0]).bare
            words.append(f"a list of {number}{'numbers' if item is float else 'words'}")
        else:
            words.append(_TYPES.get(option.bare) or f"{{{', '.join(option.keys)}}}")
    return ", ".join(words)


def _offered(choice: Choice) -> Options:
    """Return the fields that a backend's section can have, each with the value that is implied.

    The value is None if the field must be written, or belongs only to other offers.
    """
    every = choice.backend.admitted(choice.stage).items()
    shared = STAGES[choice.stage].shared_fields
    return {name: _implied(choice, name, admits[0]) for name, admits in every if name not in shared}


def _implied(choice: Choice, name: str, admits: Admits) -> object:
    known = choice.options.get(name) if name in choice.facts else None
    return None if isinstance(known, Mapping) or isinstance(admits, KeepList) else known


def _spec(profile: Profile, key: Key) -> StageSpec | None:
    """Return the stage whose backend is named in the section at a key."""
    return next((spec for spec in filled(profile.spec.modality) if spec.section == key), None)


def _evidence(profile: Profile, choices: Choices, section: str) -> str:
    """Return the evidence of a section's backends; a claim cannot be stronger."""
    specs = (spec for spec in filled(profile.spec.modality) if spec.section[0] == section)
    own = [choices[spec.name] for spec in specs if spec.name in choices]
    made = dict.fromkeys((choice.backend.name, choice.offer.evidence) for choice in own)
    return ", ".join(f"{name} is {evidence}" for name, evidence in made)


def _about(section: Any) -> str:
    """Return the first sentence of a section's docstring."""
    return str(section.__doc__).partition(";")[0].partition("\n")[0].rstrip(".")


def _words(text: str) -> Iterator[Line]:
    return (Line(0, "", note=words) for words in text.split("\n"))
