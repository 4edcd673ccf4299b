"""Keep Python's cyclic garbage collector out of start-up and exit, where all it sees is in use."""

from __future__ import annotations

import gc

SELDOM = 200_000
"""New objects between two collections while modules are imported; Python's own limit is 700."""
_usual = gc.get_threshold()


def wait() -> None:
    """Collect seldom until :func:`begin`, which a command without samples never calls."""
    gc.set_threshold(SELDOM, *_usual[1:])


def begin() -> None:
    """Collect as ever from here on, but never look again at what is there already."""
    if gc.get_threshold()[0] == SELDOM:
        gc.freeze()
        gc.set_threshold(*_usual)


def leave() -> None:
    """Let the interpreter end without collecting what the process is about to give back."""
    gc.freeze()
