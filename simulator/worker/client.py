"""Our side: starts a worker, calls it, and says in one line how it died."""

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
from simulator.worker.codec import Memory, decode, encode

TIMEOUT = "PIPELINE_SIMULATOR_WORKER_TIMEOUT"
OPEN_SECONDS = 1800.0
CALL_SECONDS = 120.0
CRASHES = 3


@dataclass(frozen=True, slots=True)
class Home:
    """Where a backend's worker runs.

    Attributes:
        name: of the backend.
        python: the interpreter.
        backend: ``module:attribute`` of the Backend.
    """

    name: str
    python: str
    backend: str


class Crashed(Exception):
    """The worker died, or did not answer in time."""


class Stale(Exception):
    """What was made in the worker is gone: it was started anew since."""


class Worker:
    """A process that runs one backend; starts on the first call, and again after a crash.

    Calls wait for each other; what a call takes beyond the worker's own time is excluded from
    latency (:mod:`simulator.contract.clock`).

    Args:
        home: where to run it.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._crashes = 0
        self._life = 0

    def call(self, name: str, *arguments: Any, of: tuple[int, int] | None = None) -> Any:
        """Call a function of the worker.

        Args:
            name: the function.
            arguments: values of the contract.
            of: what ``make`` returned, for a method of it.

        Returns:
            What the function returned; of ``make`` the worker's life and a number in it.

        Raises:
            Stale: the worker was started anew since ``make``.
            SampleError: the implementation refused this sample, or the worker died on it.
            UserError: whatever else the implementation raised, or the worker dies every time.
        """
        begin = time.perf_counter_ns()
        opening = name in ("make", "compile", "cast", "quantize", "export")
        with self._lock:
            if of is not None and (self._process is None or of[0] != self._life):
                raise Stale
            request = {"call": name, "args": list(arguments), "of": of and of[1]}
            try:
                reply = self._ask(request, opening)
            except Crashed as crash:
                self._crashes += 1
                problem = f"the {self.home.name} worker {crash}"
                if opening:
                    raise ModelError(f"{problem} in {name}") from crash
                if self._crashes >= CRASHES:
                    raise ModelError(f"{problem}, {CRASHES} times in a row; given up") from crash
                raise SampleError(problem) from crash
        if "error" in reply:
            kind = getattr(errors, reply["error"], UserError)
            raise kind(reply["message"])
        if of is not None:
            self._crashes = 0
        clock.exclude(time.perf_counter_ns() - begin - reply["ns"])
        return (self._life, reply["value"]) if name == "make" else reply["value"]

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _ask(self, request: dict[str, Any], opening: bool) -> dict[str, Any]:
        if self._process is None:
            self._start()
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(encode(request, self._ours))
            self._requests.flush()
        seconds = float(os.environ.get(TIMEOUT, OPEN_SECONDS if opening else CALL_SECONDS))
        if not select.select([self._replies], [], [], seconds)[0]:
            self._end()
            raise Crashed(f"did not answer within {seconds:g} s (set {TIMEOUT} to wait longer)")
        line = self._replies.readline()
        if not line.endswith(b"\n"):
            raise Crashed(self._death())
        return decode(line, self._theirs)

    def _start(self) -> None:
        self._life += 1
        (read, requests), (replies, write) = os.pipe(), os.pipe()
        self._ours, self._theirs = _memory(), _memory()
        fds = (read, write, self._ours.file, self._theirs.file)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by _end
        self._folder = tempfile.TemporaryDirectory(prefix="simulate-worker-")
        try:
            self._process = subprocess.Popen(
                [*command(self.home, Path(self._folder.name)), "--fds", ",".join(map(str, fds))],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
                env=environment(self.home, Path(self._folder.name)),
            )
        except OSError as error:
            raise UserError(
                f"{self.home.python} cannot be started: {error.strerror}; "
                f"try: simulate backends install {self.home.name}"
            ) from error
        finally:
            os.close(read)
            os.close(write)
        self._requests: IO[bytes] = open(requests, "wb")  # noqa: SIM115  closed by _end
        self._replies: IO[bytes] = open(replies, "rb", buffering=0)  # noqa: SIM115

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
        if self._process is None:
            return
        for stream in (self._requests, self._replies):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        self._log.close()
        self._folder.cleanup()
        os.close(self._ours.file)
        os.close(self._theirs.file)


def command(home: Home, folder: Path) -> Sequence[str]:
    """Return how a worker is started; *folder* is made to hold our packages and no others."""
    ours = Path(__file__).parents[1]
    module = home.backend.partition(":")[0]
    tops = {"simulator": ours, module.partition(".")[0]: _package(module.partition(".")[0])}
    for name, place in tops.items():
        link = folder / (name if place.is_dir() else place.name)
        if not link.exists():
            link.symlink_to(place)
    return [home.python, "-m", "simulator.worker.serve", home.backend]


def environment(home: Home, folder: Path) -> dict[str, str]:
    """Return the variables of a worker: ours, with *folder* to import from.

    What our own variables add to the path belongs to our own interpreter alone.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    ours = [kept["PYTHONPATH"]] if home.python == sys.executable and "PYTHONPATH" in kept else []
    return {**kept, "PYTHONPATH": os.pathsep.join([str(folder), *ours])}


def _package(name: str) -> Path:
    """Where a top-level module lies, without importing it."""
    import importlib.util

    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise UserError(f"there is no module {name!r}; install the package that brings it")
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _memory() -> Memory:
    folder = "/dev/shm" if os.path.isdir("/dev/shm") and sys.platform == "linux" else None
    with tempfile.TemporaryFile(dir=folder) as file:
        return Memory(os.dup(file.fileno()))
