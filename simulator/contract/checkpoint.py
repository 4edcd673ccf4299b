"""The stage that turns a checkpoint of weights into a model, its card and its vocabulary."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from simulator.contract.backend import Implementation
from simulator.contract.stage import StageSpec

NAME = "checkpoint"


class Checkpoint(Implementation):
    """Writes the model of a checkpoint: a file or folder of weights that is no network yet.

    Attributes:
        ending: of the checkpoints that it reads: a file's suffix with the dot, or the name of a
            file in their folder.
    """

    ending: ClassVar[str]

    @abstractmethod
    def write(self, source: Path, folder: Path, program: bool = False, cache: bool = False) -> None:
        """Write ``model.onnx``, ``model.yaml`` (its card) and the vocabulary into a folder.

        Args:
            source: the checkpoint.
            folder: an empty folder.
            program: write ``model.pt2`` as well, a ``torch.export`` program.
            cache: the ONNX network takes the keys and values of earlier tokens, and gives all.

        Raises:
            MissingLibrary: the program needs PyTorch, which is not installed.
            ModelError: the checkpoint is damaged, of a network that is not known, or of one that
                is not written as a program, or has no cache.
        """


CHECKPOINT = StageSpec(NAME, "a checkpoint becomes a model and its card", 1105)
