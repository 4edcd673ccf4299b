"""An audit as its bundle has it: what was asked, and what was found of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from simulator.audit import bundle
from simulator.audit.answers import SideAnswers, read_answers
from simulator.audit.archive import Archive
from simulator.audit.bundle import MOST_RECORDS, MOST_TEXT
from simulator.audit.document import TRAIN, Audit, load_audit
from simulator.errors import ProfileError, RunError
from simulator.experiments.common import stacks_of
from simulator.latency.rounds import LATENCIES
from simulator.pipeline.stack import ResolvedProfile
from simulator.results.json_text import JsonObject
from simulator.results.layout import (
    DOCUMENT,
    MANIFEST,
    PAIRS_FOLDER,
    PROFILES_FOLDER,
    RECORDS,
    SUMMARY,
    TAILS_FOLDER,
)
from simulator.results.shared import Summary
from simulator.results.summaries import parse

Key = tuple[str, str]
"""A model and a stack."""


class RecordedAudit:
    """The content of an intact bundle, whoever has written it.

    A place in it is ``pairs/MODEL/STACK``, or ``tail/MODEL/STACK`` for the rounds of a pair.

    Args:
        packed: the bundle.
        scratch: an empty folder, to which the document and the profiles are written.

    Raises:
        RunError: the document or a profile is missing, or not such a document.
    """

    def __init__(self, packed: Archive, scratch: Path) -> None:
        self.path, self._packed, self._scratch = packed.path, packed, scratch
        self._summaries: dict[str, Summary] = {}
        document = scratch / DOCUMENT
        document.write_bytes(packed.read(DOCUMENT, MOST_TEXT))
        try:
            self.audit: Audit = load_audit(document)
        except ProfileError as error:
            lines = [line.replace(f"{scratch}/", f"{packed.path}: ") for line in error.problems]
            raise RunError("\n".join(lines)) from error
        (scratch / PROFILES_FOLDER).mkdir()
        for place in self._profiles.values():
            name = place.relative_to(scratch).as_posix()
            place.write_bytes(packed.read(name, MOST_TEXT))

    @property
    def _profiles(self) -> dict[str, Path]:
        names = (TRAIN, *self.audit.spec.deploy)
        return {name: self._scratch / PROFILES_FOLDER / f"{name}.yaml" for name in names}

    def stacks(self, overrides: Sequence[str] = ()) -> dict[str, ResolvedProfile]:
        """Load the stacks.

        Raises:
            UserError: a profile cannot be used here, or an override names no stack.
        """
        return stacks_of({name: str(path) for name, path in self._profiles.items()}, overrides)

    @cached_property
    def manifest(self) -> JsonObject:
        """The audit's own manifest, as it is written."""
        return bundle.read_json(self._packed, MANIFEST)

    @cached_property
    def reported(self) -> JsonObject:
        """The audit's own summary, as it is written."""
        return bundle.read_json(self._packed, SUMMARY)

    @property
    def places(self) -> list[str]:
        """Every place that has a summary."""
        names = (name.split("/") for name in self._packed.names)
        return [
            "/".join(parts[:3])
            for parts in names
            if len(parts) == 4 and parts[0] in (PAIRS_FOLDER, TAILS_FOLDER) and parts[3] == SUMMARY
        ]

    def where(self, place: str) -> str:
        """Return what a place is called in messages."""
        return f"{self.path}: {place}"

    def read_json(self, name: str) -> JsonObject:
        """Return a member that is a JSON object."""
        return bundle.read_json(self._packed, name)

    def summary(self, place: str) -> Summary:
        """Return the summary at a place, which is read once.

        Raises:
            RunError: it is none of this version.
        """
        if place not in self._summaries:
            name = f"{place}/{SUMMARY}"
            self._summaries[place] = parse(self._packed.read(name, MOST_TEXT), self.where(name))
        return self._summaries[place]

    def records(self, place: str) -> bytes:
        """Return ``records.parquet`` of a place."""
        return self._packed.read(f"{place}/{RECORDS}", MOST_RECORDS)

    def answers(self, place: str) -> dict[str, SideAnswers]:
        """Return the answers at a place, by side.

        Raises:
            RunError: they are not those of its manifest.
        """
        manifest = self.read_json(f"{place}/{MANIFEST}")
        return read_answers(self.records(place), manifest, self.where(place))

    def latencies(self, place: str) -> bytes | None:
        """Return ``latencies.parquet`` of a place; None of a version that kept none."""
        name = f"{place}/{LATENCIES}"
        return self._packed.read(name, MOST_RECORDS) if name in self._packed.names else None
