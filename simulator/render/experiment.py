"""The command ``render``: a data set of a stack's own pixels or tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from simulator.command.experiment import Command
from simulator.command.options import OneModel, Option, OwnFolder
from simulator.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.render.run import RenderSummary

Form = Literal["folder", "tar", "npy"]


@dataclass(frozen=True, kw_only=True)
class RenderOptions(OneModel, OwnFolder):
    """What ``simulate render`` takes."""

    profile: Annotated[str, Option(
        "the stack: a profile's path or name", "PROFILE", "profile", in_python=True
    )]  # fmt: skip
    format: Annotated[Form, Option(
        "folder (default) or tar (WebDataset): pixels as PNG, before they are normalized; npy: the "
        "network's exact input",
    )] = "folder"  # fmt: skip
    overrides: Annotated[Sequence[str], Option(
        "override one field of the stack, e.g. resize.interpolation=nearest", "KEY=VALUE",
        flag="set",
    )] = ()  # fmt: skip
    shard: Annotated[int, Option("samples of a .tar or .npy file; default 1000", "N")] = 1000
    workers: Annotated[int | None, Option(
        "samples at once; default: the number of cores", "N", asked=False
    )] = None  # fmt: skip

    def __post_init__(self) -> None:
        if self.shard < 1:
            raise UserError(f"--shard must be at least 1, got {self.shard}")


class Render(Command[RenderOptions]):
    """Write a data set as one stack sees it, for other tools to train and test on.

      simulate render --profile ascend_nv12_int8 --data val/ --model model.yaml --out seen/
      simulate render --profile dali_fp32 --data val/ --model model.yaml --format npy --out inputs/

    Labels are kept; boxes and masks follow the pixels. profile.yaml reads the images without
    changing them. simulate resume OUT goes on after an interruption; what is there is kept.
    """

    name = "render"
    about = "write a data set of a stack's own pixels or tensors to disk"
    Options = RenderOptions
    runs = "simulator.render.run:render"
    returns = "The content of ``summary.json``."
    work = "rendered data"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return four built-in images through a stack."""
        return {"profile": "opencv_fp32", "limit": 4, "workers": 1}

    def print_result(self, found: RenderSummary, folder: str, console: Console) -> None:
        """Print how many samples there are, and what was left out."""
        left = found["skipped"]
        lines = [f"{found['samples']} samples as {found['profile']} sees them in {folder}"]
        lines += [f"  {len(left)} left out, the first: {' '.join(one)}" for one in left.items()][:1]
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
