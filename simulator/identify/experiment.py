"""The experiment ``identify``: the stack that made a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simulator.command.experiment import Experiment, function
from simulator.command.options import OneModel, Option, Options
from simulator.experiments.sweep.experiment import two_options

if TYPE_CHECKING:
    from simulator.results.identify import IdentifySummary

BASE = "pillow_fp32"
_RECORDING = """\
schema: 1
name: specimen
device: OpenCV
kind: predictions
file: board.csv
match: name
"""


@dataclass(frozen=True, kw_only=True)
class IdentifyOptions(OneModel, Options):
    """What ``simulate identify`` takes."""

    recording: Annotated[str | Path, Option(
        "the manifest of the recording, which may have a part of the images only; or code or a "
        "program that makes the network's input (docs/your-code.md)", "FILE", "file",
        in_python=True,
    )]  # fmt: skip
    base: Annotated[str, Option(
        "the profile whose options are changed: a path or a name; default: pillow_fp32", "PROFILE",
        "profile", excludes="space",
    )] = BASE  # fmt: skip
    space: Annotated[str | Path | None, Option(
        "the options to try, in the form of a suite; default: all that run here", "FILE", "file"
    )] = None  # fmt: skip
    minutes: Annotated[float | None, Option(
        "end the search after so long, with the nearest stack so far; default: when nothing gets "
        "nearer, which may take many minutes", "M",
    )] = None  # fmt: skip


class Identify(Experiment[IdentifyOptions]):
    """Find the stack that made a recording.

      simulate identify --recording board/recording.yaml --model model.yaml --data val/

      simulate identify --recording eval.py:preprocess --model model.yaml --data val/

    A recording (docs/recordings.md) has the network's inputs or outputs, predictions, or frames of
    some of the images. The profile that reproduces it is identified.yaml in the run's folder.
    """

    name = "identify"
    about = "find the stack that made a recording"
    Options = IdentifyOptions
    runs = "simulator.identify.run:identify"
    returns = (
        "The summary, and where the run was written; the profile is ``identified.yaml`` there. Its "
        "records are the answers of this profile for the recorded images."
    )
    summary = "simulator.results.identify:IdentifySummary"
    screen = "simulator.identify.sections:show"
    verdict = "simulator.identify.sections:verdict"
    gate = False

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return what a stack answers to four built-in images, and a space of two options."""
        stack = {"train": "pillow_fp32", "deploy": "opencv_fp32"}
        run = function("run")(**stack, limit=4, quick=True, out=folder / "run")
        rows = [one for one in run.records().to_pylist() if one["side"] == "deploy"]
        named = ("prediction", "score", "margin")
        lines = [",".join([row["sample"], *(repr(row[key]) for key in named)]) for row in rows]
        table = "\n".join([",".join(["image", *named]), *lines, ""])
        (folder / "board.csv").write_text(table, "utf-8")
        model = json.loads((run.folder / "manifest.json").read_text("utf-8"))["model"]["sha256"]
        (folder / "recording.yaml").write_text(f"{_RECORDING}model: {model}\n", "utf-8")
        return {"recording": str(folder / "recording.yaml"), "space": two_options(folder)["suite"]}

    def passed(self, summary: IdentifySummary) -> bool:
        """Whether a stack gives what was recorded."""
        return summary.exact

    def question(self, summary: IdentifySummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        return (
            f"{summary.model}: who made {summary.recording}?",
            f"Which stack gives what {summary.device} gave for {summary.model}?",
        )
