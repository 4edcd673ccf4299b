"""Standard output and error of a command.

What cannot be written is discarded, and the job goes on; plain text on its way to the terminal
obeys no name of a file, a card or a device.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from simulator.errors import harmless

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


class _Plain:
    """A stream to which text goes without control characters.

    Rich's consoles write past it, to what has the name ``rich_proxied_file``; see
    :class:`simulator.cli.screen.Screen` for what they are given.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def plain() -> Iterator[None]:
    """Print text without control characters meanwhile."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _Plain(one)) for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
