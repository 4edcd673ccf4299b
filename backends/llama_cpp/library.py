"""The library, its log, and files that would end the process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from simulator.contract import Library, ModelError

llama = Library("llama_cpp", distribution="llama-cpp-python", extra="llama-cpp")

SECONDS = 120
"""What a trial of a file may take."""
_ERROR = 4
_errors: list[str] = []
_TRIAL = "import sys; from backends.llama_cpp.tokenizer import trial; trial(sys.argv[1])"


def started() -> None:
    """Start the library once, its log kept from the screen, and forget what it said of errors."""
    _started()
    _errors.clear()


@cache
def _started() -> Any:
    """Return what must not be collected."""
    keep = llama.llama_log_callback(_keep)
    llama.llama_log_set(keep, ctypes.c_void_p(0))
    llama.llama_backend_init()
    return keep


def _keep(level: int, text: bytes, data: Any) -> None:
    if level == _ERROR and (line := text.decode(errors="replace").strip()):
        _errors.append(line)


def reason() -> str:
    """Return the first error of which the library spoke since, as the end of a message."""
    return f": {_errors[0].partition(': ')[2]}" if _errors else ""


def check(file: Path) -> None:
    """Refuse a file on which llama.cpp aborts: another process opens its vocabulary first.

    Of 200 copies of a small vocabulary with random bytes changed, 2 ended the process (0.3.36).

    Raises:
        ModelError: it cannot be opened; one line.
    """
    try:
        found = file.stat()
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror or error}") from error
    reason = _tried(file, found.st_mtime_ns, found.st_size)
    if reason is not None:
        raise ModelError(f"{file}: {reason}")


@lru_cache(maxsize=64)
def _tried(file: Path, changed: int, size: int) -> str | None:
    """Why llama.cpp does not open a file; None where it does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TRIAL, str(file)],
            env=environment,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"llama.cpp does not open it within {SECONDS} s"
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"llama.cpp cannot open it, it ends the process ({name})"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return None if done.returncode == 0 else lines[-1] if lines else "llama.cpp cannot open it"
