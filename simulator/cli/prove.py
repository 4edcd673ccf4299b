"""Run the conformance suite on one thing, and print a line per check.

simulate prove stage NAME                every backend that fills a stage
simulate prove condition NAME            on the samples of its modality
simulate prove modality NAME             with the samples, the card and the profile that it brings
simulate prove task NAME                 with the outputs that it brings
simulate prove data_format CARD          with a small data card of yours; needs --model
simulate prove importer FILE             with a small file of yours
simulate prove model_format FILE         with a small model of yours
simulate prove graph_pass NAME           on a small model of each operator family
simulate prove executor NAME             against the local one
simulate prove experiment NAME           by a small run that it brings

All that one backend offers: simulate backends prove NAME

The checks and their tolerances: docs/conformance.md
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli

if TYPE_CHECKING:
    from simulator.testing.prove import Finding
    from simulator.testing.suite import Verdict

SUITES = {
    "condition": "conditions",
    "modality": "modalities",
    "task": "tasks",
    "data_format": "data_formats",
    "importer": "importers",
    "model_format": "model_formats",
    "graph_pass": "graph_passes",
    "executor": "executors",
    "experiment": "experiments",
}
"""The module in ``simulator.testing`` of each kind, with its ``SUITE`` and ``prove_KIND``."""
KINDS = ("stage", *SUITES)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("name", metavar="NAME", help="of its entry point; or CARD, FILE")
    parser.add_argument(
        "--model", metavar="CARD", help="a model card with the classes of the data, for data_format"
    )


def run(options: argparse.Namespace) -> int:
    """Run the checks.

    Returns:
        0: every check that can run here passed; 1: one failed; 2: none can run here.

    Raises:
        UserError: there is no such thing, or it cannot be proved here, with the reason.
    """
    name = options.name
    if options.kind == "stage":
        return told(name, _stage(name))
    return told(name, _lines(_verdicts(options.kind, name, options.model)))


def backend(name: str) -> int:
    """Run the suite on one backend; see :func:`run`."""
    from simulator import registry
    from simulator.testing import prove

    return told(name, map(line, prove(registry.backend(name))))


Line = tuple[str, str]
"""A mark, and what stands behind it."""


def line(finding: Finding) -> Line:
    """Return a finding as it is printed."""
    words = (finding.options, finding.check, finding.remark)
    return finding.mark, f"{finding.stage:<9} " + "  ".join(word for word in words if word)


def _stage(name: str) -> Iterator[Line]:
    """The checks of one stage, of every backend that offers it and can run here."""
    from simulator import registry
    from simulator.contract.stage import STAGES
    from simulator.errors import MissingLibrary
    from simulator.testing import Mark, prove

    STAGES.require(name)
    for backend in registry.backends():
        if not backend.of(name):
            continue
        try:
            findings = [found for found in prove(backend) if found.stage == name]
        except MissingLibrary as error:
            yield Mark.CANNOT, f"{backend.name:<9} {error}"
            continue
        for mark, words in map(line, findings):
            yield mark, f"{backend.name}: {words}"


def _lines(verdicts: Iterable[Verdict]) -> Iterator[Line]:
    for verdict in verdicts:
        yield verdict.mark, "  ".join(filter(None, (verdict.check, verdict.remark)))


def _verdicts(kind: str, name: str, model: str | None) -> list[Verdict]:
    if kind == "data_format":
        return _data_format(Path(name), model)
    from simulator.contract.stage import named

    prove = named(f"simulator.testing.{SUITES[kind]}:prove_{kind}")
    found: list[Verdict] = prove(name)
    return found


def _data_format(data: Path, model: str | None) -> list[Verdict]:
    from simulator.data.card import find_card
    from simulator.data.folder import Files
    from simulator.errors import UserError
    from simulator.model.card import Card
    from simulator.testing.data_formats import prove_data_format

    if model is None:
        raise UserError("prove data_format: give --model CARD, a model card for these data")
    card, found = Card(Path(model)), find_card(data)
    if found is None:
        raise UserError(f"{data}: a data card, or a folder with a data.yaml, expected")
    return prove_data_format(found, card.task, Files.of(card.modality))


def told(name: str, lines: Iterable[Line], *, silent: bool = False) -> int:
    """Print every line, or none if they were printed, and the counts; return the exit code."""
    from simulator.testing import Mark

    counts = Counter[str]()
    for mark, words in lines:
        counts[mark] += 1
        if not silent:
            print(f"{mark:<7} {words}", flush=True)
    if not counts:
        print(f"{name} offers nothing that the suite can check")
        return cli.PASS
    print(f"{name}: " + ", ".join(f"{counts[mark]} {mark}" for mark in Mark))
    if counts[Mark.FAILED]:
        return cli.GATE_FAILED
    return cli.PASS if counts[Mark.PASSED] else cli.USER_ERROR
