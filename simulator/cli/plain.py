"""Plain text on its way to the terminal, which obeys no name of a file, a card or a device."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from simulator.errors import harmless


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
