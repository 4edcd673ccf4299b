"""The command line, one file per command: parse the arguments, make one call, print the result."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from simulator import spent
from simulator.cli import collector, streams, supervised
from simulator.cli.exits import BUG, GATE_FAILED, PASS, USER_ERROR, tell_error
from simulator.cli.plain import plain
from simulator.errors import UserError, shortened, unknown

__all__ = ["BUG", "COMMANDS", "GATE_FAILED", "PASS", "USER_ERROR", "main"]

COMMANDS = {
    "explain": "say what each axis on which two stacks differ costs",
    "sweep": "try every option of a suite, for one model or several",
    "worst": "find the combination of options that loses most",
    "repair": "find the cheapest change of a deployment that passes a gate",
    "robustness": "measure stacks under every condition of a suite",
    "faults": "put faults into weights and activations of the artifacts that run",
    "identify": "find the stack that made a recording",
    "corrupt": "write a data set under conditions to disk",
    "quantize": "fine-tune a classifier with weights and activations of a few bits",
    "sensitivity": "find which layers of an INT8 stack to keep in FP32",
    "finetune": "fine-tune a classifier on the pixels of one stack, or of many (mix training)",
    "latency": "time stacks one sample at a time, side by side",
    "tail": "measure accuracy when late answers count as wrong",
    "audit": "check several stacks and models against the rules of one document",
    "verify": "check whether the bundle of an audit was changed; runs nothing",
    "replay": "run the bundle of an audit again, and say what changed and why",
    "gate": "list the figures of a run, and apply rules to them; runs nothing",
    "report": "write the report of a run again",
    "resume": "continue an interrupted run",
    "runs": "list runs with their gates, or write an index page of them",
    "compare-runs": "say what changed between two finished runs; runs nothing",
    "model": "propose a model card for an ONNX file, and check a card",
    "recordings": "write what a board needs to record: the capture script, probe images",
    "profiles": "list, show, create, import and check profiles",
    "prove": "prove that a backend, stage, condition, modality, task, ... does what it says",
    "backends": "list the backends, their libraries and what they offer",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0: done, and every gate rule passed; 1: a gate rule failed; 2: an error that the user can
        fix, or interrupted; 3: an error of ours, whose details are in a file.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    own = argv is None  # the process is there for this command alone
    if own:
        collector.wait()
    with supervised.owned(own) as tell:
        try:
            lost = streams.last() if own else lambda: None
            with plain():
                code = _code(arguments)
            if why := lost():
                print(f"error: the output cannot be written: {why.strerror}", file=sys.stderr)
                code = code or USER_ERROR
            tell(code)
            return code
        finally:
            if own:
                collector.leave()


def _code(arguments: list[str]) -> int:
    """Run one command; what ends it is an exit code too."""
    try:
        with _ended_like_interrupted(), _notes_on_stderr():
            return _run(arguments)
    except KeyboardInterrupt as stop:
        notes = getattr(stop, "__notes__", [])
        print(f"interrupted; {_going_on(notes)}", file=sys.stderr)
        return USER_ERROR
    except SystemExit as stop:
        return _left(stop)
    except Exception as error:
        return _failed(error)


def _left(stop: SystemExit) -> int:
    """Return the exit code where something ends the program; argparse may, a package may not."""
    where = traceback.extract_tb(stop.__traceback__)[-1]
    if where.filename == argparse.__file__:
        raise stop
    called = f"{where.filename}:{where.lineno}: called sys.exit({stop.code!r})"
    return _failed(UserError(f"{called} in the middle of a command, which has no verdict now"))


def _going_on(notes: Sequence[str]) -> str:
    """How an interrupted run is continued; of runs in a run the outer one is the last."""
    return f"to continue: {notes[-1]}" if notes else "no run was begun"


def command_module(name: str) -> ModuleType:
    """Import the module of a command."""
    return importlib.import_module(f"simulator.cli.{name.replace('-', '_')}")


def _run(arguments: list[str]) -> int:
    """Find the command, parse its arguments and run it."""
    begun = spent.command_began()
    for one in (*arguments, os.getcwd()):
        _refuse_unwritable(one)
    if arguments[:1] and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise UserError(unknown("command", shortened(arguments[0]), COMMANDS))
    name = arguments.pop(0) if arguments[:1] and arguments[0] in COMMANDS else "run"
    from simulator.cli import common
    from simulator.cli.help_text import HelpText

    command = command_module(name)
    prog = "simulate" if name == "run" else f"simulate {name}"
    parser = argparse.ArgumentParser(
        prog=prog,
        description=command.__doc__,
        formatter_class=HelpText,
        allow_abbrev=False,
    )
    if name == "run":
        lines = "\n".join(f"  {command:<14}{text}" for command, text in COMMANDS.items())
        parser.epilog = f"other commands (simulate COMMAND --help):\n{lines}"
        root(parser)
    command.arguments(parser)
    options = parser.parse_args(arguments)
    common.exemplify(options)
    code = supervised.apart(getattr(options, "executor", None) or "local")
    if code is not None:
        return code
    with supervised.in_time(getattr(options, "timeout", 0)):
        code = int(command.run(options))
    if getattr(options, "explain_time", False):
        common.explain_time(begun)
    return code


def _refuse_unwritable(text: str) -> None:
    """Refuse what cannot be written to a run's JSON: a name of bytes that are not UTF-8, a NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        name = shortened(text.encode("utf-8", "backslashreplace").decode())
        raise UserError(f"{name}: is not UTF-8 text; rename the file or folder") from None
    if "\0" in text:
        raise UserError(f"{shortened(text)!r}: holds a NUL character")


def _failed(error: Exception) -> int:
    """Print an error: a line or more that the user can act on, or where the details of ours are."""
    if isinstance(error, OSError) and error.filename is not None:
        name = shortened(os.fsdecode(error.filename))
        lines = [f"{name}: {error.strerror}"]
    elif isinstance(error, UserError):
        lines = str(error).splitlines()
    else:
        return _bug(error)
    for line in lines:
        tell_error(line)
    return USER_ERROR


def _bug(error: Exception) -> int:
    """Say in one line that the error is ours, and where its details are."""
    details = "".join(traceback.format_exception(error))
    said = shortened(" ".join(f"{type(error).__name__}: {error}".split()))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="simulate-error-", suffix=".txt", delete=False, encoding="utf-8",
            errors="backslashreplace",
        ) as file:  # fmt: skip
            file.write(details)
        where = f"details are in {file.name}"
    except OSError as full:
        where = f"details cannot be written: {full.strerror}"
    print(f"error: a bug of the simulator, please report it: {said}; {where}", file=sys.stderr)
    return BUG


@contextmanager
def _notes_on_stderr() -> Iterator[None]:
    """Print what the engine notes on its way, for example a cache entry that is made again."""
    log, printed = logging.getLogger("simulator"), logging.StreamHandler(sys.stderr)
    log.addHandler(printed)
    try:
        yield
    finally:
        log.removeHandler(printed)


@contextmanager
def _ended_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, or a terminal that is closed, end a command as Ctrl-C does.

    What is safe stays safe, nothing is left behind. What is ignored, as by nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    usual = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: one for number, one in usual.items() if one != signal.SIG_IGN}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, one)


def root(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``simulate`` itself."""
    from importlib.metadata import version

    from simulator.cli import completion

    add = parser.add_argument
    add("--version", action="version", version=f"simulate {version('pipeline-simulator')}")
    add(
        "--print-completion", action=completion.Print, of=_whole, choices=completion.SHELLS,
        metavar="SHELL",
        help='for bash: eval "$(simulate --print-completion bash)"; also zsh and fish',
    )  # fmt: skip


def _whole() -> argparse.ArgumentParser:
    """One parser with every command, as ``simulate`` itself never needs it."""
    parser = argparse.ArgumentParser(prog="simulate")
    root(parser)
    command_module("run").arguments(parser)
    commands = parser.add_subparsers(dest="command")
    for name, text in COMMANDS.items():
        one = commands.add_parser(name, help=text, description=text)
        command_module(name).arguments(one)
    return parser
