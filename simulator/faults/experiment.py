"""The experiment ``faults``: faults in the artifacts that run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from simulator.command.experiment import Experiment
from simulator.command.options import Gate, OneModel, Option, Stacks

if TYPE_CHECKING:
    from simulator.results.faults import FaultsSummary


def _width(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 0)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(
            f"a width in % expected, for example 0.5%, got {text!r}"
        ) from None


@dataclass(frozen=True, kw_only=True)
class FaultsOptions(Stacks, OneModel, Gate):
    """What ``simulate faults`` takes."""

    campaign: Annotated[str, Option(
        "which bits are hit: a path, or neurons-transient, weights-permanent, ...", "CAMPAIGN",
        in_python=True,
    )]  # fmt: skip
    number: Annotated[int | None, Option(
        "so many faults instead of the campaign's number", "N", flag="faults"
    )] = None  # fmt: skip
    until: Annotated[float | None, Option(
        "go on until the interval of SDC is no wider in any stack, e.g. 0.5%", "N%", parse=_width,
        write=lambda share: f"{100 * share:g}%",
    )] = None  # fmt: skip
    protect: Annotated[Literal["clip", "min_max"] | None, Option(
        "also measure each stack with a range restriction: Clip, or Max and Min, after layers",
    )] = None  # fmt: skip


class Faults(Experiment[FaultsOptions]):
    r"""Put faults into weights and activations of the artifacts that really run.

      simulate faults --campaign neurons-transient --profile ort_int8 --model model.yaml \
               --data val/ --fail-on "deploy.SDC > 1%"
      simulate faults --campaign weights-transient --train pillow_fp32 --deploy ort_int8

    A campaign is a YAML file (docs/faults.md). Each fault is a row of faults.parquet in the run
    folder; simulate replay-fault RUN --fault N runs one again. A gate rule on SDC or DUE judges the
    rate; deploy.SDC.high is the upper end of its 95 % interval.
    """

    name = "faults"
    about = "put faults into weights and activations of the artifacts that run"
    Options = FaultsOptions
    runs = "simulator.faults.run:faults"
    summary = "simulator.results.faults:FaultsSummary"
    screen = "simulator.faults.screen:show"
    verdict = "simulator.faults.screen:verdict"
    tables: ClassVar[Mapping[str, str]] = {
        name: f"simulator.faults.printed:{name}"
        for name in ("rates", "bits", "layers", "persistence", "persistent_bits")
    }

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return four faults, on three built-in images."""
        own = {"campaign": "neurons-transient", "number": 4}
        return {**own, "profiles": ["pillow_fp32"], "limit": 3}

    def question(self, summary: FaultsSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        names = " and ".join(summary.stacks)
        return (
            f"{summary.model} with {summary.campaign}",
            f"What do faults in the hardware do to the answers of {names}?",
        )
