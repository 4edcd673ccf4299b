"""The experiment ``robustness``: stacks under every condition of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from simulator.command.experiment import Experiment
from simulator.command.options import Gate, Models, Option, Question, Stacks, listed

if TYPE_CHECKING:
    from simulator.results.robustness import RobustnessSummary

_SPECIMEN = """\
schema: 1
name: specimen
summary: two severities of fog
source: docs/conformance.md
conditions:
  weather:
    fog: [fog:1, fog:3]
"""


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions(Stacks, Models, Gate, Question):
    """What ``simulate robustness`` takes."""

    suite: Annotated[str, Option(
        "a suite of conditions: a path or a built-in name", "SUITE", "suite", in_python=True
    )]  # fmt: skip
    only: Annotated[Sequence[str], Option(
        "parts of the suite: its categories, sequences, system_noise; default all", "A,B",
        parse=listed,
    )] = ()  # fmt: skip
    reference: Annotated[str | Path | None, Option(
        "the model that CE, CD and FR are relative to and the others are compared with: a model "
        "card, or the folder of a finished run; the first model by default", "MODEL",
    )] = None  # fmt: skip


class Robustness(Experiment[RobustnessOptions]):
    r"""Measure stacks under every condition of a suite: corruptions, noise, faults.

      simulate robustness --suite imagenet-c --train pillow_fp32 --deploy openvino_int8 \
               --model model.yaml --data val/ --fail-on "deploy.NCI.fog > 20%"
      simulate robustness --suite mine.yaml --profile a --profile b --profile c --format latex

    A suite of conditions is a YAML file (docs/conditions.md). Each sample is disturbed once for
    every condition, and all stacks get it. The first stack is the one that the others are compared
    with, and of several models the first one, or the one of --reference.
    """

    name = "robustness"
    about = "measure stacks under every condition of a suite"
    Options = RobustnessOptions
    runs = "simulator.robustness.run:robustness"
    returns = "One result per model, that of a reference which is run here first."
    summary = "simulator.results.robustness:RobustnessSummary"
    screen = "simulator.robustness.screen:show"
    verdict = "simulator.robustness.screen:verdict"
    compared = "simulator.robustness.models:compare"
    tables: ClassVar[Mapping[str, str]] = {
        "conditions": "simulator.robustness.papers:conditions",
        "categories": "simulator.robustness.papers:categories",
        "robustmq": "simulator.robustness.robustmq:table",
        "bits": "simulator.robustness.robustmq:by_bits",
        "losses": "simulator.robustness.papers:losses",
    }

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a suite of one condition, on four built-in images."""
        place = folder / "suite.yaml"
        place.write_text(_SPECIMEN, "utf-8")
        return {"suite": str(place), "profiles": ["pillow_fp32"], "limit": 4}

    def question(self, summary: RobustnessSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        first, *others = summary.stacks
        than = f"Does {first} lose"
        if others:
            than = f"Do {' and '.join(others)} lose more than {first}"
        return (
            f"{summary.model} under {summary.suite}",
            f"{than} of {summary.model}'s quality under the conditions of {summary.suite}?",
        )

    def printed(self, summaries: Sequence[RobustnessSummary], form: str, table: str | None) -> str:
        """Return a table of runs; of those that stopped early, the cells they still measured."""
        if any(summary.early for summary in summaries):
            from simulator.report.table import FORMS
            from simulator.robustness.papers import raced

            return FORMS[form](raced(summaries))
        return super().printed(summaries, form, table)
