"""The experiment ``run``: one pair of stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simulator.command.experiment import Experiment
from simulator.command.options import Gate, OneModel, Option, Pair, Under

if TYPE_CHECKING:
    from simulator.results.pair import PairSummary


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Pair, OneModel, Under, Gate):
    """What ``simulate`` takes."""

    strict: Annotated[bool, Option(
        "fail if an option is not in force, or the training stack is no better than guessing"
    )] = False  # fmt: skip
    quick: Annotated[bool, Option("do not run each axis alone on every sample")] = False
    until_decided: Annotated[bool, Option(
        "take the samples in a random order, and stop as soon as every --fail-on rule is decided; "
        "wrong in 5 % of the runs at most",
    )] = False  # fmt: skip
    track: Annotated[str | None, Option(
        "follow both stacks' boxes through the clips with a tracker (sort, ocsort, bytetrack) and "
        "compare the tracks", "TRACKER",
    )] = None  # fmt: skip


class Compare(Experiment[CompareOptions]):
    r"""What does a model lose between the stack it was trained on and the stack it runs on?

    Runs the same model on the same images through two stacks and compares the answers:

      simulate --train pillow_fp32 --deploy ascend_nv12_int8
      simulate --train pillow_fp32 --deploy openvino_int8 --model model.yaml --data val/ \
               --fail-on "flip_rate > 1%" --fail-on "delta.top1 < -0.5%"
    """

    name = "run"
    about = "compare two stacks"
    Options = CompareOptions
    runs = "simulator.experiments.compare.run:compare"
    summary = "simulator.results.pair:PairSummary"
    screen = "simulator.experiments.compare.report:show"
    verdict = "simulator.experiments.compare.report:verdict"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a pair on four built-in images."""
        return {"train": "pillow_fp32", "deploy": "opencv_fp32", "limit": 4}

    def question(self, summary: PairSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        from simulator.report.words import named

        model, train, deploy = summary.model, named(summary.train), named(summary.deploy)
        return (
            f"{model}: {train} → {deploy}",
            f"What does {model} lose when it moves from {train} to {deploy}?",
        )
