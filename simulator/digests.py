"""SHA-256 of samples and files, computed while other work goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from simulator.files import LARGE, hash_file
from simulator.places import ByteSource, Unreachable, Where

BATCH = 32
"""Files that a thread hashes at a time."""


class Digests:
    """The SHA-256 of files by place, in hexadecimal; None for one that cannot be read.

    A file is read once: its digest stays as it was.

    Args:
        paths: files that are hashed in the background; others are hashed when asked for.
        workers: threads.
    """

    def __init__(self, paths: Sequence[Where], workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="digest")
        self._running: list[Future[dict[Where, str | None]]] = [
            self._pool.submit(_hashed, paths[at : at + BATCH]) for at in range(0, len(paths), BATCH)
        ]
        self._known: dict[Where, str | None] = {}

    def __getitem__(self, path: Where) -> str | None:
        """Return a file's digest; waits for those that are being computed."""
        while self._running:
            self._known |= self._running.pop().result()
        if path not in self._known:
            self._known[path] = sha256(path)
        return self._known[path]

    def close(self) -> None:
        """Forget what is not computed yet."""
        self._pool.shutdown(cancel_futures=True)


def sha256(path: Where) -> str | None:
    """Return the SHA-256 of a sample or a file in hexadecimal; None if it cannot be read.

    Raises:
        DataError: the server that has it does not answer any more.
    """
    try:
        if isinstance(path, ByteSource):
            return hashlib.sha256(path.read(LARGE)).hexdigest()
        return hash_file(path)
    except Unreachable as error:
        raise error.stop() from error
    except OSError:
        return None


def _hashed(paths: Sequence[Where]) -> dict[Where, str | None]:
    return {path: sha256(path) for path in paths}
