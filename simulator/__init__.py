"""The deployment-pipeline simulator: what a network loses between two stacks.

Every experiment, of another package too, is a function with the options of the command of its name
(:func:`compare` is ``simulate`` itself), and gives a :class:`Result`:

    from simulator import compare
    result = compare("pillow_fp32", "openvino_int8", model="model.yaml", data="val")
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PLACES = {
    "Options": ("simulator.command.options", "Options"),
    "Result": ("simulator.experiments.job", "Result"),
    "checkpoints": ("simulator.checkpoints.compare", "checkpoints"),
    "gives": ("simulator.command.marks", "gives"),
    "load_card": ("simulator.model.card", "load"),
    "load_profile": ("simulator.profile.load", "load"),
    "takes": ("simulator.command.marks", "takes"),
}
FOLDERS = (
    "audit",
    "checkpoints",
    "diagnose",
    "faults",
    "identify",
    "latency",
    "render",
    "repair",
    "robustness",
)
"""Folders of this package that have the name of a function."""


def experiment_of() -> dict[str, str]:
    """Return the functions by their names, and the commands of their experiments."""
    from simulator.command.experiment import EXPERIMENTS, called_in_python

    return dict(sorted((called_in_python(name), name) for name in EXPERIMENTS.names))


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``import simulator`` costs nothing."""
    if name in PLACES:
        module, attribute = PLACES[name]
        return getattr(import_module(module), attribute)
    if name == "__all__":
        return __dir__()
    if not (name.startswith("_") or _is_module(name)) and (command := experiment_of().get(name)):
        from simulator.command.experiment import function

        return _functions.setdefault(name, function(command))
    raise AttributeError(f"module 'simulator' has no attribute {name!r}")


def _is_module(name: str) -> bool:
    """Whether the import system asks whether a module of ours is imported yet."""
    return name not in FOLDERS and find_spec(f"simulator.{name}") is not None


_functions: dict[str, Callable[..., Any]] = {}


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted([*PLACES, *experiment_of()])


class _Package(ModuleType):
    """This package. ``simulator.latency`` is the function, though a folder has the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what the import system does after a folder was imported: hide the function."""
        if not (name in FOLDERS and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
