"""Profiles and functions that a program in Python has in hand, as files in the user's cache."""

from __future__ import annotations

import base64
import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator import cache
from simulator.errors import ProfileError, one_line
from simulator.profile.document import Document, Key
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.own_files import movable
from simulator.profile.profile import Profile
from simulator.profile.resolved import resolved


@dataclass(frozen=True, slots=True)
class _Given(Document):
    """A dictionary as a document; its paths are relative to the current folder."""

    def where(self, key: Key) -> str:
        """Return what messages call it."""
        return str(self.path)


def written(given: Mapping[str, object] | Profile, called: str) -> Path:
    """Write a profile to the cache, in a folder that is named after its content.

    Args:
        given: as the document would be, ``extends`` included; ``schema``, ``name`` and ``summary``
            may be left out.
        called: the option, for messages; its name, where it has none.

    Raises:
        ProfileError: it is not valid, with every problem.
        RunError: the cache cannot be written.
    """
    if isinstance(given, Profile):
        name, text = given.name, resolved(given, choose(given), origins=False)
    else:
        name, text = _document(given, called)
    file = f"{''.join(one if one.isalnum() or one in '._-' else '_' for one in name)}.yaml"

    def write(folder: Path) -> None:
        (folder / file).write_text(text, encoding="utf-8")

    return cache.by_content("profiles", write) / file


def _document(given: Mapping[str, object], called: str) -> tuple[str, str]:
    """The name and the text of a dictionary's document."""
    if odd := [key for key in given if not isinstance(key, str)]:
        raise ProfileError([f"{called}: the key {odd[0]!r} is no text"])
    about = {"schema": 1, "name": called, "summary": "a dictionary in Python"}
    document = _Given(Path(called), about | dict(given), {})
    choose(load(document))
    values = movable(document)
    return str(values["name"]), yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


_FILE = '''"""{about}, as it was in the memory of a program in Python."""

import base64
import pickle
import sys

sys.path += {path!r}
{name} = pickle.loads(base64.b64decode({content!r}))
'''


def code_written(given: Callable[..., object], called: str) -> str:
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
