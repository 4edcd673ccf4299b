"""A suite: the checks of one kind of thing, in order, and how they are run."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from inspect import isfunction, signature
from pathlib import Path
from typing import Generic, TypeVar

from simulator.errors import MissingLibrary
from simulator.testing.subject import Failed
from simulator.testing.values import CannotMake, one_line

S = TypeVar("S")


class Mark(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one check.

    Attributes:
        check: the check's name.
        mark: passed or failed; a crash is a failure.
        remark: the expected and actual result, or other information for the user; may be empty.
    """

    check: str
    mark: Mark
    remark: str


class Suite(Generic[S]):
    """The checks that every subject of one kind must pass.

    Attributes:
        checks: each raises Failed, or returns a remark or None. Its name and its docstring say
            what it demands.
    """

    def __init__(self, *checks: Callable[[S], str | None]) -> None:
        self.checks = checks

    @classmethod
    def of(cls, *modules: str) -> Suite[S]:
        """Return the suite of some modules: their public functions of a ``subject`` alone."""
        return cls(
            *(
                check
                for name in modules
                for check in vars(sys.modules[name]).values()
                if isfunction(check)
                and check.__module__ == name
                and not check.__name__.startswith("_")
                and [*signature(check).parameters] == ["subject"]
            )
        )

    @property
    def names(self) -> list[str]:
        """The names of the checks."""
        return [check.__name__ for check in self.checks]

    def prove(self, subject: S) -> list[Verdict]:
        """Run every check.

        Raises:
            MissingLibrary: one needs what is not installed, which is no fault of the subject.
        """
        return [verdict(check, subject) for check in self.checks]


def verdict(check: Callable[[S], str | None], subject: S) -> Verdict:
    """Run one check.

    Raises:
        MissingLibrary: it needs what is not installed.
        CannotMake: no backend here makes a file that it needs.
    """
    mark, remark = Mark.FAILED, ""
    try:
        remark = check(subject) or ""
        mark = Mark.PASSED
    except Failed as error:
        remark = str(error)
    except (MissingLibrary, CannotMake):
        raise
    except Exception as error:  # a crash is a failure, never "not applicable"
        place = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(place.filename).name}:{place.lineno}"
        remark = f"no crash expected, got {one_line(error)} ({at})"
    return Verdict(check.__name__, mark, remark)
