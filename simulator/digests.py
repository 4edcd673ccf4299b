"""SHA-256 of files, computed while other work goes on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from simulator.files import hash_file

BATCH = 32
"""Files that a thread hashes at a time."""


class Digests:
    """The SHA-256 of files by path, in hexadecimal; None for a file that cannot be read.

    A file is read once: its digest stays as it was.

    Args:
        paths: files that are hashed in the background; others are hashed when asked for.
        workers: threads.
    """

    def __init__(self, paths: Sequence[Path], workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="digest")
        self._running: list[Future[dict[Path, str | None]]] = [
            self._pool.submit(_hashed, paths[at : at + BATCH]) for at in range(0, len(paths), BATCH)
        ]
        self._known: dict[Path, str | None] = {}

    def __getitem__(self, path: Path) -> str | None:
        """Return a file's digest; waits for those that are being computed."""
        while self._running:
            self._known |= self._running.pop().result()
        if path not in self._known:
            self._known[path] = sha256(path)
        return self._known[path]

    def close(self) -> None:
        """Forget what is not computed yet."""
        self._pool.shutdown(cancel_futures=True)


def sha256(path: Path) -> str | None:
    """Return the SHA-256 of a file in hexadecimal, or None if it cannot be read."""
    try:
        return hash_file(path)
    except OSError:
        return None


def _hashed(paths: Sequence[Path]) -> dict[Path, str | None]:
    return {path: sha256(path) for path in paths}
