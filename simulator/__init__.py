"""The deployment-pipeline simulator: what a network loses between two stacks.

Every experiment is a function with the options of the command of its name (:func:`compare` is
``simulate`` itself), and gives a :class:`Result`:

    from simulator import compare
    result = compare("pillow_fp32", "openvino_int8", model="model.yaml", data="val")
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.audit.run import audit
    from simulator.experiments.compare import compare
    from simulator.experiments.explain import explain
    from simulator.experiments.job import Options, Result
    from simulator.experiments.sweep import sweep
    from simulator.experiments.worst import worst
    from simulator.faults.run import faults
    from simulator.identify.run import identify
    from simulator.latency.measure import latency
    from simulator.latency.tail import tail
    from simulator.model.card import load as load_card
    from simulator.profile.load import load as load_profile
    from simulator.robustness.run import robustness

__all__ = [
    "Options",
    "Result",
    "audit",
    "compare",
    "explain",
    "faults",
    "identify",
    "latency",
    "load_card",
    "load_profile",
    "robustness",
    "sweep",
    "tail",
    "worst",
]

_PLACES = {
    "Options": ("simulator.experiments.job", "Options"),
    "Result": ("simulator.experiments.job", "Result"),
    "audit": ("simulator.audit.run", "audit"),
    "compare": ("simulator.experiments.compare", "compare"),
    "explain": ("simulator.experiments.explain", "explain"),
    "identify": ("simulator.identify.run", "identify"),
    "latency": ("simulator.latency.measure", "latency"),
    "load_card": ("simulator.model.card", "load"),
    "load_profile": ("simulator.profile.load", "load"),
    "faults": ("simulator.faults.run", "faults"),
    "robustness": ("simulator.robustness.run", "robustness"),
    "sweep": ("simulator.experiments.sweep", "sweep"),
    "tail": ("simulator.latency.tail", "tail"),
    "worst": ("simulator.experiments.worst", "worst"),
}


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``import simulator`` costs nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'simulator' has no attribute {name!r}")
    import importlib

    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted(__all__)


class _Package(ModuleType):
    """This package. ``simulator.latency`` is the function, though a folder has the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what the import system does after a folder was imported: hide the function."""
        if not (name in _PLACES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
