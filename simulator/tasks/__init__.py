"""What a model's outputs mean, one folder a task."""

from __future__ import annotations

import importlib

from simulator.errors import UserError, unknown
from simulator.tasks.task import Task

_PLACES = {
    "classification": ("simulator.tasks.classification.task", "Classification"),
    "detection": ("simulator.tasks.detection.task", "Detection"),
    "segmentation": ("simulator.tasks.segmentation.task", "Segmentation"),
}
NAMES = tuple(_PLACES)


def named(name: str) -> type[Task]:
    """Return the task of this name; its module is imported here.

    Raises:
        UserError: there is none.
    """
    if name not in _PLACES:
        raise UserError(unknown("task", name, NAMES))
    module, attribute = _PLACES[name]
    found: type[Task] = getattr(importlib.import_module(module), attribute)
    return found
