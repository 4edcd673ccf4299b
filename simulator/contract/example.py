"""The example model and images that are used when the user gives none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from simulator.contract.backend import Options
from simulator.contract.library import Library


class ExampleModel(ABC):
    """Provides a small trained model."""

    def __init__(self, options: Options) -> None:
        self.options = options

    also: ClassVar[tuple[Library, ...]] = ()
    """Libraries that it can do without; what it writes depends on which are installed."""

    @abstractmethod
    def export(self, folder: Path) -> None:
        """Write ``model.onnx`` and ``model.yaml`` (the card), and what else the card names."""


class ExampleImages(ABC):
    """Provides a few labelled images."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def files(self) -> list[tuple[Path, int]]:
        """Return the image files, each with its class index."""
