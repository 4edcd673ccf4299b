"""Runs as reports read them: nothing is measured, and nothing is worked out anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from simulator.errors import RunError, one_line
from simulator.results.store import read_manifest, read_run, read_summary


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Attributes:
        folder: where it is.
        manifest: the content of ``manifest.json``.
        summary: the content of ``summary.json``.
        records: a row per sample and stack; of an audit there are none.
    """

    folder: Path
    manifest: dict[str, Any]
    summary: dict[str, Any]
    records: pa.Table

    @property
    def command(self) -> str:
        """Which job has left it, as ``simulate resume`` knows it."""
        return str(self.manifest["request"]["command"])

    def side(self, name: str) -> pa.Table:
        """Return the records of one stack, of the samples that went through."""
        rows = pc.and_(pc.equal(self.records["side"], name), pc.is_null(self.records["skipped"]))
        return self.records.filter(rows)

    def label(self, index: int | None) -> str:
        """Return a class by the name that the model's card gives it, or by its number."""
        names = self.manifest["model"].get("labels") or ()
        if index is None:
            return "-"
        return str(names[index]) if 0 <= index < len(names) else str(index)

    def file(self, name: str) -> bytes | None:
        """Return a file of the run; None where there is none, or one outside its folder."""
        try:
            place = (self.folder / name).resolve()
            inside = place.is_relative_to(self.folder.resolve()) and place.is_file()
            return place.read_bytes() if inside else None
        except (OSError, RuntimeError, ValueError):  # no name of a file, or links in a circle
            return None


def read(folder: Path) -> Run:
    """Read what a command has left.

    Raises:
        RunError: it is no run, or one that did not finish or is damaged.
    """
    command = read_manifest(folder).get("command")
    if command == "replay":
        raise RunError(f"{folder}: a replay has no page; what came out is in its summary.json")
    if command == "audit":
        return Run(folder, *read_summary(folder), pa.table({}))
    manifest, summary, records = read_run(folder)
    try:
        run = Run(folder, manifest, summary, records)
        _ = run.command, summary["samples"], manifest["model"]["sha256"], records["side"]
    except (KeyError, TypeError) as error:
        raise RunError(f"{folder}: a damaged run: {one_line(error)} is missing") from error
    return run
