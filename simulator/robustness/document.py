"""Suites of conditions: what happens to the world, at which severities, for ``robustness``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from simulator.conditions.attacks.attack import Attack
from simulator.conditions.condition import AppliedCondition, under
from simulator.errors import ProfileError, UserError, unknown
from simulator.profile.document import Document
from simulator.profile.suite import Suite, read_suite
from simulator.profile.suite import load_suite as load_options
from simulator.statistics.bootstrap import Floats

CORRUPTIONS, NOISE, SEQUENCES = KINDS = "corruptions", "system_noise", "sequences"
"""The kinds of noise of a suite besides its categories of attacks."""
FOLDER = "conditions"
"""Below the folder of the built-in suites."""
Share = Annotated[float, Field(ge=0, le=1)]


class Reference(BaseModel):
    """Published figures of a model: errors for CE, flip probabilities for FR, uT5D for T5D.

    ``clean`` and ``errors`` are fractions: 1 less the metric, the mean over all severities.
    ``distances``, uT5D by sequence, may be left out: T5D is then not defined.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    source: str
    clean: Share
    errors: dict[str, Share] = {}
    flips: dict[str, Share] = {}
    distances: dict[str, Annotated[float, Field(ge=0, le=15)]] = {}


class SequenceSpec(BaseModel):
    """A perturbation sequence, whose frames are conditions: ``CONDITION:0``, ``CONDITION:1``, ...

    ``noise`` says that frames are independent draws, each compared with the first; ``difficulty``
    is then how strong it is, ``CONDITION:0,difficulty=2``. What moves is compared with the frame
    ``difficulty`` frames before.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    condition: str
    frames: Annotated[int, Field(ge=2)]
    noise: bool = False
    difficulty: Annotated[int, Field(ge=1)] = 1


class ConditionSuiteSpec(BaseModel):
    """The document.

    ``conditions`` are rows of the table by category; each is a list of conditions as written for
    ``--under``, from the mildest to the most severe. ``sequences`` are rows of a table of their
    own. ``where`` is added to each condition but attacks, which have the network's size: whether
    they act at the ``original`` size of an image, or as the published ImageNet-C and ImageNet-P
    were made. ``system_noise`` is a suite of ``sweep``: its options are measured on clean samples.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    source: str = ""
    where: Literal["original", "crop224"] = "original"
    conditions: dict[str, dict[str, list[str]]] = {}
    sequences: dict[str, SequenceSpec] = {}
    left_out_of_means: list[str] = []
    reference: Reference | None = None
    system_noise: str | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One row of the table: a condition at its severities.

    Attributes:
        name: in tables and gate rules.
        category: what it is listed under.
        levels: the condition at each severity, the mildest first.
    """

    name: str
    category: str
    levels: tuple[AppliedCondition, ...]

    @property
    def counted(self) -> tuple[AppliedCondition, ...]:
        """The levels that reach a stack: the others are in no mean."""
        return tuple(level for level in self.levels if level.condition.erased is None)

    def over(self, metrics: Mapping[tuple[str, str], Floats], side: str) -> Floats:
        """Return (severities, 1 + R + n): a stack's metric at each severity that counts."""
        return np.stack([metrics[side, level.condition.text] for level in self.counted])


@dataclass(frozen=True, slots=True)
class Frames:
    """One perturbation sequence."""

    name: str
    spec: SequenceSpec
    frames: tuple[AppliedCondition, ...]


@dataclass(frozen=True, slots=True)
class ConditionSuite:
    """A checked suite."""

    spec: ConditionSuiteSpec
    series: tuple[Series, ...]
    sequences: tuple[Frames, ...]
    path: Path
    noise: Suite | None = None

    def conditions(self) -> list[AppliedCondition]:
        """Return every condition once, those of frames last."""
        rows = [level for series in self.series for level in series.levels]
        frames = [frame for sequence in self.sequences for frame in sequence.frames]
        return list(
            {condition.condition.text: condition for condition in (*rows, *frames)}.values()
        )

    def only_frames(self) -> set[str]:
        """Return the texts of the conditions that are frames, and no level of a row."""
        rows = {level.condition.text for series in self.series for level in series.levels}
        return {condition.condition.text for condition in self.conditions()} - rows

    def categories(self) -> dict[str, list[str]]:
        """Return the categories of conditions that means count, each with their names."""
        found: dict[str, list[str]] = {}
        for one in self.series:
            if one.name not in self.spec.left_out_of_means:
                found.setdefault(one.category, []).append(one.name)
        return found

    def bound(self, bind: Callable[[AppliedCondition], AppliedCondition]) -> ConditionSuite:
        """Return the suite with every condition for a model."""
        series = (replace(one, levels=tuple(map(bind, one.levels))) for one in self.series)
        frames = (
            replace(sequence, frames=tuple(map(bind, sequence.frames)))
            for sequence in self.sequences
        )
        return replace(self, series=tuple(series), sequences=tuple(frames))


def attacks(series: Sequence[Series]) -> dict[str, list[Series]]:
    """Return the categories of a suite that hold nothing but attacks, each with its rows."""
    found: dict[str, list[Series]] = {}
    for one in series:
        found.setdefault(one.category, []).append(one)
    return {
        name: rows
        for name, rows in found.items()
        if all(isinstance(level.condition, Attack) for row in rows for level in row.levels)
    }


def load_suite(reference: str, only: Sequence[str] = ()) -> ConditionSuite:
    """Load a suite: a path with or without ``.yaml``, or a built-in name.

    Args:
        reference: of the suite.
        only: the parts that are taken: categories, ``sequences``, ``system_noise``; empty for all.

    Raises:
        UserError: it has no such part.
        ProfileError: it does not exist, is malformed, or names a condition that does not exist;
            each problem as ``file:line: key: what``.
    """
    spec, document = read_suite(reference, ConditionSuiteSpec, "suite of conditions", FOLDER)
    spec = _parts(spec, only) if only else spec
    problems: list[str] = []
    series = tuple(_series(spec, document, problems))
    sequences = tuple(_sequences(spec, document, problems))
    names = [one.name for one in series] + [sequence.name for sequence in sequences]
    problems += _misfits(spec, series, names, document)
    noise = _noise(spec, document, problems)
    if problems:
        raise ProfileError(problems)
    return ConditionSuite(spec, series, sequences, document.path, noise)


def _parts(spec: ConditionSuiteSpec, only: Sequence[str]) -> ConditionSuiteSpec:
    """Return what is left of a suite where only some of its parts are taken."""
    empty: dict[str, object] = {"sequences": {}, "system_noise": None}
    known = [*spec.conditions, *(name for name in empty if getattr(spec, name))]
    for name in only:
        if name not in known:
            raise UserError(f"--only: {unknown('part', name, known)}")
    conditions = {name: rows for name, rows in spec.conditions.items() if name in only}
    dropped = {name: nothing for name, nothing in empty.items() if name not in only}
    left = {row for rows in conditions.values() for row in rows}
    means = [name for name in spec.left_out_of_means if name in left | set(spec.sequences)]
    return spec.model_copy(update={"conditions": conditions, "left_out_of_means": means, **dropped})


def _noise(spec: ConditionSuiteSpec, document: Document, problems: list[str]) -> Suite | None:
    """Read the suite of the options: a name, or a path from the document's folder."""
    if spec.system_noise is None:
        return None
    beside = document.path.parent / spec.system_noise
    try:
        return load_options(str(beside) if beside.is_file() else spec.system_noise)
    except ProfileError as error:
        where = document.where(("system_noise",))
        problems += [f"{where}: system_noise: {problem}" for problem in error.problems]
        return None


def _series(spec: ConditionSuiteSpec, document: Document, problems: list[str]) -> Iterator[Series]:
    for category, rows in spec.conditions.items():
        for name, texts in rows.items():
            levels: list[AppliedCondition] = []
            for at, text in enumerate(texts):
                key: tuple[Any, ...] = ("conditions", category, name, at)
                try:
                    levels += [_placed(spec, text)]
                except UserError as error:
                    problems.append(f"{document.where(key)}: {name}: {text}: {error}")
            made = Series(name, category, tuple(levels))
            if levels and not made.counted:
                where = document.where(("conditions", category, name))
                problems.append(f"{where}: {name}: {levels[-1].condition.erased}; none is left")
            yield made


def _sequences(
    spec: ConditionSuiteSpec, document: Document, problems: list[str]
) -> Iterator[Frames]:
    for name, one in spec.sequences.items():
        frames: list[AppliedCondition] = []
        stronger = f",difficulty={one.difficulty}" if one.noise and one.difficulty > 1 else ""
        where = document.where(("sequences", name))
        try:
            for frame in range(one.frames):
                frames.append(_placed(spec, f"{one.condition}:{frame}{stronger}"))
        except UserError as error:
            text = f"{one.condition}:{len(frames)}{stronger}"
            problems.append(f"{where}: {name}: {text}: {error}")
        if one.difficulty >= one.frames and not one.noise:
            problems.append(f"{where}: {name}: difficulty: less than its {one.frames} frames")
        yield Frames(name, one, tuple(frames))


def _placed(spec: ConditionSuiteSpec, text: str) -> AppliedCondition:
    """Read a condition at the suite's place.

    Raises:
        UserError: it does not exist; the message does not repeat it.
    """
    whole = text if spec.where == "original" else f"{text},{spec.where}"
    try:
        found = under(text)
        if found is None or not isinstance(found.condition, Attack):
            found = under(whole)
    except UserError as error:
        words = str(error).removeprefix(f"--under {text}: ").removeprefix(f"--under {whole}: ")
        raise UserError(words) from error
    assert found is not None
    return found


def _misfits(
    spec: ConditionSuiteSpec, series: Sequence[Series], names: list[str], document: Document
) -> Iterator[str]:
    where = document.where(("conditions",))
    if not names:
        yield f"{where}: conditions: at least one is needed"
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"{where}: conditions: {name!r} is there twice; give one of them another name"
    yield from _misnamed(series, document)
    for category, rows in spec.conditions.items():
        for name, texts in rows.items():
            if not texts:
                place = document.where(("conditions", category, name))
                yield f"{place}: {name}: a list of conditions is needed, the mildest first"
    for name in spec.left_out_of_means:
        if name not in names:
            place = document.where(("left_out_of_means",))
            yield f"{place}: left_out_of_means: {unknown('condition', name, names)}"
    if spec.reference is None:
        return
    levels = [name for name in names if name not in spec.sequences]
    frames, distances = list(spec.sequences), spec.reference.distances
    for key, word, wanted, given in (
        ("errors", "error", levels, spec.reference.errors),
        ("flips", "flip probability", frames, spec.reference.flips),
        ("distances", "distance", frames if distances else [], distances),
    ):
        if missing := [name for name in wanted if name not in given]:
            place = document.where(("reference", key))
            yield f"{place}: reference: no {word} of {', '.join(missing)}"


def _misnamed(series: Sequence[Series], document: Document) -> Iterator[str]:
    """Say which categories of attacks are none that tables can have."""
    for category, group in attacks(series).items():
        where = f"{document.where(('conditions', category))}: {category}"
        if category in KINDS:
            yield f"{where}: another kind of noise has this name; rename these attacks"
        if len({len(one.levels) for one in group}) > 1:
            yield f"{where}: each attack needs as many budgets as the others, for WCAR"
