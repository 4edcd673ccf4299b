"""The experiment ``explain``: every mixture of two stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.command.experiment import Experiment
from simulator.command.options import OneModel, Pair, Under

if TYPE_CHECKING:
    from simulator.results.suites import ExplainSummary


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Pair, OneModel, Under):
    """What ``simulate explain`` takes."""


class Explain(Experiment[ExplainOptions]):
    r"""What does each axis on which two stacks differ cost?

    Every mixture of the two stacks runs over the same images, in one plan:

      simulate explain --train dali_fp32 --deploy ascend_nv12_int8 --data val/

    alone: the training stack with this axis of the deployment stack; repaired: what the deployment
    stack gains if this axis is repaired; in order: axes swapped one after the other; Shapley: the
    axis's fair share of the difference.
    """

    name = "explain"
    about = "say what each axis on which two stacks differ costs"
    Options = ExplainOptions
    runs = "simulator.experiments.explain.run:explain"
    returns = (
        "The summary, and where the run was written; its ``blame.parquet`` lists for each flipped "
        "sample the axes that flip it alone."
    )
    summary = "simulator.results.suites:ExplainSummary"
    screen = "simulator.experiments.explain.report:show"
    verdict = "simulator.experiments.explain.report:verdict"
    gate = False

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a pair on four built-in images."""
        return {"train": "pillow_fp32", "deploy": "opencv_fp32", "limit": 4}

    def question(self, summary: ExplainSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        from simulator.report.words import named

        model, train, deploy = summary.model, named(summary.train), named(summary.deploy)
        between = f"between {train} and {deploy}"
        which = f"Which of the {len(summary.axes)} differences {between} costs what?"
        one = f"What does the difference {between} cost?"
        title = f"{model}: {train} → {deploy}, axis by axis"
        return title, which if len(summary.axes) > 1 else one
