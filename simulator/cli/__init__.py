"""The command line, one file per command: parse the arguments, make one call, print the result."""

from __future__ import annotations

import argparse
import importlib
import inspect
import logging
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from simulator import spent
from simulator.cli import collector, streams, supervised
from simulator.cli.exits import BUG, GATE_FAILED, PASS, USER_ERROR, tell_error
from simulator.cli.streams import plain
from simulator.errors import UserError, shortened, unknown

__all__ = ["BUG", "COMMANDS", "GATE_FAILED", "PASS", "USER_ERROR", "main"]

COMMANDS = {
    "replay-fault": "run one fault of a finished run again, and compare",
    "verify": "check whether the bundle of an audit was changed; runs nothing",
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
"""The commands that are no experiments, each a module of this package."""
MAIN = "run"
"""The experiment that is ``simulate`` itself."""


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


def names() -> list[str]:
    """Return every command: the experiments, those of other packages too, and ours."""
    from simulator.command.experiment import EXPERIMENTS

    return [*(name for name in EXPERIMENTS.names if name != MAIN), *COMMANDS]


def listed() -> dict[str, str]:
    """Return what every command does."""
    from simulator.command.experiment import EXPERIMENTS

    found = {name: EXPERIMENTS[name].about for name in EXPERIMENTS.names if name != MAIN}
    return found | COMMANDS


def prepared(name: str, parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Give a parser the arguments of a command; return what runs it."""
    if name in COMMANDS:
        module = importlib.import_module(f"simulator.cli.{name.replace('-', '_')}")
        parser.description = module.__doc__
        module.arguments(parser)
        run: Callable[[argparse.Namespace], int] | None = getattr(module, "run", None)
        return run or (lambda options: options.run(options))  # a verb says what runs it
    from simulator.cli import experiment
    from simulator.command.experiment import EXPERIMENTS

    found = EXPERIMENTS.of(name)
    parser.description = inspect.cleandoc(found.__doc__ or found.about)
    experiment.arguments(parser, found)
    return partial(experiment.run, found)


def _run(arguments: list[str]) -> int:
    """Find the command, parse its arguments and run it."""
    begun = spent.command_began()
    for one in (*arguments, os.getcwd()):
        _refuse_unwritable(one)
    name = MAIN
    if arguments[:1] and not arguments[0].startswith("-"):
        name = arguments.pop(0)
        if name not in (known := names()):
            stack = ":" in name or os.path.exists(name)
            hint = "; stacks are named with --train and --deploy" * stack
            raise UserError(unknown("command", shortened(name), known) + hint)
    from simulator.cli import common
    from simulator.cli.help_text import HelpText, Parser

    parser = Parser(
        prog="simulate" if name == MAIN else f"simulate {name}",
        formatter_class=HelpText,
        allow_abbrev=False,
    )
    if name == MAIN:
        root(parser)
    if name == MAIN and {"-h", "--help"} & {*arguments}:
        lines = "\n".join(f"  {command:<14}{text}" for command, text in listed().items())
        parser.epilog = f"other commands (simulate COMMAND --help):\n{lines}"
    run = prepared(name, parser)
    options, rest = parser.parse_known_args(arguments)
    if rest:
        parser.refuse(rest, _of_main() if name != MAIN else ())
    common.exemplify(options)
    code = supervised.apart(getattr(options, "executor", None) or "local")
    if code is not None:
        return code
    with supervised.in_time(getattr(options, "timeout", 0)):
        code = run(options)
    if getattr(options, "explain_time", False):
        common.explain_time(begun)
    return code


def _of_main() -> list[str]:
    """The options of ``simulate`` without a command."""
    from simulator.command.experiment import EXPERIMENTS
    from simulator.command.options import declared

    return [one.flag for one in declared(EXPERIMENTS.of(MAIN).Options).values()]


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
    prepared(MAIN, parser)
    commands = parser.add_subparsers(dest="command")
    for name, text in listed().items():
        prepared(name, commands.add_parser(name, help=text))
    return parser
