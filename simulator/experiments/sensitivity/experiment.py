"""The command ``sensitivity``: a short list of layers to keep in FP32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simulator.command.experiment import Command
from simulator.command.options import OneModel, Option, OwnFolder
from simulator.errors import UserError

if TYPE_CHECKING:
    from simulator.experiments.sensitivity.figures import SensitivitySummary


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions(OneModel, OwnFolder):
    """What ``simulate sensitivity`` takes."""

    profile: Annotated[str, Option(
        "a stack with a quantizer", "PROFILE", "profile", in_python=True
    )]  # fmt: skip
    goal: Annotated[str, Option(
        "what must hold against the same stack in FP32: 'flip_rate < 2%'", "RULE", in_python=True
    )]  # fmt: skip
    top: Annotated[int, Option(
        "layers tried one by one, those that add the most noise; default 8", "N"
    )] = 8  # fmt: skip
    workers: Annotated[int | None, Option(
        "samples processed at once; default: the number of cores", "N", asked=False
    )] = None  # fmt: skip

    def __post_init__(self) -> None:
        if self.top < 1:
            raise UserError(f"--top must be at least 1, got {self.top}")


class Sensitivity(Command[SensitivityOptions]):
    r"""Find which layers of an INT8 stack to keep in FP32.

      simulate sensitivity --profile ort_int8 --model model.yaml --data val/ \
               --goal 'flip_rate < 2%' --out DIR

    Flips are counted against the same stack in FP32. DIR gets summary.json, and profile.yaml with
    the shortest keep list that was found. Some images calibrate, half of the others are searched,
    and the list is confirmed on the rest. simulate resume DIR goes on after an interruption. The
    exit code is 1 where no list reaches the goal, or where it is not confirmed.
    """

    name = "sensitivity"
    about = "find which layers of an INT8 stack to keep in FP32"
    Options = SensitivityOptions
    work = "search"
    runs = "simulator.experiments.sensitivity.search:sensitivity"
    returns = (
        "The summary: ``layers``, ``keep``, and under ``confirmed`` whether the goal ``holds`` on "
        "images that were not searched, whether that is ``sure`` (the interval does not hold the "
        "limit) and how many ``more`` images would make it so if the rate stays."
    )
    screen = "simulator.experiments.sensitivity.figures:show"
    json = True

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return the search of one layer, on a small classifier and pictures of two colors."""
        from simulator.testing.image_specimen import colored

        own = {"profile": "ort_int8", "goal": "flip_rate < 99%", "top": 1}
        return {**own, **colored(folder)}

    def passed(self, found: SensitivitySummary) -> bool:
        """Whether a keep list was found, and is surely confirmed."""
        told = found.get("confirmed")
        return told is not None and told["holds"] and told["sure"]
