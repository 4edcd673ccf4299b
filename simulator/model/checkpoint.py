"""Checkpoints: files of weights that become a model with its card."""

from __future__ import annotations

from pathlib import Path

from simulator import registry
from simulator.contract import Backend
from simulator.contract.checkpoint import NAME, Checkpoint
from simulator.errors import UserError


def reader(source: Path) -> Backend | None:
    """Return the backend that reads a checkpoint, by its name; None where it is none."""
    for backend in registry.backends():
        for offer in backend.of(NAME):
            ending = offer.make.ending
            suffix = ending.startswith(".") and source.suffix.lower() == ending
            if suffix or source.name == ending or (source / ending).is_file():
                return backend
    return None


def write(
    backend: Backend, source: Path, folder: Path, program: bool = False, cache: bool = False
) -> Path:
    """Write the model of a checkpoint, its card and its vocabulary; return the card.

    Args:
        backend: that reads it.
        source: the checkpoint.
        folder: an empty folder, or a new one.
        program: write a ``torch.export`` program as well.
        cache: see :meth:`.Checkpoint.write`.

    Raises:
        UserError: the folder is not empty.
        MissingLibrary: the library that reads it is missing.
        ModelError: the checkpoint cannot be used.
    """
    if not source.exists():
        raise UserError(f"{source}: there is no such file")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder; choose another -o")
    registry.require(backend)
    made: Checkpoint = backend.of(NAME)[0].make({})
    folder.mkdir(parents=True, exist_ok=True)
    made.write(source, folder, program, cache)
    return folder / "model.yaml"
