"""Commands on a cluster run in a child of this process, which says so where the child just ends.

Ray ends its driver from C++ (``_Exit(1)``) where the node is lost that it is connected to: with no
line, and with the exit code of a gate that failed. The child tells us which runs it has begun and
the exit code of the command; where it ends without one, there was none.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from simulator.cli.exits import USER_ERROR, tell_error

_PIPES = "PIPELINE_SIMULATOR_SUPERVISED"
"""In a child, two pipes: what it tells us, and one that ends when we do."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_alone: list[bool] = []
"""Has an item while the process is there for one command, and is no child."""
_owner: list[int | None] = []
"""Has an item while the process is there for one command: where a child tells of itself."""


@contextmanager
def owned(own: bool) -> Iterator[Callable[[int], None]]:
    """Know meanwhile whether the process is there for one command, and is no child.

    Yields:
        What is told the exit code of the command.
    """
    pipes = os.environ.pop(_PIPES, "").split() if own else []
    telling = _child(*map(int, pipes)) if pipes else None
    _alone[:] = [True] * (own and not pipes)
    _owner[:] = [telling] * own
    try:
        yield lambda code: _tell(telling, "=", code)
    finally:
        _alone.clear()
        _owner.clear()


def apart(executor: str) -> int | None:
    """Run the command of this process in a child, where its executor may end the process.

    Args:
        executor: ``NAME[:PLACE]``.

    Returns:
        The exit code; None: the command is to be run here.
    """
    if executor == "local" or not _alone:
        return None
    told, telling = os.pipe()
    living, alive = os.pipe()
    child = subprocess.Popen(
        [sys.executable, *sys.orig_argv[1:]], pass_fds=(telling, living), process_group=0,
        env=os.environ | {_PIPES: f"{telling} {living}"},
    )  # fmt: skip
    os.close(telling)
    os.close(living)
    with _forwarding(child), open(told, encoding="utf-8", errors="surrogateescape") as lines:
        begun, code = _heard(lines)
        status = child.wait()
    os.close(alive)
    return _ended(executor, begun, status) if code is None else code


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """End the process, if it is there for one command, where a call takes too long.

    Args:
        seconds: that one inference, or another step of a sample, may take; 0: any time.
    """
    from simulator.pipeline import watchdog
    from simulator.results import lock

    def end(what: str) -> None:
        begun = [shlex.quote(str(folder)) for folder in lock.folders]
        hint = f"simulate resume {begun[0]} --timeout N" if begun else None
        tell_error(
            f"{what} took more than {seconds:g} s and cannot be interrupted; where it is only "
            "slow, give --timeout a larger number of seconds; "
            + (f"to continue: {hint}" if hint else "no run was begun")
        )
        _tell(_owner[0], "=", USER_ERROR)
        os._exit(USER_ERROR)

    with watchdog.armed(seconds if _owner else 0, end):
        yield


def _heard(lines: IO[str]) -> tuple[list[str], int | None]:
    """The runs that a child has begun and not finished, and the exit code of its command."""
    begun: list[str] = []
    for line in lines:
        kind, text = line[0], line[1:].rstrip("\n")
        if kind == "=":
            return begun, int(text)
        begun = [*begun, text] if kind == "+" else [one for one in begun if one != text]
    return begun, None


def _ended(executor: str, begun: list[str], status: int) -> int:
    """Say that the child has ended without a verdict."""
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with code {status}"
    name, _, place = executor.partition(":")
    why = "; Ray does so where it loses the node that it is connected to" if name == "ray" else ""
    where = f" --executor {shlex.quote(executor)}" if place else ""
    # Of runs in a run the outer one began first.
    hint = f"to continue: simulate resume {shlex.quote(begun[0])}{where}" if begun else None
    print(
        f"error: --executor {executor}: the process of this command ended {how}, without a verdict"
        f"{why}; {hint or 'no run was begun'}",
        file=sys.stderr,
    )
    return USER_ERROR


@contextmanager
def _forwarding(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass on what this process is sent: its child is in another group, so that it comes once."""

    def forward(number: int, frame: Any) -> None:
        child.send_signal(number)

    def stop(number: int, frame: Any) -> None:
        os.killpg(child.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(child.pid, signal.SIGCONT)

    handlers = dict.fromkeys(_FORWARDED, forward) | {signal.SIGTSTP: stop}
    # What is ignored, as SIGHUP under nohup, the child ignores too.
    handlers = {
        n: handler for n, handler in handlers.items() if signal.getsignal(n) != signal.SIG_IGN
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, one)


def _child(telling: int, living: int) -> int:
    """Live as long as who supervises us, and tell them of runs; return where to tell."""
    from simulator.results import lock

    for number in (telling, living):
        os.set_inheritable(number, False)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # we are in the background of the terminal

    def follow() -> None:
        os.read(living, 1)  # nothing is ever written
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=follow, daemon=True).start()
    by = os.getppid()
    lock.supervised(by, lambda folder, held: _tell(telling, "+" if held else "-", folder))
    return telling


def _tell(telling: int | None, kind: str, what: int | Path) -> None:
    if telling is not None:
        os.write(telling, f"{kind}{what}\n".encode("utf-8", "surrogateescape"))
