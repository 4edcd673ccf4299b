r"""Fine-tune a network on pixels of one stack or of many: mix training (SysNoise, Algorithm 1).

  simulate finetune --mix sysnoise --model model.yaml --data train/ --epochs 3 --out DIR

With --mix, each image of each epoch goes through a decoder and a resizer that are drawn from the
suite's columns (the paper draws one for a whole batch). Classifiers learn, and detectors with
anchors (RetinaNet's loss). DIR gets an ONNX file and a model card for it. Run the same command
again to go on after an interruption. What is no better than chance is marked NC.
"""

from __future__ import annotations

import argparse
from dataclasses import fields


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--model", required=True, metavar="CARD", help="card of the network, an ONNX file")
    add("--data", required=True, metavar="PATH", help="annotated images to learn from")
    add("--out", required=True, metavar="DIR", help="a new folder, or that of the same command")
    add("--epochs", required=True, type=int, metavar="N", help="how often to learn from each image")
    add("--mix", metavar="SUITE", help="draw stacks from the columns of a suite; default: none")
    add("--columns", type=_listed, metavar="A,B", help="that are drawn; default decode,resize")
    add("--option", type=_listed, action="extend", default=[], metavar="COLUMN=NAME,…",
        help="options of the training stack; then --columns has no default")  # fmt: skip
    add("--profile", help="the training stack; default that of --mix, else pillow_fp32")
    add("--augment", type=_listed, default=(), metavar="flip,shift:N",
        help="mirror half of the images, move each by up to N pixels")  # fmt: skip
    add("--statistics", default="learn", metavar="WHICH",
        help="learn (default) or keep those of BatchNormalization")  # fmt: skip
    add(
        "--module", metavar="PATH", help="package.file:factory, learned in place of the card's file"
    )
    add("--weights", metavar="FILE", help="state dict of the module")
    add("--name", metavar="NAME", help="in the new card; default that of CARD with _mix")
    add("--learning-rate", type=float, default=0.01, metavar="X", help="at first; default 0.01")
    add("--batch", type=int, default=32, metavar="N", help="images in a step; default 32")
    add("--held-out", type=float, default=0.2, metavar="X", help="share to measure; default 0.2")
    add("--threads", type=int, metavar="N", help="of PyTorch; default all of this process")
    add("--limit", type=int, metavar="N", help="take a random subset of N images")
    add("--seed", type=int, default=0, metavar="S", help="default 0")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def run(options: argparse.Namespace) -> int:
    """Fine-tune, and say how good the network is."""
    from simulator.cli.quantize import learned
    from simulator.mitigation.finetune import Settings, finetune
    from simulator.profile.suite import load_suite

    given = {one.name: getattr(options, one.name) for one in fields(Settings)}
    given["option"] = tuple(options.option)
    if options.profile is None and options.mix is not None:
        given["profile"] = load_suite(options.mix).spec.train
    return learned(finetune, Settings, given, options)
