"""Standard output and error of a command: what cannot be written is discarded, the job goes on."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

_BUFFER = 8192


class _Lasting(io.FileIO):
    """A file descriptor that takes everything; what cannot be written is gone.

    Attributes:
        lost: why it cannot be written any more; None while it can.
    """

    lost: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write, or discard."""
        size = memoryview(data).nbytes
        if self.lost is None:
            try:
                return super().write(data) or 0
            except OSError as error:
                self.lost = error
        return size


def last() -> Callable[[], OSError | None]:
    """Let standard output and error of this process outlive their readers.

    A reader that goes away, as ``head`` does, neither ends the job nor changes its exit code.

    Returns:
        Flushes both; then returns why the output could not be written, and None if it could, or if
        its reader went away.
    """
    taken = []
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = _Lasting(stream.fileno(), "wb", closefd=False)
            made = io.TextIOWrapper(
                io.BufferedWriter(raw, _BUFFER), stream.encoding, "replace",
                line_buffering=stream.line_buffering, write_through=stream.write_through,
            )  # fmt: skip
            setattr(sys, name, made)
            taken.append((made, raw))

    def lost() -> OSError | None:
        for made, _ in taken:
            made.flush()
        why = [raw.lost for _, raw in taken if raw.lost]
        return next((one for one in why if not isinstance(one, BrokenPipeError)), None)

    return lost
