"""Locks: one process at a time writes into the folder of a run, and others are told which."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from simulator.closing import Closing
from simulator.errors import RunError

LOCK = "run.lock"
_MOST = 4096
"""Bytes that are read of a lock."""
ENDING = 10.0
"""Seconds that a holder may take to end, once the process that the user started has."""
Tell = Callable[[Path, bool], None]
folders: list[Path] = []
"""What this process holds, the folder of an outer run first."""
_supervisors: dict[int, Tell] = {}


class _Holder(NamedTuple):
    """What the file of a lock says, which anyone may have written; None where it says nothing."""

    pid: object
    host: object
    since: object


class Lock(Closing):
    """The right to write into a folder, until it is released; a context manager.

    The kernel holds it, so that it ends with the process, however that ends. Beside it the file
    says who holds it.

    Args:
        folder: of the run; it must be there.
        note: told where the lock of a dead process is taken over.

    Raises:
        RunError: another process holds it, or one on another machine may.
        OSError: the file cannot be written.
    """

    def __init__(self, folder: Path, note: Callable[[str], None]) -> None:
        self._place = folder / LOCK
        self._file: int | None = _opened(self._place)
        try:
            before = _read(self._file)
            if before and before.host not in (None, platform.node()):
                raise _held(self._place, before, f"; if it is gone: rm {self._place}")
            if before and before.pid != _pid():
                note(
                    f"{folder}: process {before.pid}, which has written here since "
                    f"{before.since}, is gone; this run goes on in its place"
                )
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(_own()._asdict()).encode(), 0)
        except BaseException:
            os.close(self._file)
            raise
        self._tell(True)

    def close(self) -> None:
        """Let others write; nothing happens the second time."""
        if self._file is None:
            return
        self._place.unlink(missing_ok=True)
        os.close(self._file)
        self._file = None
        self._tell(False)

    def _tell(self, held: bool) -> None:
        (folders.append if held else folders.remove)(self._place.parent)
        for tell in _supervisors.values():
            tell(self._place.parent, held)


def supervised(by: int, tell: Tell) -> None:
    """Hold locks in the name of the process that the user started, which ends before this one.

    Args:
        by: its identifier.
        tell: told of each folder that this process begins to hold, and holds no more.
    """
    _supervisors[by] = tell


@contextmanager
def locked(folder: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Make a folder, and hold its lock meanwhile; see :class:`Lock`.

    Raises:
        RunError: another process holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder, note)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from error
    with lock:
        try:
            yield
        except KeyboardInterrupt as stop:
            tell_resume(stop, folder)
            raise


def tell_resume(stop: BaseException | None, folder: Path) -> None:
    """Note on an interruption the command that goes on; of runs in a run the outer one is last."""
    if isinstance(stop, KeyboardInterrupt):
        stop.add_note(f"simulate resume {shlex.quote(str(folder))}")


def refuse_held(folder: Path) -> None:
    """Refuse a folder that a living process of this machine writes into.

    Raises:
        RunError: saying who it is, and since when.
    """
    place = folder / LOCK
    try:
        file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        _flock(place, file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def _opened(place: Path) -> int:
    """Open the file and lock it; one that its holder removed meanwhile is made anew."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        file = os.open(place, flags, 0o644)
        try:
            _flock(place, file, fcntl.LOCK_EX)
            if place.exists() and os.path.samestat(os.fstat(file), place.stat()):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _flock(place: Path, file: int, kind: int) -> None:
    """Lock a file; a holder whose supervisor has ended is ending too, and waited for.

    Raises:
        RunError: another process holds it.
    """
    until = time.monotonic() + ENDING
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            who = _read(file)
            if _lives(who) or time.monotonic() > until:
                raise _held(place, who) from None
            time.sleep(0.01)
        else:
            return


def _lives(who: _Holder | None) -> bool:
    """Whether a process is there; True where that cannot be known."""
    if who is None or who.host != platform.node() or not isinstance(who.pid, int):
        return True
    try:
        os.kill(who.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        pass
    return True


def _pid() -> int:
    return next(iter(_supervisors), os.getpid())


def _own() -> _Holder:
    return _Holder(_pid(), platform.node(), time.strftime("%Y-%m-%dT%H:%M:%S%z"))


def _read(file: int) -> _Holder | None:
    """Who holds a lock; None: it is new, or says nothing that can be read."""
    try:
        found = json.loads(os.pread(file, _MOST, 0))
    except (OSError, ValueError, RecursionError):
        return None
    if not found or not isinstance(found, dict):
        return None
    return _Holder(found.get("pid"), found.get("host"), found.get("since"))


def _held(place: Path, who: _Holder | None, hint: str = "") -> RunError:
    by = f"process {who.pid} on {who.host}" if who else "another process"
    since = f" since {who.since}" if who and who.since else ""
    return RunError(
        f"{place.parent}: {by} writes here{since}; wait for it, or choose another --out{hint}"
    )
