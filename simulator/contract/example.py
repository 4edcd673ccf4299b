"""The example model and images that are used when the user gives none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from simulator.contract.backend import Options


class ExampleModel(ABC):
    """Provides a small trained model."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def export(self, folder: Path) -> None:
        """Write ``model.onnx``, ``model.pt2`` (torch.export) and ``model.yaml`` (the card)."""


class ExampleImages(ABC):
    """Provides a few labelled images."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def files(self) -> list[tuple[Path, int]]:
        """Return the image files, each with its class index."""
