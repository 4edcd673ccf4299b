"""Shards: files of many samples, each written whole from the samples' own files."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.errors import UserError
from simulator.files import TEXT, hash_file, read_file, write_parts
from simulator.render.experiment import Form
from simulator.render.kept import IMAGES, SPOOL, Row
from simulator.results.json_text import parse_json, write_json

STATE, SHARDS = ".state", "shards"
Group = tuple[list[Row], dict[str, str]]
"""The samples that are kept, and the reason of each that is not."""


class Shards:
    """The shards of rendered data, and what is known of each; a folder has them in name only.

    Args:
        home: the folder of the rendered data.
        format: of the shards.

    Attributes:
        folder: where the samples are, below *home*.
    """

    def __init__(self, home: Path, format: Form) -> None:
        self.home, self.format = home, format
        self.folder = IMAGES if format == "folder" else SHARDS

    def known(self, number: int) -> Group | None:
        """Return what a finished shard has; None where it is not finished."""
        state = self.home / STATE / f"{number:04d}.json"
        if not state.exists():
            return None
        found: dict[str, Any] = parse_json(read_file(state, TEXT))
        return [Row(*row) for row in found["rows"]], found["skipped"]

    def close(self, number: int, rows: list[Row], skipped: dict[str, str]) -> None:
        """Write a shard, and that it is finished.

        Raises:
            UserError: its tensors differ in shape.
        """
        name = f"{number:04d}.{self.format}"
        if self.format != "folder" and rows:
            parts = self._tar(rows) if self.format == "tar" else self._npy(rows)
            place = self.home / SHARDS / name
            place.parent.mkdir(exist_ok=True)
            write_parts(place, parts)
        state = self.home / STATE / f"{number:04d}.json"
        state.parent.mkdir(exist_ok=True)
        write_json(state, {"rows": [[*row] for row in rows], "skipped": skipped})
        shutil.rmtree(self.home / SPOOL / name, ignore_errors=True)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each shard."""
        places = sorted((self.home / SHARDS).glob("[0-9]*"))
        return {f"{SHARDS}/{place.name}": hash_file(place) for place in places}

    def clean(self) -> None:
        """Remove what only an unfinished folder needs."""
        for name in (SPOOL, STATE):
            shutil.rmtree(self.home / name, ignore_errors=True)

    def _content(self, row: Row) -> bytes:
        return read_file(self.home / SPOOL / row.name, TEXT)

    def _tar(self, rows: Iterable[Row]) -> Iterator[bytes]:
        """A WebDataset: of each sample KEY.png and, where it has a label, KEY.cls."""
        for row in rows:
            key = Path(row.name).stem
            yield from _member(f"{key}.png", self._content(row))
            if isinstance(row.truth, (int, str)):
                yield from _member(f"{key}.cls", str(row.truth).encode())
        yield bytes(2 * tarfile.BLOCKSIZE)

    def _npy(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """One array, (samples, ...)."""
        first: Any = None
        for row in rows:
            one = np.load(io.BytesIO(self._content(row)))
            if first is None:
                first = one
                head = io.BytesIO()
                descr = np.lib.format.dtype_to_descr(one.dtype)
                shape = {"shape": (len(rows), *one.shape), "fortran_order": False, "descr": descr}
                np.lib.format.write_array_header_1_0(head, shape)
                yield head.getvalue()
            if (one.shape, one.dtype) != (first.shape, first.dtype):
                raise UserError(
                    f"--format npy: inputs of one shape expected; that of {rows[0].sample} is "
                    f"{first.shape}, that of {row.sample} {one.shape}"
                )
            yield one.tobytes()


def _member(name: str, content: bytes) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    yield info.tobuf(tarfile.USTAR_FORMAT)
    yield content
    yield bytes(-len(content) % tarfile.BLOCKSIZE)
