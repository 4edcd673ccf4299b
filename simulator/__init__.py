"""The deployment-pipeline simulator: what a network loses between two stacks.

Every experiment is a function with the options of the command of its name (:func:`compare` is
``simulate`` itself), and gives a :class:`Result`:

    from simulator import compare
    result = compare("pillow_fp32", "openvino_int8", model="model.yaml", data="val")
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

PLACES = {
    "Options": ("simulator.command.options", "Options"),
    "Result": ("simulator.experiments.job", "Result"),
    "checkpoints": ("simulator.checkpoints.compare", "checkpoints"),
    "load_card": ("simulator.model.card", "load"),
    "load_profile": ("simulator.profile.load", "load"),
}
EXPERIMENT_OF = {
    "audit": "audit",
    "compare": "run",
    "explain": "explain",
    "faults": "faults",
    "identify": "identify",
    "latency": "latency",
    "repair": "repair",
    "replay": "replay",
    "robustness": "robustness",
    "sweep": "sweep",
    "tail": "tail",
    "worst": "worst",
}
"""Functions by their names, and the commands of their experiments."""
__all__ = [*PLACES, *EXPERIMENT_OF]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``import simulator`` costs nothing."""
    if name in EXPERIMENT_OF:
        from simulator.command.experiment import function

        return _functions.setdefault(name, function(EXPERIMENT_OF[name]))
    if name not in PLACES:
        raise AttributeError(f"module 'simulator' has no attribute {name!r}")
    import importlib

    module, attribute = PLACES[name]
    return getattr(importlib.import_module(module), attribute)


_functions: dict[str, Any] = {}


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted(__all__)


class _Package(ModuleType):
    """This package. ``simulator.latency`` is the function, though a folder has the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what the import system does after a folder was imported: hide the function."""
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
