"""Write simulator/__init__.pyi: what type checkers and editors know of the experiments' functions.

python tools/stubs.py            write it
python tools/stubs.py --check    exit 1 if it is not what it would be
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import generated

import simulator
from simulator.command.experiment import EXPERIMENTS, Command, called_in_python, place
from simulator.command.given import taken
from simulator.command.options import Group, declared

PLACE = Path(simulator.__file__).with_suffix(".pyi")
HEAD = '''"""The functions of this package; made by tools/stubs.py from the experiments' options."""

import collections.abc
import pathlib
import typing

import simulator.command.given
import simulator.command.options
'''


def written() -> dict[Path, str]:
    """Return the text of the file."""
    imports: set[str] = set()
    groups: dict[type, str] = {}
    functions = [_function(name, imports, groups) for name in simulator.experiment_of().values()]
    places = [
        f"from {module} import {attribute} as {name}"
        for name, (module, attribute) in simulator.PLACES.items()
    ]
    text = "\n".join([HEAD + "\n".join(sorted({*imports, *places})), "", *groups.values()])
    return {PLACE: "\n".join([text, *functions])}


def _function(name: str, imports: set[str], groups: dict[type, str]) -> str:
    """Return a function: what it takes without a name, and its options, which groups have."""
    command = EXPERIMENTS.of(name)
    every = declared(command.Options)
    given = [every[one] for one in command.positional()]
    lines = [
        f"    {one.name}: {_type(taken(one))}{'' if one.required else ' = ...'}," for one in given
    ]
    _group(command.Options, groups)
    returned = str(inspect.get_annotations(place(command.runs))["return"])
    imports |= _imported(command, returned)
    options = f"    **options: typing.Unpack[_{command.Options.__name__}],"
    head = f"def {called_in_python(name)}("
    return "\n".join([head, *lines, options, f") -> {returned}: ...", ""])


def _group(shape: type[Any], groups: dict[type, str]) -> None:
    """Add a group of options, behind those that it is made of."""
    if shape in groups:
        return
    bases = [base for base in shape.__bases__ if base not in (object, Group)]
    for base in bases:
        _group(base, groups)
    known = {name for base in bases for name in declared(base)}
    own = [
        one
        for one in declared(shape).values()
        if one.name not in known and not (one.about.in_python or one.about.positional)
    ]
    wrapped = ("typing.Required[{}]" if one.required else "{}" for one in own)
    lines = [
        f"    {one.name}: {kind.format(_type(taken(one)))}"
        for one, kind in zip(own, wrapped, strict=True)
    ]
    named = ", ".join(f"_{base.__name__}" for base in bases) or "typing.TypedDict"
    head = f"class _{shape.__name__}({named}, total=False):"
    groups[shape] = "\n".join([f"{head}{'' if lines else ' ...'}", *lines, ""])


def _type(kind: Any) -> str:
    if isinstance(kind, type) and not hasattr(kind, "__args__"):
        same = kind.__module__ == "builtins"
        return kind.__name__ if same else f"{kind.__module__}.{kind.__name__}"
    return str(kind).replace("NoneType", "None")


def _imported(command: Command[Any], returned: str) -> set[str]:
    """The imports of the names in what a function returns."""
    module = sys.modules[place(command.runs).__module__]
    known = {
        alias.name: node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = set(re.findall(r"[A-Z]\w+", returned)) - simulator.PLACES.keys()
    return {f"from {known.get(name, module.__name__)} import {name}" for name in names}


if __name__ == "__main__":
    sys.exit(generated.main(sys.argv[1:], written(), PLACE.parent, PLACE.suffix))
