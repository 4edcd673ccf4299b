"""The commands ``quantize`` and ``finetune``: a network learns on, and is written with a card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from simulator.command.experiment import Command, O
from simulator.command.options import Option, OwnFolder, Subset, listed
from simulator.errors import UserError, unknown

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.experiments.tuning import TuningSummary


IMAGE, BATCH = DRAWS = ("image", "batch")
"""What has a stack of its own in mix training."""


@dataclass(frozen=True, kw_only=True)
class TuningOptions(Subset, OwnFolder):
    """How a network learns."""

    model: Annotated[str | Path, Option(
        "card of the network, an ONNX file", "CARD", "model", in_python=True
    )]  # fmt: skip
    data: Annotated[str | Path, Option(
        "annotated images to learn from", "PATH", "data", in_python=True
    )]  # fmt: skip
    epochs: Annotated[int, Option("how often to learn from each image", "N")]
    learning_rate: Annotated[float, Option(
        "at first; it falls as half a cosine; default 0.01", "X"
    )] = 0.01  # fmt: skip
    batch: Annotated[int, Option("images in a step; default 32", "N")] = 32
    held_out: Annotated[float, Option("share to measure; default 0.2", "X")] = 0.2
    profile: Annotated[str | None, Option(
        "the stack that makes the network's inputs; default pillow_fp32", "PROFILE", "profile"
    )] = None  # fmt: skip
    threads: Annotated[int | None, Option(
        "of PyTorch; default all of this process; another number gives other last bits", "N"
    )] = None  # fmt: skip

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UserError(f"the learning rate must be above 0, got {self.learning_rate}")
        if not 0 < self.held_out < 1:
            raise UserError(f"the share held out must be between 0 and 1, got {self.held_out}")
        if self.seed < 0:
            raise UserError(f"the seed must be at least 0, got {self.seed}")


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions(TuningOptions):
    """What ``simulate quantize`` takes."""

    method: Annotated[str, Option("dorefa, pact or lsq", "NAME")]
    bits: Annotated[int, Option("8, 6, 4 or 2; outer layers have 8", "N")]
    weights: Annotated[str, Option(
        "per_tensor (default), or for lsq per_channel", "WHICH"
    )] = "per_tensor"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(TuningOptions):
    """What ``simulate finetune`` takes."""

    mix: Annotated[str | None, Option(
        "draw stacks from the columns of a suite; default: none", "SUITE", "suite"
    )] = None  # fmt: skip
    columns: Annotated[Sequence[str] | None, Option(
        "that are drawn; default decode,resize; none with --option", "A,B", parse=listed
    )] = None  # fmt: skip
    draw: Annotated[str, Option(
        "a stack for each image (default) or batch, as Algorithm 1 does", "WHICH"
    )] = IMAGE  # fmt: skip
    option: Annotated[Sequence[str], Option(
        "options of the suite that the training stack has", "COLUMN=NAME,…", parse=listed
    )] = ()  # fmt: skip
    profile: Annotated[str | None, Option(
        "the training stack; default that of --mix, else pillow_fp32", "PROFILE", "profile"
    )] = None  # fmt: skip
    augment: Annotated[Sequence[str], Option(
        "mirror half of the images, move each by up to N pixels", "flip,shift:N", parse=listed
    )] = ()  # fmt: skip
    statistics: Annotated[str, Option(
        "learn (default) or keep those of BatchNormalization", "WHICH"
    )] = "learn"  # fmt: skip
    module: Annotated[str | None, Option(
        "package.file:factory, learned in place of the card's file", "PATH"
    )] = None  # fmt: skip
    weights: Annotated[str | None, Option("state dict of the module", "FILE", "file")] = None
    name: Annotated[str | None, Option(
        "in the new card; default that of CARD with _mix", "NAME"
    )] = None  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mix is None and (self.columns or self.option):
            raise UserError("--columns and --option are of a suite; name it: --mix SUITE")
        if self.draw not in DRAWS:
            raise UserError(f"--draw: {unknown('draw', self.draw, DRAWS)}")
        if self.draw != IMAGE and not self.drawn:
            raise UserError("--draw: nothing is drawn; name a suite: --mix SUITE")
        if self.weights and not self.module:
            raise UserError("--weights are a module's; name it: --module package.file:factory")
        if self.module is not None and not all(self.module.partition(":")):
            raise UserError(f"--module {self.module}: package.file:factory expected")
        for one in self.option:
            if not all(one.partition("=")):
                raise UserError(f"--option {one}: COLUMN=NAME expected")
        if len(self.fixed) < len(self.option):
            raise UserError(f"--option {','.join(self.option)}: a column is named twice")

    @property
    def drawn(self) -> tuple[str, ...]:
        """The columns that are drawn."""
        if self.columns is not None:
            return tuple(self.columns)
        return ("decode", "resize") if self.mix and not self.option else ()

    @property
    def fixed(self) -> dict[str, str]:
        """The options that the training stack has, by column."""
        return dict(one.split("=", 1) for one in self.option)


class _Learning(Command[O]):
    """A network learns on; the same call goes on after the last epoch."""

    returns: ClassVar[str] = (
        "The summary: settings, epochs, ``metric``, ``accuracy``, its value on the samples held "
        "out (from 0 to 1), ``nc_below``, and ``converged``. The folder gets an ONNX file, a model "
        "card and ``summary.json``."
    )

    work: ClassVar[str] = "fine-tuning"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return two epochs of a small classifier, on pictures of two colors."""
        from simulator.testing.image_specimen import colored

        own = {"epochs": 2, "batch": 4, "threads": 1, "held_out": 0.25}
        return {**own, **colored(folder)}

    def print_result(self, found: TuningSummary, folder: str, console: Console) -> None:
        """Print how good the network is, and where it is."""
        if found["nc_below"] is None:
            said = f"{found['metric']} {found['accuracy']:.3f} on the images held out"
            said = said if found["converged"] else f"NC: {said}"
        else:
            said = f"{100 * found['accuracy']:.1f} % of the images held out are right"
            if not found["converged"]:
                said = f"NC: {said}; {100 * found['nc_below']:.1f} % are needed"
        console.print(said)
        console.print(f"model card: {folder}/{found['card']}", soft_wrap=True, markup=False)
        if stack := found.get("stack"):
            console.print(f"stack of the old card: {folder}/{stack}", soft_wrap=True, markup=False)


class Quantize(_Learning[QuantizeOptions]):
    """Fine-tune a classifier with weights and activations of a few bits.

      simulate quantize --model model.yaml --method lsq --bits 4 --data train/ --epochs 3 --out DIR

    DIR gets an ONNX file that rounds in floating point, a model card for it, and a profile of the
    stack that opens it: simulate robustness --model model.yaml --profile DIR/lsq_w4a4_tuned.yaml.
    After an interruption, simulate resume DIR goes on. What is no better than chance is
    marked NC.
    """

    name = "quantize"
    about = "fine-tune a classifier with weights and activations of a few bits"
    Options = QuantizeOptions
    runs = "simulator.experiments.quantize:quantize"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return four bits of that."""
        return {**super().specimen(folder), "method": "lsq", "bits": 4}


class Finetune(_Learning[FinetuneOptions]):
    """Fine-tune a network on pixels of one stack or of many: mix training (SysNoise, Algorithm 1).

      simulate finetune --mix sysnoise --model model.yaml --data train/ --epochs 3 --out DIR

    With --mix, each image of each epoch goes through a decoder and a resizer that are drawn from
    the suite's columns; --draw batch draws one for a whole batch, as the paper. Classifiers learn,
    and detectors with anchors (RetinaNet's loss). DIR gets an ONNX file and a model card for it.
    simulate resume DIR goes on after an interruption. What is no better than chance
    is marked NC.
    """

    name = "finetune"
    about = "fine-tune a classifier on the pixels of one stack, or of many (mix training)"
    Options = FinetuneOptions
    runs = "simulator.mitigation.finetune:finetune"

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a mix of decoders, and mirrored pictures."""
        own = {"mix": "sysnoise-mix", "columns": ["decode"], "augment": ["flip", "shift:2"]}
        return {**super().specimen(folder), **own}

    def again(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a request; a folder does not choose the code that is run.

        Raises:
            UserError: it was of a module.
        """
        if arguments.get("module") is not None:
            raise UserError("--module is code, which no folder chooses: run the same command again")
        return super().again(arguments)
