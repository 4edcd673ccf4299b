"""The console of all commands, which draws no control characters of strangers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from rich.console import Console

from simulator.errors import harmless

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment


class Screen(Console):
    """A console that draws no control characters of what it is given."""

    @property
    def file(self) -> IO[str]:
        """Where it writes: what is below everything that stands for it meanwhile."""
        found = super().file
        while (below := getattr(found, "rich_proxied_file", None)) is not None:
            found = below
        return found

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render to segments; those of the console itself keep their codes."""
        for one in super().render(renderable, options):
            yield one if one.control else one._replace(text=harmless(one.text))
