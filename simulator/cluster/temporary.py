"""The folder of a cluster of our own; what a process that was killed has left, the next removes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "sim-ray-"
_SHORT = 22
"""Characters of a temporary folder; the paths of Ray's sockets below it must stay below 108."""


class Temporary:
    """A folder of this process. It is locked: the kernel gives the lock back however we end.

    Attributes:
        path: of the folder; nobody else may enter it.
        inside: a folder in it, for Ray, which lets everybody write to those that it is given.
    """

    def __init__(self) -> None:
        usual = Path(tempfile.gettempdir())
        parent = usual if len(str(usual)) <= _SHORT else Path("/tmp")
        clean(parent)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if self.path.is_dir():  # else another process found it before it was locked
                break
            os.close(self._lock)
        self.inside = self.path / "r"

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def clean(parent: Path) -> None:
    """Remove the folders of processes of this user that have ended."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # it is gone, a link, or another user's
            continue
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:  # its process lives
            pass
        finally:
            os.close(lock)
