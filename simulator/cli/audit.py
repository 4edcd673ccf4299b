r"""May these stacks be shipped? Check several stacks and models against the rules of a document.

  simulate audit audit.yaml --out audit

The document is described in docs/audit.md. The run folder has audit.md for a pull request,
junit.xml with a test case for each rule, the run of each pair, and bundle.zip, which others can
check with simulate verify and simulate replay. The exit code is 1 if a rule fails.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.audits import AuditSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("document", metavar="AUDIT", help="the audit's document (YAML)")
    common.signer(parser)
    common.condition(parser)
    common.output(parser)


def run(options: argparse.Namespace) -> int:
    """Audit and print the outcome of every rule."""
    from simulator.audit.run import audit
    from simulator.cli.progress import Bar

    sign = common.signing(options.sign)
    with Bar(options.explain_plan) as bar:
        result = audit(
            options.document,
            out=options.out,
            overwrite=options.overwrite,
            workers=options.workers,
            memory=options.memory,
            progress=bar,
            under=options.under,
            trial=options.trial,
            executor=options.executor,
            isolate=options.isolate,
            report=common.report_all,
        )
    sign(result.folder)
    return show(result, options.json)


def show(result: Result[AuditSummary], as_json: bool) -> int:
    """Print the audit; the exit code is the gate's."""
    from simulator.audit import screen as audited

    return common.show(result, as_json, audited.audit)
