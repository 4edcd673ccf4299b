"""Runs as reports read them; nothing is measured or computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from simulator.command.experiment import EXPERIMENTS
from simulator.errors import RunError
from simulator.files import TEXT, read_file
from simulator.results.manifest import AuditManifest, RunManifest
from simulator.results.read import read_head, read_summary
from simulator.results.record_file import RecordFile
from simulator.results.shared import Summary

S_co = TypeVar("S_co", bound=Summary, default=Summary, covariant=True)


@dataclass(frozen=True, eq=False)
class Run(Generic[S_co]):
    """A finished run.

    Attributes:
        folder: where it is.
        manifest: the content of ``manifest.json``.
        summary: the content of ``summary.json``.
        records: a row per sample and stack; None: an audit has none.
    """

    folder: Path
    manifest: RunManifest | AuditManifest
    summary: S_co
    records: RecordFile | None

    @property
    def command(self) -> str:
        """Which job has left it, as ``simulate resume`` knows it."""
        return self.summary.command

    def side(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return records of one stack, of the samples that went through.

        Args:
            name: of the stack.
            columns: those that are wanted; None: all.
        """
        if self.records is None:
            return pa.table({})
        wanted = self.records.column_names if columns is None else columns
        rows = pc.and_(pc.equal(self.records["side"], name), pc.is_null(self.records["skipped"]))
        return self.records.select(wanted).filter(rows)

    def label(self, index: int | None) -> str:
        """Return a class by the name that the model's card gives it, or by its number."""
        names = (
            self.manifest.model.labels if isinstance(self.manifest, RunManifest) else None
        ) or ()
        if index is None:
            return "-"
        return str(names[index]) if 0 <= index < len(names) else str(index)

    def file(self, name: str) -> bytes | None:
        """Return a file of the run; None where there is none, or one outside its folder."""
        try:
            place = (self.folder / name).resolve()
            inside = place.is_relative_to(self.folder.resolve())
            return read_file(place, TEXT) if inside else None
        except (OSError, RuntimeError, ValueError):  # no name of a file, or links in a circle
            return None


def read(folder: Path) -> Run:
    """Read what a command has left.

    Raises:
        RunError: it is not a run, did not finish or is damaged.
    """
    found = read_head(folder).command
    if found in EXPERIMENTS and not EXPERIMENTS[found].reported:
        raise RunError(f"{folder}: a {found} has no page; its result is in its summary.json")
    manifest, summary = read_summary(folder)
    if summary.of_runs or not isinstance(manifest, RunManifest):
        return Run(folder, manifest, summary, None)
    records = RecordFile(folder)
    if summary.command not in EXPERIMENTS:
        raise RunError(f"{folder}: one step of a worst case; the page is that of the whole run")
    if missing := {"sample", "side", "skipped"} - set(records.column_names):
        raise RunError(f"{folder}: a damaged run: its records lack {', '.join(sorted(missing))}")
    if manifest.request is None:
        raise RunError(f"{folder}: a damaged run: its manifest does not say what was asked for")
    return Run(folder, manifest, summary, records)
