r"""Fine-tune a classifier with weights and activations of a few bits.

  simulate quantize --model model.yaml --method lsq --bits 4 --data train/ --epochs 3 --out DIR

DIR gets an ONNX file that rounds in floating point, and a model card for it. Run the same command
again to go on after an interruption. What is no better than chance is marked NC.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from simulator import cli


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--model", required=True, metavar="CARD", help="card of the FP32 network, an ONNX file")
    add("--data", required=True, metavar="PATH", help="labelled images to learn from")
    add("--out", required=True, metavar="DIR", help="a new folder, or that of the same command")
    add("--method", required=True, metavar="NAME", help="dorefa, pact or lsq")
    add("--bits", required=True, type=int, metavar="N", help="8, 6, 4 or 2; outer layers have 8")
    add("--epochs", required=True, type=int, metavar="N", help="how often to learn from each image")
    add("--weights", default="per_tensor", metavar="WHICH", help="per_channel is for lsq")
    add("--learning-rate", type=float, default=0.01, metavar="X", help="at first; default 0.01")
    add("--batch", type=int, default=32, metavar="N", help="images in a step; default 32")
    add("--held-out", type=float, default=0.2, metavar="X", help="share to measure; default 0.2")
    add("--profile", default="pillow_fp32", help="whose preprocessing; default pillow_fp32")
    add("--threads", type=int, metavar="N", help="of PyTorch; default all of this process")
    add("--limit", type=int, metavar="N", help="take a random subset of N images")
    add("--seed", type=int, default=0, metavar="S", help="default 0")


def run(options: argparse.Namespace) -> int:
    """Fine-tune, and say how good the network is."""
    from simulator.experiments.quantize import Settings, quantize

    given = {one.name: getattr(options, one.name) for one in fields(Settings)}
    return learned(quantize, Settings, given, options)


def learned(
    job: Callable[..., dict[str, Any]],
    kind: Callable[..., Any],
    given: Mapping[str, Any],
    options: argparse.Namespace,
) -> int:
    """Run a fine-tuning with the settings that were given, and say how good the network is."""
    from simulator.cli.progress import Bar

    settings = kind(**{name: value for name, value in given.items() if value is not None})
    with Bar() as bar:
        summary = job(
            options.model,
            options.data,
            options.out,
            settings,
            limit=options.limit,
            progress=bar,
        )
    said(summary, options.out)
    return cli.PASS


def said(summary: dict[str, Any], out: str) -> None:
    """Print how good a fine-tuned network is, and where it is."""
    from simulator.cli.common import console
    from simulator.experiments.tuning import CARD

    if summary["nc_below"] is None:
        found = f"{summary['metric']} {summary['accuracy']:.3f} on the images held out"
        found = found if summary["converged"] else f"NC: {found}"
    else:
        found = f"{100 * summary['accuracy']:.1f} % of the images held out are right"
        if not summary["converged"]:
            found = f"NC: {found}; {100 * summary['nc_below']:.1f} % are needed"
    console().print(found)
    print(f"model card: {out}/{CARD}")
