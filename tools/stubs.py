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
from simulator.command.experiment import EXPERIMENTS, Command, called_in_python, function, place

PLACE = Path(simulator.__file__).with_suffix(".pyi")
HEAD = '''"""The functions of this package; made by tools/stubs.py from the experiments' options."""

import collections.abc
import pathlib
import typing

import simulator.command.options
'''


def written() -> dict[Path, str]:
    """Return the text of the file."""
    imports: set[str] = set()
    functions = [_function(name, imports) for name in simulator.experiment_of().values()]
    places = [
        f"from {module} import {attribute} as {name}"
        for name, (module, attribute) in simulator.PLACES.items()
    ]
    text = "\n".join([HEAD + "\n".join(sorted({*imports, *places})), "", *functions])
    return {PLACE: text}


def _function(name: str, imports: set[str]) -> str:
    experiment = EXPERIMENTS.of(name)
    shown = inspect.signature(function(name))
    lines, star = [], False
    for one in shown.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not star:
            lines.append("    *,")
            star = True
        default = "" if one.default is one.empty else " = ..."
        lines.append(f"    {one.name}: {_type(one.annotation)}{default},")
    returned = str(inspect.get_annotations(place(experiment.runs))["return"])
    imports |= _imported(experiment, returned)
    return "\n".join([f"def {called_in_python(name)}(", *lines, f") -> {returned}: ...", ""])


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
