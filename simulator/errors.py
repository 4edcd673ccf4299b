"""Every error of the simulator.

::

    SimulatorError
    ├── UserError            something that the user can fix: one clear line, exit code 2
    │   ├── ProfileError     one or more problems in profile documents
    │   ├── ModelError       a model card or an ONNX file that cannot be used
    │   ├── DataError        an image folder or label file that cannot be used
    │   ├── MissingLibrary   an optional library that is missing or broken
    │   ├── Unsupported      a request for something that an implementation does not offer
    │   └── RunError         a run folder that cannot be written or read
    └── SampleError          one sample cannot be processed; it is skipped and counted
        └── NotFinite        the model gave NaN or an infinity
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


class SimulatorError(Exception):
    """The base class of all errors of the simulator."""


class UserError(SimulatorError):
    """Something that the user can fix; the message says how."""


class ProfileError(UserError):
    """All problems that were found in profile documents.

    Attributes:
        problems: one ``file:line: key: what`` line per problem.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[ProfileError], tuple[tuple[str, ...]]]:
        return ProfileError, (self.problems,)


class ModelError(UserError):
    """A model card or model file that cannot be used."""


class DataError(UserError):
    """A data set that cannot be used."""


class MissingLibrary(UserError):
    """An optional library is not installed, or does not load."""


class Unsupported(UserError):
    """A request for something that an implementation does not offer."""


class ProcessWideError(Unsupported):
    """A setting that a library has once in a process, which has begun with another value."""


class RunError(UserError):
    """A folder that cannot be written, or that is not a finished run."""


class SampleError(SimulatorError):
    """One sample cannot be processed; the run continues without it."""


class NotFinite(SampleError):
    """The model gave NaN or an infinity; under a hardware fault, an error that is detected."""


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal may obey, but for tabs and the ends of lines: also what turns text around."""
_LISTED, _NEAR = 1000, 300
"""Characters of the names that a message lists at most; less beside one that is meant."""


def unknown(what: str, got: object, offered: Iterable[object]) -> str:
    """Return a message that *got* is not one of *offered*, with the most similar one and all.

    Of very many the middle is left out.

    Args:
        what: what is unknown, for example ``backend``.
        got: the value that was given.
        offered: the values that are accepted.

    Returns:
        One line, for example ``unknown backend 'pilow'; did you mean 'pillow'? (offered: …)``.
    """
    names = sorted(str(name) for name in offered)
    near = difflib.get_close_matches(str(got), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = shortened(", ".join(names), _NEAR if near else _LISTED) or "none"
    return f"unknown {what} {str(got)!r}{hint} (offered: {listed})"


def harmless(text: str) -> str:
    r"""Return a text whose control characters are written as in Python, ``\x1b``."""
    return _OBEYED.sub(lambda char: ascii(char[0])[1:-1], text)


def one_line(error: BaseException, limit: int = 500) -> str:
    """Return an error's text on one line, cut to *limit* characters; its type if it has no text."""
    return harmless(" ".join(str(error).split())[:limit]) or type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text; its type if it has no text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return harmless(lines[0]) if lines else type(error).__name__


@contextmanager
def foreign(kind: type[SimulatorError], what: str) -> Iterator[None]:
    """Turn any exception of another package into one of ours, on one line; ours pass."""
    try:
        yield
    except SimulatorError:
        raise
    except Exception as error:  # its code may raise anything
        raise kind(f"{what}: {one_line(error)}") from error


@contextmanager
def reading(where: object, *others: type[Exception]) -> Iterator[None]:
    """Say what cannot be read, as a DataError, where an OSError or another error comes up."""
    expected: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except expected as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{where}: cannot be read: {reason}") from error


def shortened(text: str, limit: int = 200) -> str:
    """Return text of at most *limit* characters; a longer one keeps its start and its end."""
    if len(text) <= limit:
        return text
    head = limit - 1 - limit // 4
    return f"{text[:head]}…{text[-(limit // 4) :]}"
