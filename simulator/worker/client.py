"""The client side of a worker: starts it, calls it, and reports in one line how it died."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator import errors
from simulator.contract import Tail, clock
from simulator.errors import ModelError, SampleError, UserError, one_line
from simulator.worker.codec import Message, decode, encode, memory
from simulator.worker.home import Home, command, environment

TIMEOUT = "PIPELINE_SIMULATOR_WORKER_TIMEOUT"
OPEN_SECONDS = 1800.0
CALL_SECONDS = 120.0
CRASHES = 3
LONGEST = 2**26
"""Bytes of an answer, whose arrays are elsewhere."""
_UNREADABLE = (
    ArithmeticError, AttributeError, ImportError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What decoding raises for an answer that no worker of ours gives."""


class Crashed(Exception):
    """The worker died, or did not answer in time."""


class Died(SampleError):
    """The worker died, or did not answer in time, while it processed a sample."""


class Refused(ModelError, ValueError):
    """A ValueError in the worker: an argument of the call is not valid."""


class Stale(Exception):
    """The worker was restarted, so the implementation that was built in it is gone."""


class Worker:
    """A process that runs one backend. It starts on the first call, and again after a crash.

    One call runs at a time. The overhead of a call beyond the worker's own time is excluded from
    the latency (:mod:`simulator.contract.clock`).

    Args:
        home: the interpreter and the backend.
        called: what messages call it; by default *the NAME worker*.
        patience: after how many crashes in a row it is given up; None: never.
        seconds: how long a call may take; None: as for every worker.
    """

    def __init__(
        self,
        home: Home,
        called: str | None = None,
        patience: int | None = CRASHES,
        seconds: float | None = None,
    ) -> None:
        self.home, self._seconds = home, seconds
        self._called = called or f"the {home.name} worker"
        self._patience = patience
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._crashes = 0
        self._life = 0
        self._halted = False
        self._kept = contextlib.ExitStack()
        self._gone = deque[tuple[int, int]]()

    @property
    def pid(self) -> int:
        """The process; 0 before the first call, and after it died."""
        return self._process.pid if self._process is not None else 0

    def call(
        self, name: str, *arguments: Any, of: tuple[int, int] | None = None, of_sample: bool = False
    ) -> Any:
        """Call a function of the worker.

        Args:
            name: the function.
            arguments: values that `simulator.worker.codec` can encode.
            of: for a method call, the value that ``make`` returned.
            of_sample: whether the call processes a sample: a crash then loses the sample, and the
                time of the call counts as its latency.

        Returns:
            The function's result; for ``make`` the number of the worker process and a number in it.

        Raises:
            Stale: the worker was restarted after ``make``.
            SampleError: the implementation refused this sample.
            Died: the worker died on this sample.
            Refused: an argument is not valid.
            UserError: any other error of the implementation, or the worker died repeatedly.
        """
        begin = time.perf_counter_ns()
        with self._lock:
            if self._halted:
                raise (SampleError if of_sample else ModelError)(f"{self._called} was interrupted")
            if self._process is not None and self._process.poll() is not None:
                self._end()  # it died since the last call, for example for want of memory
            if of is not None and (self._process is None or of[0] != self._life):
                raise Stale
            number, gone = of and of[1], self._forgotten()
            request = {"call": name, "args": list(arguments), "of": number, "gone": gone}
            try:
                usual = CALL_SECONDS if of_sample else OPEN_SECONDS
                reply = self._ask(request, self._seconds or usual)
            except Crashed as crash:
                self._crashes += 1
                problem = f"{self._called} {crash}"
                if name == "close":
                    raise Stale from crash
                if not of_sample:
                    if name == "make":
                        raise ModelError(f"{self._called}, as it started, {crash}") from crash
                    raise ModelError(f"{problem} in {name}") from crash
                if self._crashes == self._patience:
                    raise ModelError(
                        f"{problem}, {self._patience} times in a row; given up"
                    ) from crash
                raise Died(problem) from crash
            except BaseException:  # interrupted: a late reply would be read by the next call
                self._end()
                raise
            if of_sample:
                self._crashes = 0
            life = self._life
        own = reply.get("ns", 0) if of_sample else 0
        clock.exclude(time.perf_counter_ns() - begin - own)
        if "error" in reply:
            raise _error(str(reply["error"]), str(reply["message"]))
        return (life, reply["value"]) if name == "make" else reply["value"]

    def forget(self, made: tuple[int, int]) -> None:
        """Let the next call close what ``make`` returned; finalizers may call this."""
        self._gone.append(made)

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def halt(self) -> None:
        """End the process, even while a call is waiting for it; until :meth:`go_on` none starts."""
        self._halted = True
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def go_on(self) -> None:
        """Let the next call start the process again."""
        self.stop()
        self._crashes, self._halted = 0, False

    def _forgotten(self) -> list[int]:
        """The numbers of what was forgotten in the process that runs now."""
        gone = [self._gone.popleft() for _ in range(len(self._gone))]
        return [number for life, number in gone if life == self._life and self._process]

    def _ask(self, request: Mapping[str, object], seconds: float) -> Message:
        if self._process is None:
            self._start()
        line = encode(request, self._ours)
        if not self._seconds:
            seconds = float(os.environ.get(TIMEOUT, seconds))
        deadline = time.monotonic() + seconds
        try:
            self._send(line, deadline)
            reply = decode(self._line(deadline), self._theirs)
            if not reply.keys() & {"value", "error"}:
                raise ValueError("neither a value nor an error")
        except TimeoutError:
            self._end()
            longer = "" if self._seconds else f" (set {TIMEOUT} to wait longer)"
            raise Crashed(f"did not answer within {seconds:g} s{longer}") from None
        except _UNREADABLE as error:
            self._end()
            raise Crashed(f"gave an answer that cannot be read: {one_line(error, 200)}") from error
        return reply

    def _send(self, line: bytes, deadline: float) -> None:
        """Write a request; a worker that has died is noticed by its answer.

        Raises:
            TimeoutError: the worker does not read it.
        """
        self._link.settimeout(max(_until(deadline), 1e-3))
        with contextlib.suppress(ConnectionError):
            self._link.sendall(line)

    def _line(self, deadline: float) -> bytes:
        """Read an answer.

        Raises:
            Crashed: the worker died before its end.
            TimeoutError: it did not come, or not to its end.
            ValueError: it has no end.
        """
        link, found = self._link.fileno(), bytearray()
        while not found.endswith(b"\n"):
            ready = select.select([link, self._alive], [], [], _until(deadline))[0]
            if not ready:
                raise TimeoutError
            more = b""
            if link in ready or select.select([link], [], [], 0)[0]:
                with contextlib.suppress(ConnectionError):
                    more = self._link.recv(2**16)
            if not more:
                raise Crashed(self._death())
            found += more
            if len(found) > LONGEST:
                raise ValueError(f"a line of more than {LONGEST:,} bytes")
        return bytes(found)

    def _start(self) -> None:
        self._life += 1
        with contextlib.ExitStack() as kept:
            folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="simulate-")))
            read, log = os.pipe()
            self._tail = Tail(read)
            link, end = socket.socketpair()
            self._link = kept.enter_context(link)
            self._ours, self._theirs = memory(), memory()
            for one in (self._ours, self._theirs):
                kept.callback(os.close, one.file)
            fds = (end.fileno(), self._ours.file, self._theirs.file)
            try:
                self._process = subprocess.Popen(
                    [*command(self.home, folder), "--fds", ",".join(map(str, fds))],
                    pass_fds=fds,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=folder,
                    env=environment(self.home, folder),
                )
            except OSError as error:
                remedy = f"; try: simulate backends install {self.home.name}"
                remedy = "" if self._seconds else remedy  # the user named that interpreter
                raise UserError(
                    f"{self.home.python} cannot be started: {error.strerror}{remedy}"
                ) from error
            finally:
                end.close()
                os.close(log)
            self._alive = os.pidfd_open(self._process.pid)
            kept.callback(os.close, self._alive)
            self._kept = kept.pop_all()

    def _death(self) -> str:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.poll()
        said = self._tail.last()
        said = f": {said}" if said else ""
        self._end()
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name} (signal {-code}){said}"
        return f"ended with exit code {code}{said}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._kept.close()


def _error(name: str, message: str) -> errors.SimulatorError:
    """Return an error of a worker as one of ours."""
    if name == "ValueError":
        return Refused(message)
    kind: Any = getattr(errors, name, None)
    if kind is errors.ProfileError:
        return errors.ProfileError([message])
    if isinstance(kind, type) and issubclass(kind, errors.SimulatorError):
        return kind(message)
    return UserError(message)


def _until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
