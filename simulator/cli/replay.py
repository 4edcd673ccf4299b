r"""Run the pairs of an audit's bundle again, and say what changed and why.

  simulate replay audit/bundle.zip
  simulate replay audit/bundle.zip --model model.yaml --data val/

Each pair is bit-equal, equal within stated noise, or different (docs/audit.md says when). The
possible causes are listed: versions, processor flags, digests of the model and of the images,
values of profiles. A bundle contains no images and no model. The exit code is 1 if a pair is
different.

A replay runs what the bundle's profiles say. Read them before you run a bundle from others.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.audits import ReplaySummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("bundle", metavar="BUNDLE", help="the bundle.zip of an audit")
    add(
        "--model", dest="models", action="append", default=[], metavar="[MODEL=]CARD",
        help="the card of a model that is not built in; repeatable",
    )  # fmt: skip
    add(
        "--data", dest="images", action="append", default=[], metavar="[MODEL=]PATH",
        help="data that are not built in; repeatable",
    )  # fmt: skip
    add(
        "--set", dest="overrides", action="append", default=[], metavar="STACK.KEY=VALUE",
        help="override one field, e.g. board.runtime.recording=here/recording.yaml",
    )  # fmt: skip
    common.output(parser)


def run(options: argparse.Namespace) -> int:
    """Replay, and print what changed."""
    from simulator.audit.replay import replay
    from simulator.cli.progress import Bar

    with Bar(options.explain_plan) as bar:
        result = replay(
            options.bundle,
            models=options.models,
            images=options.images,
            overrides=options.overrides,
            out=options.out,
            overwrite=options.overwrite,
            workers=options.workers,
            memory=options.memory,
            progress=bar,
            executor=options.executor,
            isolate=options.isolate,
        )
    return show(result, options.json)


def show(result: Result[ReplaySummary], as_json: bool) -> int:
    """Print the verdicts; the exit code says whether a pair is different."""
    from simulator.audit import screen as audited

    return common.show(result, as_json, audited.replay, reported=False)
