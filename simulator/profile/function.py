"""Functions and other callables that a program in Python has in hand, as code that has a file."""

from __future__ import annotations

import base64
import inspect
import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator import cache
from simulator.errors import ProfileError, one_line

_FILE = '''"""{about}, as it was in the memory of a program in Python."""

import base64
import pickle
import sys

sys.path += {path!r}
{name} = pickle.loads(base64.b64decode({content!r}))
'''


def written(given: Callable[..., object], called: str) -> str:
    """Return what names a callable as a stack: ``FILE.py:NAME``.

    A function that its module has by name is code in the module's file, which is imported anew.
    Anything else, such as a lambda, a transform with its settings, or a function of a notebook, is
    pickled into a file of the user's cache that is named after its content.

    Args:
        given: a front end, see :mod:`backends.python_code`.
        called: the option, for messages.

    Raises:
        ProfileError: it cannot be pickled.
        RunError: the cache cannot be written.
    """
    if file := _file(given):
        return f"{file}:{given.__qualname__}"
    name = getattr(given, "__name__", type(given).__name__)
    name = name if name.isidentifier() and name.isascii() else "function"
    known = {*sysconfig.get_paths().values()}  # every process of a Python has its own
    path = [one for one in map(os.path.abspath, sys.path) if one not in known]
    content = base64.b64encode(_pickled(given, called)).decode()
    about = f"{name}, a {type(given).__name__}"
    text = _FILE.format(about=about, path=path, name=name, content=content)

    def write(folder: Path) -> None:
        (folder / f"{name}.py").write_text(text, encoding="utf-8")

    return f"{cache.by_content('code', write) / name}.py:{name}"


def _file(given: Any) -> str | None:
    """The file in which the code of a function is found again by its name; None where it is not."""
    module = sys.modules.get(getattr(given, "__module__", None) or "")
    if not inspect.isfunction(given) or module is None or module.__name__ == "__main__":
        return None
    found: Any = module
    for part in given.__qualname__.split("."):
        found = getattr(found, part, None)
    file = getattr(module, "__file__", None) or ""
    return os.path.abspath(file) if found is given and file.endswith(".py") else None


def _pickled(given: object, called: str) -> bytes:
    import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(given)
    except Exception as error:  # a class may raise anything
        why = f"a {type(given).__name__} cannot be given to a worker: {one_line(error, 200)}"
        remedy = "write it to a file, and give 'FILE.py:NAME'"
        raise ProfileError([f"{called}: {why}; {remedy}"]) from error
    return content
