"""Options and output that several commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from simulator.cli.exits import GATE_FAILED, PASS
from simulator.errors import UserError
from simulator.limits import SECONDS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from simulator.experiments.job import Options, Result
    from simulator.experiments.session import Progress
    from simulator.results.checkpoints import Checkpoints
    from simulator.results.shared import Summary
    from simulator.spent import Mark

S = TypeVar("S", bound="Summary")


def pair(parser: argparse.ArgumentParser) -> None:
    """Add the two stacks and their overrides."""
    add = parser.add_argument
    add("--train", required=True, metavar="PROFILE", help="the training stack: a path or a name")
    deploy = parser.add_mutually_exclusive_group(required=True)
    deploy.add_argument("--deploy", metavar="PROFILE", help="the deployment stack, likewise")
    deploy.add_argument(
        "--deploy-runtime", metavar="PROFILE",
        help="likewise, but with the pixels of the training stack: only graph, precision, runtime "
        "and postprocessing are this profile's",
    )  # fmt: skip
    add(
        "--set", dest="overrides", action="append", default=[], metavar="STACK.KEY=VALUE",
        help="override one field of one stack, e.g. deploy.resize.interpolation=nearest",
    )  # fmt: skip


def deployment(options: argparse.Namespace) -> tuple[str, Literal["own", "train"]]:
    """Return the deployment profile of a pair, and whose pixels it takes."""
    if options.deploy_runtime is not None:
        return options.deploy_runtime, "train"
    return options.deploy, "own"


def stacks(parser: argparse.ArgumentParser) -> None:
    """Add the stacks of a timed experiment: profiles, or a pair."""
    add = parser.add_argument
    add(
        "--profile", dest="profiles", action="append", default=[], metavar="PROFILE",
        help="a stack: a path or a name; repeatable. A single one is called deploy",
    )  # fmt: skip
    add("--train", metavar="PROFILE", help="instead of --profile: the training stack of a pair")
    add("--deploy", metavar="PROFILE", help="the deployment stack of the pair")
    add(
        "--set", dest="overrides", action="append", default=[], metavar="STACK.KEY=VALUE",
        help="override one field of one stack, e.g. deploy.runtime.threads=1",
    )  # fmt: skip


def gate(parser: argparse.ArgumentParser, example: str) -> None:
    """Add the gate rules."""
    parser.add_argument(
        "--fail-on", action="append", default=[], metavar="RULE",
        help=f'fail the gate if the rule holds, e.g. "{example}"; exit code 1; '
        "simulate gate --list RUN names all figures",
    )  # fmt: skip
    parser.add_argument(
        "--undecided", choices=("pass", "fail"), default="fail",
        help="what a rule gives whose figure the samples do not give, such as a p99 of 100 "
        "samples; default: fail",
    )  # fmt: skip
    allow_failed(parser)


def allow_failed(parser: argparse.ArgumentParser) -> None:
    """Add how many samples the deployment alone may fail on."""
    parser.add_argument(
        "--allow-failed", metavar="SHARE",
        help="the share of samples on which the deployment alone may fail, e.g. 0.1%%; default: "
        "one such sample fails the gate",
    )  # fmt: skip


def until_decided(parser: argparse.ArgumentParser) -> None:
    """Add the question by which options are dropped early."""
    parser.add_argument(
        "--until-decided", nargs="?", const="gate", choices=("gate", "worst-flips", "worst-drop"),
        help="take the samples in a random order, and drop an option when it can no longer matter: "
        "gate (the default): it passes or fails every --fail-on rule; worst-flips, worst-drop: it "
        "is not the worst. Wrong in 5 %% of the runs at most",
    )  # fmt: skip


def suite(parser: argparse.ArgumentParser) -> None:
    """Add the suite and its training stack."""
    add = parser.add_argument
    add("--suite", required=True, metavar="SUITE", help="a suite: a path or a built-in name")
    add("--train", metavar="PROFILE", help="the training stack; default: the suite's own")


def inputs(parser: argparse.ArgumentParser, model: bool = True, under: bool = True) -> None:
    """Add the model, the data, its subset and the condition."""
    add = parser.add_argument
    if model:
        add("--model", metavar="CARD", help="a model card (YAML); default: the built-in model")
    add(
        "--data", metavar="PATH",
        help="a folder of samples, or a data card (YAML); default: the built-in images",
    )  # fmt: skip
    add(
        "--example", metavar="NAME",
        help="a built-in model and its samples, in place of --model: image (the default), text, "
        "audio",
    )  # fmt: skip
    add("--limit", type=int, metavar="N", help="take a random subset of N images")
    add("--seed", type=int, default=0, metavar="S", help="random seed; default 0")
    if under:
        condition(parser)


def exemplify(options: argparse.Namespace) -> None:
    """Set the model and the data to those of ``--example``, where the command has it.

    Raises:
        UserError: there is no such example, or ``--model`` is given as well.
        MissingLibrary: a library that it needs is not installed.
    """
    name = getattr(options, "example", None)
    if name is None:
        return
    if options.model:
        raise UserError("--example is a model with its samples; leave out --model, or --example")
    from simulator.data import example

    card = str(example.model_card(name))
    options.model = [card] if isinstance(options.model, list) else card
    found = example.data_card(name)
    if options.data is None and found is not None:
        options.data = str(found)


def condition(parser: argparse.ArgumentParser) -> None:
    """Add the condition that every stack is under."""
    add = parser.add_argument
    add(
        "--under", metavar="CONDITION",
        help="a corruption, attack or fault that is applied to every stack: jpeg:QUALITY, "
        "flip:BIT, ... (docs/conditions.md)",
    )  # fmt: skip
    add(
        "--trial", type=int, default=0, metavar="N",
        help="which random draw of the condition, from 0; default 0",
    )  # fmt: skip


def signer(parser: argparse.ArgumentParser) -> None:
    """Add the key that signs the bundle of an audit."""
    parser.add_argument(
        "--sign", metavar="KEY",
        help="sign bundle.zip with this key (PEM, Ed25519), for simulate verify --key",
    )  # fmt: skip


def signing(key: str | None) -> Callable[[Path], None]:
    """Read the key of ``--sign``, before anything is run; return what signs a run's bundle."""
    if key is None:
        return lambda folder: None
    from simulator.audit import signing
    from simulator.results.layout import BUNDLE

    found = signing.private_key(Path(key))

    def sign(folder: Path) -> None:
        place = signing.sign(folder / BUNDLE, found)
        own = signing.fingerprint(found.public_key())
        print(f"signature: {place}, by {own}", file=sys.stderr)

    return sign


def output(parser: argparse.ArgumentParser) -> None:
    """Add the run folder, the executor and the form of the output."""
    add = parser.add_argument
    add("--out", metavar="DIR", help="run folder; default: a new one below runs/")
    add("--overwrite", action="store_true", help="replace the run that is already in --out")
    add(
        "--workers", type=int, metavar="N",
        help="samples processed at once; default: the number of cores",
    )  # fmt: skip
    add(
        "--executor", default="local", metavar="NAME[:PLACE]",
        help="what runs the samples: local, the default, is threads of this process; ray is "
        "processes here, ray:HOST:PORT those of a cluster; docs/scale.md",
    )  # fmt: skip
    add(
        "--isolate", choices=("auto", "always", "never"), default="auto",
        help="decode in a worker process, so that a decoder that dies does not end the run: auto, "
        "the default, files of a format that the library was seen to die of; docs/decoders.md",
    )  # fmt: skip
    add(
        "--memory", type=int, metavar="MIB",
        help="memory for the samples that are processed at once; default 2048",
    )  # fmt: skip
    timeout(parser)
    add("--explain-plan", action="store_true", help="print the plan before it is run")
    add("--explain-time", action="store_true", help="print at the end where the time went")
    add("--json", action="store_true", help="print the summary as JSON, and nothing else")


def timeout(parser: argparse.ArgumentParser) -> None:
    """Add the time limit of an inference."""
    parser.add_argument(
        "--timeout", type=_seconds, default=SECONDS, metavar="SECONDS",
        help="end the command where one inference, or another step of a sample, takes longer; "
        f"default {SECONDS:g}; 0: never",
    )  # fmt: skip


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < inf:
        raise ValueError(text)
    return seconds


def shared(options: argparse.Namespace, progress: Progress) -> Options:
    """Return the options that all experiments have."""
    return {
        "data": options.data,
        "limit": options.limit,
        "seed": options.seed,
        "out": options.out,
        "overwrite": options.overwrite,
        "report": report,
        "workers": options.workers,
        "memory": options.memory,
        "progress": progress,
        "under": getattr(options, "under", None),
        "trial": getattr(options, "trial", 0),
        "executor": options.executor,
        "isolate": options.isolate,
    }


def show(
    result: Result[S],
    as_json: bool,
    screen: Callable[[S, str, Console], None],
    reported: bool = True,
) -> int:
    """Print a result; the exit code is the gate's.

    Args:
        result: of an experiment.
        as_json: print the summary as JSON, and nothing else.
        screen: prints a summary, given also the run's folder and a console.
        reported: whether it has a report, whose path is printed.
    """
    if as_json:
        print_json(result.summary)
        return verdict(result.summary)
    lead(result.summary)
    screen(result.summary, str(result.folder), console())
    if reported:
        print(f"report: {report_of(result.folder)}")
    return verdict(result.summary)


def verdict(summary: Summary | Checkpoints) -> int:
    """Return the exit code of a finished run: that of its gate."""
    return PASS if summary.gate.passed else GATE_FAILED


def lead(summary: Summary, of: str = "") -> None:
    """Print the verdict, and the condition that every stack was under, if there was one.

    Args:
        summary: of a run.
        of: which one, where several are shown.
    """
    from rich.markup import escape

    from simulator.report.verdict import STYLES, line, verdict
    from simulator.report.words import condition, failures

    found = verdict(summary)
    said = f"{of}: {line(found)}" if of else line(found)
    console().print(f"[{STYLES[found.decision]}]{escape(said)}[/]", highlight=False)
    for one in failures(summary):
        console().print(f"[red]fails[/] {escape(one)}", highlight=False)
    if found.next:
        console().print(f"next: {escape(found.next)}", highlight=False, soft_wrap=True)
    if summary.under is not None:
        console().print(f"\nEvery stack is under {condition(summary.under)}.", highlight=False)


def report(folder: Path, out: Path | None = None) -> Path:
    """Write the report of a run; return its path."""
    from simulator.report import page

    return page.write(folder, out)


def report_of(folder: Path) -> Path:
    """Return where the report of a run is."""
    from simulator.report.words import PAGE

    return folder / PAGE


def report_all(folder: Path) -> None:
    """Write the report of every run below an audit that has one, and its own."""
    from simulator.results.read import read_summary

    for pair in read_summary(folder)[1]["pairs"]:
        for place in filter(None, (pair["folder"], pair["tail"])):
            report(folder / place)
    report(folder)


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that are not finite become null."""
    from simulator.results.json_text import json_text

    print(json_text(value), end="")


def explain_time(begun: Mark) -> None:
    """Print where the time of a command went, on standard error so that the output can be piped."""
    from simulator.cli.screen import Screen
    from simulator.report.time import render
    from simulator.results.time_spent import time_spent
    from simulator.spent import last_workers

    render(time_spent(begun, last_workers()), Screen(stderr=True, width=120, highlight=False))


def console() -> Console:
    """Return the terminal; without one, a plain console of $COLUMNS or else 120 columns."""
    from simulator.cli.screen import Screen

    found = Screen(highlight=False, emoji=False)
    wide = found.is_terminal or "COLUMNS" in os.environ
    return found if wide else Screen(width=120, highlight=False, emoji=False)


def table(*columns: str) -> Table:
    """Return an empty table whose cells wrap; nothing in it is cut."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        found.add_column(column, overflow="fold")
    return found
