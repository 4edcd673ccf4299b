"""What the owner of a board gets: the capture script, and the probe images with instructions."""

from __future__ import annotations

from pathlib import Path

from simulator.data import capture
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.text import write_new


def write_capture(path: Path, model: str | Path | None = None) -> None:
    """Write the capture script to a new file.

    Args:
        path: the file.
        model: a model card; the script then knows the SHA-256 of its ONNX file.

    Raises:
        UserError: the file exists or cannot be written, or the card cannot be used.
    """
    write_new(path, script(model))


def script(model: str | Path | None = None) -> str:
    """Return the capture script; see :func:`write_capture`."""
    text = Path(capture.__file__).read_text(encoding="utf-8")
    digest = check(Card(Path(model))).digest if model else ""
    return text.replace('MODEL = ""', f'MODEL = "{digest}"', 1)
