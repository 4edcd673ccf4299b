"""The experiment ``diagnose``: which part of a deployment stack is to blame, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simulator.command.experiment import Experiment
from simulator.command.options import OneModel, Option, Pair, Under

if TYPE_CHECKING:
    from simulator.results.diagnose import DiagnoseSummary

SAMPLES = 8
"""Images that are taken unless more are asked for; one is enough for a name."""


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions(Pair, OneModel, Under):
    """What ``simulate diagnose`` takes."""

    limit: Annotated[int | None, Option(
        f"take a random subset of N images, of those that were recorded; default {SAMPLES}", "N"
    )] = SAMPLES  # fmt: skip


class Diagnose(Experiment[DiagnoseOptions]):
    """Which part of a deployment stack is to blame, what is it called, and what is to change?

      simulate diagnose --train eval.py:NAME --deploy board.py:NAME --model net.onnx --data img/

    Each side's input goes through one and the same network, one input through both networks, and
    the same outputs through both postprocessings. One image is enough, and no label is needed.
    Exit code 0: nothing differs, or all that differs is explained; 1: something is not.
    """

    name = "diagnose"
    about = "say which part of a deployment stack is to blame, and what to change"
    Options = DiagnoseOptions
    runs = "simulator.diagnose.run:diagnose"
    returns = (
        "The summary, and where the run was written. Its records are the answers of both stacks "
        "and of mixtures of their parts."
    )
    summary = "simulator.results.diagnose:DiagnoseSummary"
    screen = "simulator.diagnose.report:show"
    verdict = "simulator.diagnose.report:verdict"
    gate = False

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a pair on two built-in images."""
        return {"train": "pillow_fp32", "deploy": "opencv_fp32", "limit": 2}

    def passed(self, summary: DiagnoseSummary) -> bool:
        """Whether nothing remains unexplained."""
        return summary.explained

    def question(self, summary: DiagnoseSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        from simulator.report.words import named

        train, deploy = named(summary.train), named(summary.deploy)
        return (
            f"{summary.model}: {train} → {deploy}, diagnosed",
            f"Why does {deploy} answer otherwise than {train}?",
        )
