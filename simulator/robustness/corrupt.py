"""The command ``corrupt``: a data set under conditions, on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from simulator.command.experiment import Command
from simulator.command.options import OneModel, Option, OwnFolder
from simulator.errors import UserError


@dataclass(frozen=True, kw_only=True)
class CorruptOptions(OneModel, OwnFolder):
    """What ``simulate corrupt`` takes."""

    under: Annotated[Sequence[str], Option("repeatable: fog:3, ...", "CONDITION")] = ()
    suite: Annotated[str | None, Option(
        "instead: all conditions of a suite, by name or path", "SUITE", "suite"
    )] = None  # fmt: skip
    trial: Annotated[int, Option("which random draw, from 0; default 0", "N")] = 0
    workers: Annotated[int | None, Option(
        "images at once; default: the number of cores", "N", asked=False
    )] = None  # fmt: skip

    def __post_init__(self) -> None:
        if bool(self.under) == bool(self.suite):
            raise UserError("give --under, once or more, or --suite")


class Corrupt(Command[CorruptOptions]):
    """Write a data set under conditions to disk, for other tools.

      simulate corrupt --under fog:3 --under snow:1 --data val/ --out val-c/
      simulate corrupt --suite imagenet-c --data val/ --out imagenet-c/

    Each condition gets a folder OUT/NAME/PARAMETERS with all images and their truth; --data takes
    it. simulate resume OUT goes on after an interruption; images that are there are kept.
    """

    name = "corrupt"
    about = "write a data set under conditions to disk"
    Options = CorruptOptions
    runs = "simulator.robustness.corrupted:corrupt"
    returns = "For each condition, its folder, how many images were written, and which were not."
    screen = "simulator.robustness.corrupted:show"
    work = "corrupted data"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a condition on files and one on frames, on four built-in images."""
        return {"under": ["jpeg:50", "brightness:1"], "limit": 4, "workers": 1}
