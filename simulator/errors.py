"""Every error of the simulator.

::

    SimulatorError
    ├── UserError            the user's to fix: one clear line, exit code 2
    │   ├── ProfileError     one or more problems in profile documents
    │   ├── ModelError       a model card or an ONNX file that cannot be used
    │   ├── DataError        an image folder or label file that cannot be used
    │   ├── MissingLibrary   an optional library that is absent or broken
    │   ├── Unsupported      an implementation was asked for what it does not offer
    │   └── RunError         a run folder that cannot be written or read
    └── SampleError          one sample cannot go through; it is skipped and counted
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class SimulatorError(Exception):
    """The root of the tree; catch it to catch everything that we raise."""


class UserError(SimulatorError):
    """Something the person at the keyboard can fix; the message says how."""


class ProfileError(UserError):
    """Problems in profile documents, all of them at once.

    Attributes:
        problems: one ``file:line: key: what`` line per problem.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ModelError(UserError):
    """A model card or model file that cannot be used."""


class DataError(UserError):
    """A data set that cannot be used."""


class MissingLibrary(UserError):
    """An optional library is not installed, or is installed and does not load."""


class Unsupported(UserError):
    """An implementation was asked for something it does not offer."""


class RunError(UserError):
    """A run folder that cannot be written, or is not a finished run."""


class SampleError(SimulatorError):
    """One sample cannot be processed; the run carries on without it."""


def unknown(what: str, got: object, offered: Iterable[object]) -> str:
    """Say that *got* is not one of *offered*, naming the nearest and all of them.

    Args:
        what: the kind of thing, for example ``backend``.
        got: what was written.
        offered: what would have been accepted.

    Returns:
        One line, for example ``unknown backend 'pilow'; did you mean 'pillow'? offered: …``.
    """
    names = sorted(str(name) for name in offered)
    near = difflib.get_close_matches(str(got), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {str(got)!r}{hint} (offered: {', '.join(names) or 'none'})"


def one_line(error: BaseException, limit: int = 500) -> str:
    """Return what an error says without line breaks, cut to *limit* characters; else its type."""
    return " ".join(str(error).split())[:limit] or type(error).__name__
