"""The end of what another process writes, however much it is."""

from __future__ import annotations

import os
import threading
from collections import deque

_BLOCK = 2**16


class Tail:
    """Reads a pipe in a thread until it is closed, and keeps the last of it.

    Args:
        file: the descriptor of the end that is read; it is closed at the end.
    """

    def __init__(self, file: int) -> None:
        self._kept = deque[bytes](maxlen=2)
        self._thread = threading.Thread(target=self._follow, args=(file,), daemon=True)
        self._thread.start()

    def _follow(self, file: int) -> None:
        try:
            while more := os.read(file, _BLOCK):
                self._kept.append(more)
        finally:
            os.close(file)

    def last(self) -> str:
        """Return the last line that is not empty, cut to 200 characters."""
        self._thread.join(1)  # what the process has left behind may keep the pipe open
        lines = b"".join(self._kept)[-4000:].decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else ""
