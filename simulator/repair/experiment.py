"""The experiment ``repair``: the cheapest change of a deployment that passes a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simulator.command.experiment import Experiment
from simulator.command.options import Allowed, OneModel, Option, Options, Under

if TYPE_CHECKING:
    from simulator.results.repair import RepairSummary

_SPECIMEN = """\
schema: 1
name: specimen
summary: another way of resizing
source: docs/conformance.md
axes:
  resize:
    antialiased:
      set: {resize: pil-bilinear}
      cost: {hours: 2, work: Pillow in place of OpenCV}
      why: as training does it
"""


@dataclass(frozen=True, kw_only=True)
class RepairOptions(OneModel, Under, Allowed, Options):
    """What ``simulate repair`` takes."""

    train: Annotated[str | None, Option(
        "the training stack: a path or a name; default: that of --options", "PROFILE", "profile",
        in_python=True,
    )] = None  # fmt: skip
    deploy: Annotated[str | None, Option(
        "the deployment stack, likewise", "PROFILE", "profile", in_python=True
    )] = None  # fmt: skip
    repairs: Annotated[str | None, Option(
        "what the deployment may do otherwise: a path or a built-in name; default: made from what "
        "differs, and left in the run as options.yaml", "DOCUMENT", flag="options",
    )] = None  # fmt: skip
    gate: Annotated[Sequence[str], Option(
        'what must hold, e.g. "flip_rate < 2%"; repeatable', "RULE"
    )]  # fmt: skip
    overrides: Annotated[Sequence[str], Option(
        "override one field of one stack, e.g. deploy.runtime.threads=1", "STACK.KEY=VALUE",
        flag="set",
    )] = ()  # fmt: skip
    until_decided: Annotated[bool, Option(
        "search no half first: take the samples in a random order, and drop a stack when it passes "
        "or fails for certain, or a cheaper one passes. The answer is wrong in 5 % of the runs at "
        "most",
    )] = False  # fmt: skip


class Repair(Experiment[RepairOptions]):
    r"""Find the cheapest change of a deployment that passes a gate.

      simulate repair --train dali_fp32 --deploy ascend_nv12_int8 --gate "flip_rate < 2%" \
               --model model.yaml --data val/
      simulate repair --options board.yaml --gate "delta.top1 > -1 point" --model model.yaml \
               --data val/

    What the deployment may do otherwise, and at which cost, is in a YAML file (docs/repair.md);
    without one it is made from what differs. One half of the samples is searched, the other one
    confirms; with --until-decided all judge, and as few as will do.
    """

    name = "repair"
    about = "find the cheapest change of a deployment that passes a gate"
    Options = RepairOptions
    runs = "simulator.repair.run:repair"
    returns = (
        "The summary, and where the run was written, with ``repaired.yaml``, the answer as a "
        "profile, and ``options.yaml``, the document. The run's records are those of the "
        "confirmation; with *until_decided* of every sample that was run."
    )
    summary = "simulator.results.repair:RepairSummary"
    screen = "simulator.repair.sections:show"
    verdict = "simulator.report.repairs:told"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a pair, a change and a rule, on eight built-in images."""
        place = folder / "options.yaml"
        place.write_text(_SPECIMEN, "utf-8")
        pair = {"train": "pillow_fp32", "deploy": "opencv_fp32", "repairs": str(place)}
        return {**pair, "gate": ["flip_rate < 90%"], "limit": 8}

    def question(self, summary: RepairSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        from simulator.report.words import named

        train, deploy = named(summary.train), named(summary.deploy)
        return (
            f"{summary.model}: repair {deploy}",
            f"What must change in {deploy}, at the least cost, for {' and '.join(summary.rules)} "
            f"against {train}?",
        )
