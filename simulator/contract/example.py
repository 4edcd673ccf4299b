"""The examples that are used when the user gives no model and no data: a model, and its data."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from simulator.contract.backend import Implementation
from simulator.contract.installing import install
from simulator.contract.library import Library


class ExampleModel(Implementation):
    """Provides a small trained model, and its data where no other package has them.

    Attributes:
        example: what ``simulate --example`` calls it: the modality of its samples.
        remedy: the command that installs it.
        also: libraries that it can do without; what it writes depends on which are installed.
    """

    example: ClassVar[str] = "image"
    remedy: ClassVar[str] = install("demo")
    also: ClassVar[tuple[Library, ...]] = ()

    def identity(self) -> str:
        """Return what the files depend on besides the libraries, as part of a file name."""
        return ""

    @abstractmethod
    def export(self, folder: Path) -> None:
        """Write ``model.onnx`` and ``model.yaml`` (the card), and what else the card names.

        An example with data of its own writes ``data.yaml`` (a data card) and its files as well.
        """


class ExampleImages(Implementation):
    """Provides a few labelled images."""

    @abstractmethod
    def files(self) -> list[tuple[Path, int]]:
        """Return the image files, each with its class index."""
