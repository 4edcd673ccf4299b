"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self


class Closing:
    """A context manager that closes itself; an error passes through."""

    @abstractmethod
    def close(self) -> None:
        """Free what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
