"""The client side of a worker: starts it, calls it, and reports in one line how it died."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from simulator import errors
from simulator.contract import clock
from simulator.errors import ModelError, SampleError, UserError
from simulator.worker.codec import decode, encode, memory

TIMEOUT = "PIPELINE_SIMULATOR_WORKER_TIMEOUT"
OPEN_SECONDS = 1800.0
CALL_SECONDS = 120.0
CRASHES = 3


@dataclass(frozen=True, slots=True)
class Home:
    """Where a backend's worker runs.

    Attributes:
        name: the backend's name.
        python: the path of the interpreter.
        backend: ``module:attribute`` of the Backend.
    """

    name: str
    python: str
    backend: str


class Crashed(Exception):
    """The worker died, or did not answer in time."""


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
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._crashes = 0
        self._life = 0
        self._kept = contextlib.ExitStack()

    def call(
        self,
        name: str,
        *arguments: Any,
        of: tuple[int, int] | None = None,
        of_sample: bool = False,
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
            SampleError: the implementation refused this sample, or the worker died on it.
            Refused: an argument is not valid.
            UserError: any other error of the implementation, or the worker died repeatedly.
        """
        begin = time.perf_counter_ns()
        with self._lock:
            if of is not None and (self._process is None or of[0] != self._life):
                raise Stale
            request = {"call": name, "args": list(arguments), "of": of and of[1]}
            try:
                reply = self._ask(request, CALL_SECONDS if of_sample else OPEN_SECONDS)
            except Crashed as crash:
                self._crashes += 1
                problem = f"the {self.home.name} worker {crash}"
                if name == "close":
                    raise Stale from crash
                if not of_sample:
                    raise ModelError(f"{problem} in {name}") from crash
                if self._crashes >= CRASHES:
                    raise ModelError(f"{problem}, {CRASHES} times in a row; given up") from crash
                raise SampleError(problem) from crash
            except BaseException:  # interrupted: a late reply would be read by the next call
                self._end()
                raise
            if of_sample:
                self._crashes = 0
            life = self._life
        own = reply.get("ns", 0) if of_sample else 0
        clock.exclude(time.perf_counter_ns() - begin - own)
        if "error" in reply:
            if reply["error"] == "ValueError":
                raise Refused(reply["message"])
            raise getattr(errors, reply["error"], UserError)(reply["message"])
        return (life, reply["value"]) if name == "make" else reply["value"]

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def kill(self) -> None:
        """End the process, even while a call is waiting for it."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._process is None:
            self._start()
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(encode(request, self._ours))
            self._requests.flush()
        seconds = float(os.environ.get(TIMEOUT, seconds))
        answer = self._replies.fileno()
        ready = select.select([answer, self._alive], [], [], seconds)[0]
        if not ready:
            self._end()
            raise Crashed(f"did not answer within {seconds:g} s (set {TIMEOUT} to wait longer)")
        if answer not in ready and not select.select([answer], [], [], 0)[0]:
            raise Crashed(self._death())
        line = self._replies.readline()
        if not line.endswith(b"\n"):
            raise Crashed(self._death())
        return decode(line, self._theirs)

    def _start(self) -> None:
        self._life += 1
        with contextlib.ExitStack() as kept:
            folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="simulate-")))
            self._log = kept.enter_context(tempfile.TemporaryFile())
            (read, requests), (replies, write) = os.pipe(), os.pipe()
            self._requests: IO[bytes] = kept.enter_context(open(requests, "wb"))
            self._replies: IO[bytes] = kept.enter_context(open(replies, "rb", buffering=0))
            self._ours, self._theirs = memory(), memory()
            for one in (self._ours, self._theirs):
                kept.callback(os.close, one.file)
            fds = (read, write, self._ours.file, self._theirs.file)
            try:
                self._process = subprocess.Popen(
                    [*command(self.home, folder), "--fds", ",".join(map(str, fds))],
                    pass_fds=fds,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                    cwd=folder,
                    env=environment(self.home, folder),
                )
            except OSError as error:
                raise UserError(
                    f"{self.home.python} cannot be started: {error.strerror}; "
                    f"try: simulate backends install {self.home.name}"
                ) from error
            finally:
                os.close(read)
                os.close(write)
            self._alive = os.pidfd_open(self._process.pid)
            kept.callback(os.close, self._alive)
            self._kept = kept.pop_all()

    def _death(self) -> str:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.poll()
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode(errors="replace").strip().splitlines()
        said = f": {lines[-1][:200]}" if lines else ""
        self._end()
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}{said}"
        return f"ended with exit code {code}{said}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._kept.close()


def command(home: Home, folder: Path) -> Sequence[str]:
    """Return the command that starts a worker; only our packages are linked into *folder*."""
    ours = Path(__file__).parents[1]
    module = home.backend.partition(":")[0]
    tops = {"simulator": ours, module.partition(".")[0]: _package(module.partition(".")[0])}
    for name, place in tops.items():
        link = folder / (name if place.is_dir() else place.name)
        if not link.exists():
            link.symlink_to(place)
    return [home.python, "-m", "simulator.worker.serve", home.backend]


def environment(home: Home, folder: Path) -> dict[str, str]:
    """Return the environment variables of a worker: ours, with imports from *folder*.

    Our own import path is removed, because it belongs to our interpreter.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    kept["PYTHONSAFEPATH"] = "1"
    ours = [kept["PYTHONPATH"]] if home.python == sys.executable and "PYTHONPATH" in kept else []
    ours = [os.path.abspath(place) for place in os.pathsep.join(ours).split(os.pathsep) if place]
    return {**kept, "PYTHONPATH": os.pathsep.join([str(folder), *ours])}


def _package(name: str) -> Path:
    """Return the path of a top-level module, without importing it."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise UserError(f"there is no module {name!r}; install the package that provides it")
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin
