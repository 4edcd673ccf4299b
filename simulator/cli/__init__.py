"""The command line, one file per command: parse the arguments, make one call, print the result."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence

from simulator.errors import UserError, unknown

PASS, GATE_FAILED, USER_ERROR = 0, 1, 2
COMMANDS = {
    "explain": "say what each axis on which two stacks differ costs",
    "sweep": "try every option of a suite, for one model or several",
    "worst": "find the combination of options that loses most",
    "latency": "time stacks one sample at a time, side by side",
    "tail": "measure accuracy when late answers count as wrong",
    "audit": "check several stacks and models against the rules of one document",
    "verify": "check whether the bundle of an audit was changed; runs nothing",
    "replay": "run the bundle of an audit again, and say what changed and why",
    "report": "write the report of a run again",
    "resume": "continue an interrupted run",
    "runs": "list runs with their gates, or write an index page of them",
    "model": "propose a model card for an ONNX file, and check a card",
    "profiles": "list, show, create, import and check profiles",
    "prove": "prove that a backend, stage, condition, modality, task, ... does what it says",
    "backends": "list the backends, their libraries and what they offer",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0: done, and every gate rule passed; 1: a gate rule failed; 2: an error that the user can
        fix, or interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot print an arrow
            stream.reconfigure(errors="replace")
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        print(f"error: {unknown('command', arguments[0], COMMANDS)}", file=sys.stderr)
        return USER_ERROR
    name = arguments.pop(0) if arguments[:1] and arguments[0] in COMMANDS else "run"
    command = importlib.import_module(f"simulator.cli.{name}")
    prog = "simulate" if name == "run" else f"simulate {name}"
    parser = argparse.ArgumentParser(
        prog=prog,
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if name == "run":
        lines = "\n".join(f"  {command:<10}{text}" for command, text in COMMANDS.items())
        parser.epilog = f"other commands (simulate COMMAND --help):\n{lines}"
        root(parser)
    command.arguments(parser)
    try:
        return int(command.run(parser.parse_args(arguments)))
    except UserError as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("interrupted; to continue the run: simulate resume RUN", file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASS


def root(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``simulate`` itself."""
    from importlib.metadata import version

    from simulator.cli import completion

    add = parser.add_argument
    add("--version", action="version", version=f"simulate {version('pipeline-simulator')}")
    add(
        "--print-completion", action=completion.Print, choices=completion.SHELLS, metavar="SHELL",
        help='for bash: eval "$(simulate --print-completion bash)"; also zsh and fish',
    )  # fmt: skip
