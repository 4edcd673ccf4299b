"""What a function says of itself: :func:`simulator.takes` and :func:`simulator.gives`.

They set an attribute of their name, which code may do by itself where there is no simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Takes = Literal["path", "bytes", "pil", "array"]
Gives = Literal["tensor", "outputs", "answer"]


def takes(kind: Takes) -> Callable[[F], F]:
    """Say what a function takes of an image: its path, its bytes, a picture of Pillow or an array.

    The picture is in RGB and not turned; the array is (H, W, 3) uint8 of it.
    """
    return _marking("takes", kind)


def gives(kind: Gives) -> Callable[[F], F]:
    """Say what a function gives: the network's input, the network's outputs, or the answer."""
    return _marking("gives", kind)


def _marking(name: str, kind: str) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, name, kind)
        return function

    return mark
