"""The experiment ``sweep``: every option of a suite against the training stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from simulator.command.experiment import Experiment
from simulator.command.options import Gate, Models, Option, Question, Suite, Under

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.experiments.job import Result
    from simulator.results.suites import SweepSummary

_SUITE = """\
schema: 1
name: specimen
summary: two ways of resizing
source: docs/conformance.md
train: pillow_fp32
columns:
  resize:
    opencv: {resize.backend: opencv, resize.antialias: null}
    nearest: {resize.interpolation: nearest}
"""


@dataclass(frozen=True, kw_only=True)
class SweepOptions(Suite, Models, Under, Gate, Question):
    """What ``simulate sweep`` takes."""

    overrides: Annotated[Sequence[str], Option(
        "override one field of the training stack, and so of every option", "train.KEY=VALUE",
        flag="set",
    )] = ()  # fmt: skip
    costs: Annotated[bool, Option(
        "also tell the size of each model file, bits per weight, and how long an inference takes "
        "(with --workers 1 nothing else runs beside it); the page then has a Pareto chart",
    )] = False  # fmt: skip


class Sweep(Experiment[SweepOptions]):
    """Try every option of a suite against the training stack, for one model or several.

      simulate sweep --suite sysnoise --model a.yaml --model b.yaml --data val/ --out runs/two

    Several models are then compared, by the recipe that their cards name (docs/checkpoints.md).
    A suite is a YAML file (docs/suites.md); sysnoise and robustmq-s are built in.
    """

    name = "sweep"
    about = "try every option of a suite, for one model or several"
    Options = SweepOptions
    runs = "simulator.experiments.sweep.run:sweep"
    returns = "One result per model; *out* has a run folder for each."
    summary = "simulator.results.suites:SweepSummary"
    together = True
    tables: ClassVar[Mapping[str, str]] = {
        "models": "simulator.experiments.sweep.report:models",
        "options": "simulator.experiments.sweep.report:options",
    }
    compared = "simulator.checkpoints.screen:compare"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a suite of two options, on four built-in images."""
        return two_options(folder)

    def show(self, found: Sequence[Result[SweepSummary]], console: Console) -> None:
        """Print one table of all models."""
        from simulator.experiments.sweep.report import show

        show([result.summary for result in found], console)
        for result in found:
            console.print(f"run: {result.folder}", soft_wrap=True, markup=False)

    def notes(self, summary: SweepSummary) -> list[str]:
        """Return what was left out, and the warnings."""
        left_out = (f"{option}: {why}" for option, why in summary.left_out.items())
        return [f"note {summary.model}: {note}" for note in (*left_out, *summary.warnings)]

    verdict = "simulator.experiments.sweep.report:verdict"
    gate = False

    def question(self, summary: SweepSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        return (
            f"{summary.model}: suite {summary.suite}",
            f"What does each option of {summary.suite} cost {summary.model}?",
        )


def two_options(folder: Path) -> dict[str, object]:
    """Return the options of a small run of a suite, which is written into a folder."""
    place = folder / "suite.yaml"
    place.write_text(_SUITE, "utf-8")
    return {"suite": str(place), "limit": 4}
