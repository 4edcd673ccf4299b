"""Files of a run in its page, as ``data:`` URIs; one that is not what it should be is left out."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

from simulator.contract import inspect
from simulator.errors import SampleError
from simulator.report.reading import Run


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture in the page.

    Attributes:
        source: its ``data:`` URI.
        width: columns of the file.
        height: rows of the file.
        factor: pixels of the page for one of the file's, each way.
    """

    source: str
    width: int
    height: int
    factor: int = 1

    def enlarged(self, factor: int) -> Shown:
        """Return it with another factor."""
        return replace(self, factor=factor)


def png(run: Run[Any], path: str | None, room: int = 0) -> Shown | None:
    """Return a picture of a run; None where there is none that could be one.

    Args:
        run: the picture is in its folder.
        path: of the picture.
        room: pixels of the page that its longer side may take, enlarged by a whole factor.
    """
    content = run.file(path) if path else None
    if not path or content is None:
        return None
    try:
        image = inspect(path, content)
    except (ValueError, SampleError):
        return None
    if image is None or image.format != "png":
        return None
    factor = max(1, room // max(image.width, image.height))
    return Shown(_uri("image/png", content), image.width, image.height, factor)


def wav(run: Run[Any], path: str) -> str:
    """Return a sound of a run; empty where the file is missing, or is no WAV file."""
    content = run.file(path)
    if content is None or content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return ""
    return _uri("audio/wav", content)


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
