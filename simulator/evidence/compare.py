"""Check an evidence bundle, and compare what it recorded with implementations that run here."""

from __future__ import annotations

import io
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator import registry
from simulator.audit import bundle
from simulator.audit.archive import Archive
from simulator.audit.bundle import Checked
from simulator.closing import Closing
from simulator.contract import Array, Backend, Offer, Stage
from simulator.contract.stage import STAGES
from simulator.errors import RunError, SimulatorError
from simulator.evidence import inputs
from simulator.evidence.document import MANIFEST, Evidence, Recorded, read
from simulator.evidence.inputs import Attempt
from simulator.evidence.match import Match, matched
from simulator.evidence.record import ARRAYS
from simulator.profile.implementations import Choice, Choices
from simulator.profile.modality import at
from simulator.profile.profile import Profile
from simulator.results.json_text import finite
from simulator.testing import Workshop, models, registered
from simulator.testing.subject import Subject, first, words
from simulator.testing.values import CannotMake

MOST_ARRAY = 2**26
"""Bytes of one recorded array at most."""
REFERENCE = "the ONNX reference evaluator"
MOST_TOTAL = 2**30
"""Bytes of all members together, unpacked."""
_SHA = re.compile(r"[0-9a-f]{64}")
_OWN = ("device", "threads", "idct")
"""Options that say where or by what arithmetic something runs, not what a profile asks of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A recording, and what is nearest to it here.

    Attributes:
        recorded: what was recorded.
        nearest: the nearest implementation of another backend, or of the same one with other
            options where those of the recording do not run here; of networks' outputs the ONNX
            reference evaluator. None: there is none here.
        same: the same backend with the same options. None: it does not run here.
    """

    recorded: Recorded
    nearest: Match | None
    same: Match | None


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a profile against a bundle.

    Attributes:
        name: of the section.
        stages: of those that the bundle recorded, the nearest recording and how near it is.
        missing: its other stages.
    """

    name: str
    stages: Mapping[str, tuple[Recorded, Match]]
    missing: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether all of it was recorded, and all bits are equal."""
        return (
            bool(self.stages) and not self.missing and all(m.exact for _, m in self.stages.values())
        )


class Bundle(Closing):
    """A bundle whose digests were found right; a context manager.

    Attributes:
        path: the file.
        sha256: of the file.
        members: how many it has.
        evidence: its manifest.
    """

    def __init__(
        self, path: Path, checked: Checked, evidence: Evidence, arrays: Mapping[str, Array]
    ) -> None:
        self.path, self.sha256, self.members = path, checked.sha256, checked.members
        self.evidence, self._arrays = evidence, arrays
        self._folder = tempfile.TemporaryDirectory()
        self._workshop = Workshop(Path(self._folder.name), registered())
        self._tried: dict[str, list[Attempt] | None] = {}
        self._made: dict[tuple[str, int, str], list[Subject]] = {}
        self._references: list[Attempt] | None = None

    def close(self) -> None:
        """Remove the model files that were made."""
        self._folder.cleanup()

    def rows(self, against: Sequence[str] = ()) -> Iterator[Row]:
        """Compare every recording with what runs here.

        Implementations that can do what was recorded come first, and none is tried after one that
        is equal: libraries that take seconds to import are then often not needed.

        Args:
            against: names of backends to compare with; by default every one that offers the stage.
        """
        name = self.evidence.backend
        others = against or [backend.name for backend in registered()]
        for recorded in self.evidence.recordings:
            own = [
                subject
                for subject in self._subjects(recorded.stage, name)
                if finite(dict(subject.options)) == recorded.options
            ]
            same = next(self._matches(recorded, own), None)
            if recorded.stage == Stage.RUNTIME:
                yield Row(recorded, self._reference(recorded), same)
                continue
            nearest: Match | None = None
            for match in self._others(recorded, [n for n in others if n != name or same is None]):
                nearest = match if nearest is None else min(nearest, match, key=lambda m: m.order)
                if match.exact:
                    break
            yield Row(recorded, nearest, same)

    def _others(self, recorded: Recorded, names: Sequence[str]) -> Iterator[Match]:
        """Try implementations, those that offer the recording's options first."""
        offered: list[tuple[Backend, Offer]] = []
        for name in names:
            with suppress(SimulatorError):
                backend = registry.backend(name)
                offered += [(backend, offer) for offer in backend.of(recorded.stage)]
        for backend, offer in sorted(offered, key=lambda pair: _unlike(recorded, *pair)):
            subjects = self._of(backend, offer)
            yield from self._matches(
                recorded, sorted(subjects, key=lambda subject: _contradicted(recorded, subject))
            )

    def sections(self, profile: Profile, choices: Choices) -> list[Section]:
        """Compare a profile's sections, those of stages that are recorded.

        Of a decoder its planes count where the profile reads planes, and its pixels elsewhere.
        """
        planes = at(profile.spec, ("color", "source")) == "planes"
        named: dict[str, list[str]] = {}
        for stage in choices:
            if inputs.is_recorded(stage):
                named.setdefault(STAGES[stage].section[0], []).append(stage)
        found = []
        for section, stages in named.items():
            pairs = {stage: self._nearest(choices[stage], planes) for stage in stages}
            got = {stage: pair for stage, pair in pairs.items() if pair is not None}
            missing = tuple(stage for stage in stages if stage not in got)
            found.append(Section(section, got, missing))
        return found

    def _nearest(self, choice: Choice, planes: bool) -> tuple[Recorded, Match] | None:
        """Return the recording that a profile's implementation is nearest to.

        Only recordings whose options do not contradict those of the profile count.
        """
        what = "planes" if planes else "rgb"
        subject = Subject(choice.backend, choice.offer, choice.options, self._workshop)
        pairs = []
        for recorded in self.evidence.recordings:
            if recorded.stage != choice.stage or recorded.what not in (what, "result"):
                continue
            if _agree(recorded, choice):
                pairs += [(recorded, match) for match in self._matches(recorded, [subject])]
        return min(pairs, key=lambda pair: pair[1].order, default=None)

    def _subjects(self, stage: str, name: str) -> list[Subject]:
        """Return what a backend has for a stage here; nothing where it cannot run."""
        with suppress(SimulatorError):
            backend = registry.backend(name)
            return [subject for offer in backend.of(stage) for subject in self._of(backend, offer)]
        return []

    def _of(self, backend: Backend, offer: Offer) -> list[Subject]:
        """Return an offer with each of its values; nothing where it cannot run."""
        key = backend.name, backend.of(offer.stage).index(offer), offer.stage
        if key not in self._made:
            self._made[key] = []
            with suppress(SimulatorError, CannotMake):
                registry.require(backend)
                self._made[key] = list(inputs.subjects(first(backend, offer, self._workshop)))
        return self._made[key]

    def _matches(self, recorded: Recorded, subjects: Sequence[Subject]) -> Iterator[Match]:
        for subject in subjects:
            if recorded.what not in inputs.recorded_kinds(subject):
                continue
            name = f"{subject.backend.name} {words(subject)}".strip()
            key = f"{recorded.stage} {recorded.what} {name}"
            if key not in self._tried:
                try:
                    self._tried[key] = inputs.attempts(subject, recorded.what)
                except (SimulatorError, CannotMake):
                    self._tried[key] = None
            if (found := self._tried[key]) is not None:
                yield matched(name, recorded, found, self._arrays)

    def _reference(self, recorded: Recorded) -> Match:
        if self._references is None:
            self._references = [
                Attempt(name, sha, (models.reference(model, x),))
                for model, given in inputs.networks().items()
                for name, (sha, x) in given.items()
            ]
        asked = [reference for reference in self._references if reference.name in recorded.inputs]
        return matched(REFERENCE, recorded, asked, self._arrays)


def _agree(recorded: Recorded, choice: Choice) -> bool:
    """Whether a recording does what a profile asks: equal options, but a library's own switches."""
    return all(
        recorded.options[name] == value
        for name, value in finite(dict(choice.options)).items()
        if name in recorded.options and name not in _OWN and not isinstance(value, list)
    )


def _unlike(recorded: Recorded, backend: Backend, offer: Offer) -> tuple[int, bool, str]:
    """How many options of a recording an offer does not have, and whether it needs an import."""
    lacking = sum(
        isinstance(admits, tuple) and recorded.options[name] not in finite(list(admits))
        for name, admits in offer.options.items()
        if name in recorded.options and name not in _OWN
    )
    imported = all(library.loaded for library in backend.libraries)
    return lacking, not imported, backend.name


def _contradicted(recorded: Recorded, subject: Subject) -> int:
    """How many options of a recording a subject has otherwise."""
    options = finite(dict(subject.options))
    return sum(
        options[name] != value
        for name, value in recorded.options.items()
        if name in options and name not in _OWN
    )


def where(recorded: Recorded) -> str:
    """Return on what part of a device something ran, as far as its options say it."""
    device = recorded.options.get("device")
    return "" if device is None else f"device={device}"


def load(path: Path) -> Bundle:
    """Open a bundle from anyone: nothing of it is run or unpacked to a disk.

    Raises:
        RunError: it is no bundle, is not whole, or holds what no bundle of ours does.
    """
    with Archive(path) as packed:
        checked = bundle.check(packed, (MANIFEST,))
        if checked.problems:
            more = f" and {len(checked.problems) - 1} more" if len(checked.problems) > 1 else ""
            raise RunError(f"{path}: {checked.problems[0]}{more}: not as it was written")
        evidence = read(packed)
        wanted = {
            sha
            for recording in evidence.recordings
            for shas in recording.arrays.values()
            for sha in shas
        }
        total = sum(packed.size(name) for name in packed.names)
        if total > MOST_TOTAL:
            raise RunError(f"{path}: {total:,} bytes unpacked; {MOST_TOTAL:,} at most")
        arrays = {sha: _array(packed, sha) for sha in sorted(wanted)}
    return Bundle(path, checked, evidence, arrays)


def _array(packed: Archive, sha: str) -> Array:
    """Read a member, which must be a plain array of exactly the bytes that its header says."""
    if not _SHA.fullmatch(sha):
        raise RunError(f"{packed.path}: {MANIFEST}: {sha[:80]!r} is no SHA-256")
    name = f"{ARRAYS}/{sha}.npy"
    file = io.BytesIO(packed.read(name, MOST_ARRAY))
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("another version of NPY")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        rest = file.read()
        if dtype.kind not in "biuf" or fortran or math.prod(shape) * dtype.itemsize != len(rest):
            raise ValueError(f"{dtype} of {shape} in {len(rest)} bytes")
        return np.frombuffer(rest, dtype).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise RunError(f"{packed.path}: {name} is no plain array: {error}") from error
