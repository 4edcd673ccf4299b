"""What a stack is named by: a profile, code, a program, or the manifest of a recording."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from simulator.command import allowed
from simulator.contract.model_format import format_of
from simulator.errors import ProfileError, shortened
from simulator.profile.document import Values, read

BASE = "pillow_fp32"
"""What a stack extends that is no profile, unless ``--set STACK.extends=PROFILE`` names another."""
EXEC = "exec:"
GIVES = ("tensor", "outputs", "answer")
"""What code and programs may give: the network's input, its outputs, or the answer."""
_CODE = re.compile(
    r"(?P<place>.+\.py|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_][\w.]*)"
    rf"(:(?P<gives>{'|'.join(GIVES)}))?"
)
_OF_PROGRAMS = ("program", "arguments")
_WRITES = re.compile(r"\{(?:list:)?(outputs|answer)\b")
_REPLACED = {"tensors": "front_end", "outputs": "runtime", "predictions": "runtime"}
"""The section that a recording fills, by its kind."""


@dataclass(frozen=True, slots=True)
class Named:
    """A stack that is no profile.

    Attributes:
        text: what names it from any folder.
        name: a short name.
        about: what it is, in a few words.
        section: of a profile, that it fills.
        values: of that section.
    """

    text: str
    name: str
    about: str
    section: str
    values: Mapping[str, object]

    def document(self, base: str) -> Values:
        """Return the profile that it is, besides what it extends."""
        summary = f"{self.about}; all else is that of {base}"
        return {"name": self.name, "summary": summary, self.section: dict(self.values)}

    def remark(self, base: str) -> str:
        """Return what users should know of all that it does not bring."""
        rest = "graph, precision, runtime and postprocessing are those"
        rest = rest if self.section == "front_end" else "postprocessing is that"
        return f"{rest} of {base}; --set STACK.extends=PROFILE takes another"


def read_reference(text: str, base: Path = Path()) -> Named | None:
    """Return the stack that a text names; None where it is the name or the path of a profile.

    Args:
        text: ``FILE.py:NAME`` or ``module:NAME``, and ``:outputs`` or ``:answer`` behind it where
            it gives no tensor; ``exec:PROGRAM …``; or the path of a recording's manifest.
        base: the folder for relative paths; the current one by default.

    Raises:
        ProfileError: there is no such file, module or program, or nothing replays the recording.
    """
    if code := read_code(text, base):
        return code
    path = base / os.path.expanduser(text)
    if path.suffix in (".yaml", ".yml") and os.path.isfile(path):
        return _recording(path)
    if format_of(path) is not None and os.path.isfile(path):
        what = "is a model, not a stack; give it with --model, or as the file that ships with"
        raise ProfileError([f"{text}: {what} --deploy-artifact"])
    return None


def read_code(text: str, base: Path = Path()) -> Named | None:
    """Return the code or the program that a text names, see :func:`read_reference`; else None."""
    if found := _CODE.fullmatch(text):
        return _code(text, found["place"], found["name"], found["gives"], base)
    if text.startswith(EXEC):
        return _program(text, base)
    if ".py:" in text:
        gives = " or ".join(f":{one}" for one in GIVES[1:])
        what = f"FILE.py:NAME expected, with {gives} behind it where it gives that"
        raise ProfileError([f"{shortened(text)}: {what}"])
    path = base / os.path.expanduser(text)
    if path.suffix == ".py" and os.path.isfile(path):
        raise ProfileError([f"{text}: name the function, too: {text}:NAME{_functions(path)}"])
    return None


def code_of(section: object) -> tuple[object, ...] | None:
    """Return what code a section names; None where it names none."""
    if not isinstance(section, Mapping) or not {"file", "program"} & section.keys():
        return None
    return tuple(section.get(name) for name in ("file", "function", "python", *_OF_PROGRAMS))


def interpreter(python: str) -> str:
    """Return the path of an interpreter that is named by its path, its environment's, or itself."""
    place = os.path.expanduser(python)
    place = os.path.join(place, "bin", "python") if os.path.isdir(place) else place
    return os.path.abspath(shutil.which(place) or place)


def portable(text: str, place: str) -> str:
    """Return what names a stack from any folder; *place* where it is a profile."""
    named = read_reference(text)
    return place if named is None else named.text


def _code(text: str, place: str, name: str, gives: str | None, base: Path) -> Named:
    beside = os.path.abspath(base / os.path.expanduser(place))
    file = beside if place.endswith(".py") else _module(place, base)
    if file is None or not os.path.isfile(file):
        what = "file" if place.endswith(".py") else "module"
        raise ProfileError([f"{text}: there is no {what} {shortened(place)}"])
    values: Values = {"backend": "python", "file": file, "function": name}
    python = allowed.current().python
    if python is not None:
        values["python"] = interpreter(python)
    short = f"{os.path.basename(file)}:{name}"
    whole = f"{file}:{name}" + (f":{gives}" if gives else "")
    return _named(whole, short, f"the code {short}", values, gives)


def _named(text: str, name: str, about: str, values: Values, gives: str | None) -> Named:
    if gives in (None, "tensor"):
        return Named(text, name, about, "front_end", values)
    return Named(text, name, about, "runtime", {**values, "gives": gives})


def _functions(file: Path) -> str:
    """The functions of a file, which is not run, for messages."""
    try:
        found = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return ""
    names = [one.name for one in found if isinstance(one, ast.FunctionDef) and one.name[0] != "_"]
    return f" (it has {shortened(', '.join(names), 200)})" if names else ""


def _module(name: str, base: Path) -> str | None:
    """Return the file of a module, which is not imported; None where there is none."""
    places: list[str] | None = [os.path.abspath(base), *sys.path]
    origin = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, places) if places else None
        if spec is None:
            return None
        places, origin = [*(spec.submodule_search_locations or ())], spec.origin
    return origin


def _program(text: str, base: Path) -> Named:
    try:
        words = shlex.split(text.removeprefix(EXEC))
    except ValueError as error:
        raise ProfileError([f"{shortened(text)}: {str(error).lower()}"]) from error
    program = os.path.expanduser(words[0]) if words else ""
    program = os.path.join(base, program) if os.sep in program else program
    found = shutil.which(program) if words else None
    if found is None:
        name = repr(words[0] if words else "")
        why = f"there is no program {name}"
        if os.path.isfile(program):
            why = f"the program {name} is not executable (chmod +x)"
        raise ProfileError([f"{shortened(text)}: {why}"])
    file, rest = os.path.abspath(found), shlex.join(words[1:])
    values: Values = {"backend": "program", "program": file, "arguments": rest}
    name, gives = os.path.basename(file), _WRITES.search(rest)
    whole = f"{EXEC}{shlex.quote(file)} {rest}"
    return _named(whole, name, f"the program {name}", values, gives[1] if gives else None)


def _recording(path: Path) -> Named | None:
    values = read(path).values
    kind = values.get("kind")
    if not {"kind", "match", "file"} <= values.keys():
        return None
    if kind not in _REPLACED:
        what = f"{path}: nothing replays {kind}; simulate identify and diagnose read them"
        raise ProfileError([what])
    name, file = str(values.get("name", path.stem)), os.path.abspath(path)
    filled = {"backend": "recorded", "recording": file}
    return Named(file, name, f"the recording {path.name}", _REPLACED[kind], filled)
