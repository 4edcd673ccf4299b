"""The deployment-pipeline simulator: what a network loses between two stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.experiments.compare import simulate
    from simulator.experiments.job import Options, Result
    from simulator.profile.load import load as load_profile

__all__ = ["Options", "Result", "load_profile", "simulate"]

_PLACES = {
    "Options": ("simulator.experiments.job", "Options"),
    "Result": ("simulator.experiments.job", "Result"),
    "load_profile": ("simulator.profile.load", "load"),
    "simulate": ("simulator.experiments.compare", "simulate"),
}


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``import simulator`` costs nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'simulator' has no attribute {name!r}")
    import importlib

    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(module), attribute)
