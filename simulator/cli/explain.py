r"""What does each axis on which two stacks differ cost?

Every mixture of the two stacks runs over the same images, in one plan:

  simulate explain --train dali_fp32 --deploy ascend_nv12_int8 --data val/

alone: the training stack with this axis of the deployment stack; repaired: what the deployment
stack gains if this axis is repaired; in order: axes swapped one after the other; Shapley: the
axis's fair share of the difference.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.suites import ExplainSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.pair(parser)
    common.inputs(parser)
    common.output(parser)


def run(options: argparse.Namespace) -> int:
    """Explain one pair and print what each axis costs."""
    from simulator.cli.progress import Bar
    from simulator.experiments.explain import explain

    deploy, pixels = common.deployment(options)
    with Bar(options.explain_plan) as bar:
        result = explain(
            options.train,
            deploy,
            pixels=pixels,
            overrides=options.overrides,
            model=options.model,
            **common.shared(options, bar),
        )
    return show(result, options.json)


def show(result: Result[ExplainSummary], as_json: bool) -> int:
    """Print what each axis costs."""
    from simulator.report import blame

    return common.show(result, as_json, blame.explain)
