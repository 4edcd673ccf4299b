"""The experiment ``worst``: a suite's options combined step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from simulator.command.experiment import Experiment
from simulator.command.options import OneModel, Option, Suite, Under
from simulator.experiments.sweep.experiment import two_options

if TYPE_CHECKING:
    from simulator.results.suites import WorstSummary


@dataclass(frozen=True, kw_only=True)
class WorstOptions(Suite, OneModel, Under):
    """What ``simulate worst`` takes."""

    until_decided: Annotated[bool, Option(
        "take the samples in a random order, and drop a combination when it can no longer be the "
        "worst of its step. The worst of a step is lost in 5 % of the runs at most",
    )] = False  # fmt: skip


class Worst(Experiment[WorstOptions]):
    """Combine a suite's options step by step, each time the one that loses most.

    simulate worst --suite sysnoise --data val/
    """

    name = "worst"
    about = "find the combination of options that loses most"
    Options = WorstOptions
    runs = "simulator.experiments.worst.run:worst"
    returns = (
        "The summary, and where the run was written, with a folder for each step. Its ``path`` has "
        "the option added at each step, with the headline metric after it and the drop from the "
        "training stack; ``exhaustive`` is the worst of all combinations, where there are at most "
        "64, else None. The run's records are those of the first step: the training stack, and "
        "every option alone."
    )
    summary = "simulator.results.suites:WorstSummary"
    screen = "simulator.experiments.worst.report:show"
    verdict = "simulator.experiments.worst.report:verdict"
    tables: ClassVar[Mapping[str, str]] = {"steps": "simulator.experiments.worst.report:steps"}
    gate = False

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a suite of two options, on four built-in images."""
        return two_options(folder)

    def question(self, summary: WorstSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        return (
            f"{summary.model}: worst case of {summary.suite}",
            f"How much can {summary.suite} cost {summary.model} when its options come together?",
        )
