"""Check every section of a profile against the backend that it names: a valid profile can run."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import NoneType
from typing import Any

from pydantic import BaseModel

from simulator import registry
from simulator.contract import Backend, File, Offer, Options, Stage, StageSpec
from simulator.errors import ProfileError, UserError, shortened
from simulator.files import hash_file
from simulator.profile.agreement import disagreements
from simulator.profile.document import Key, Values, inside
from simulator.profile.fit import fits, mismatches, only, shown, told
from simulator.profile.modality import at, extra_specs, filled, steps_of_front_end
from simulator.profile.profile import Profile


@dataclass(frozen=True, slots=True)
class Choice:
    """One implementation with all its options.

    Attributes:
        stage: the stage that it implements.
        backend: the backend that offers it.
        offer: the chosen offer of that backend.
        options: every field of the offer with its value.
        facts: the fields that the profile omits because the offer has only one value for them.
        files: SHA-256 of the files that options name, by field.
    """

    stage: str
    backend: Backend
    offer: Offer
    options: Options
    facts: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)

    def require(self) -> None:
        """Make sure that it can run here; a worker's own Python is asked when it opens.

        Raises:
            MissingLibrary: the message says what is missing and how to install it.
        """
        registry.require(self.backend)
        if self.offer.present is not None and registry.home(self.backend.name) is None:
            self.offer.present()

    def make(self, *args: Any) -> Any:
        """Build the implementation; this imports its library."""
        return registry.make(self.backend, self.offer, *args, self.options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, because another process has its own libraries."""
        number = self.backend.of(self.stage).index(self.offer)
        parts = (self.stage, self.backend.name, number, dict(self.options), self.facts)
        return again, (*parts, dict(self.files))

    @property
    def is_apart(self) -> bool:
        """Whether it runs in a worker process."""
        return registry.is_apart(self.backend, self.offer)

    def identity(self, among: Collection[str] | None = None) -> dict[str, object]:
        """Return what distinguishes this choice from others, for cache keys and digests.

        A file is its content, wherever it is.

        Args:
            among: the options that count; all by default.
        """
        told = {**self.options, **{name: f"sha256:{sha}" for name, sha in self.files.items()}}
        counted = told if among is None else told.keys() & set(among)
        return {
            "stage": self.stage,
            "backend": self.backend.name,
            "options": {name: told[name] for name in sorted(counted)},
            "package": registry.BACKENDS.package(self.backend.name),
            "versions": registry.versions(self.backend),
        }


def again(
    stage: str,
    name: str,
    number: int,
    options: Options,
    facts: tuple[str, ...],
    files: dict[str, str],
) -> Choice:
    """Rebuild a choice that was pickled in another process; ``Choice.__reduce__`` has its parts."""
    backend = registry.backend(name)
    return Choice(stage, backend, backend.of(stage)[number], options, facts, files)


Choices = Mapping[str, Choice]
Where = Callable[[Key], str]
Lines = list[tuple[Key, str]]
"""Problems, each with the key that it is about."""


def choose(profile: Profile) -> Choices:
    """Find the implementation of every section of a profile.

    Raises:
        ProfileError: a backend is unknown, or does not offer what the profile says; it lists
            all problems.
    """
    choices: dict[str, Choice] = {}
    problems: list[str] = []
    described = _described(profile)
    for spec in filled(profile.spec.modality):
        section = at(profile.spec, spec.section)
        if section is None or spec.axis in described:
            continue
        found = {key[-1]: at(profile.spec, key) for key in spec.shared}
        shared = {name: value for name, value in found.items() if value is not None}
        try:
            choices[spec.name] = _with_files(_held(spec, section, shared))
        except UserError as error:
            problems += [line for _, line in _lines(spec, error, profile.where)]
    problems += type(profile.spec).problems(profile, choices)
    problems += disagreements(profile, choices)
    if problems:
        raise ProfileError(problems)
    return choices


def _described(profile: Profile) -> tuple[str, ...]:
    """The axes that a profile only describes: its front end is not ours."""
    if profile.spec.front_end is None:
        return ()
    return steps_of_front_end(profile.spec.modality)


def extra_stages(profile: Profile, choices: Choices) -> list[tuple[StageSpec, Choice]]:
    """Return the stages of other packages that a profile has, in pipeline order.

    Each runs after the step ``spec.after``; ``getattr(choice.make(), spec.calls[0])`` takes that
    step's value and returns its own.
    """
    specs = extra_specs(profile.spec.modality)
    return [(spec, choices[spec.name]) for spec in specs if spec.name in choices]


def problems_of(modality: str, values: Values, where: Where, skip: list[Key]) -> Lines:
    """Check the sections of a document that failed validation against their backends.

    Args:
        modality: of the document.
        values: the merged document.
        where: gives ``file:line`` of a key.
        skip: the keys that are already known to be wrong.

    Returns:
        One line per problem.
    """
    lines: Lines = []
    for spec in filled(modality):
        written, depth = inside(values, spec.section), len(spec.section)
        broken = [key for key in skip if key and _overlap(key, spec.section)]
        if not isinstance(written, Mapping) or any(len(key) <= depth for key in broken):
            continue
        leave = {key[depth] for key in broken} | spec.shared_fields
        shared = {key[-1]: inside(values, key) for key in spec.shared if key not in skip}
        fields = {
            name: value
            for name, value in {**written, **shared}.items()
            if name not in ("backend", *spec.own)
            and (name in shared or name not in leave)
            and not isinstance(value, (NoneType, Mapping))
        }
        name = written.get("backend")
        if isinstance(name, str):
            try:
                implementation(spec.name, registry.backend(name), fields)
            except UserError as error:
                lines += _lines(spec, error, where, [str(field) for field in leave])
    return lines


def _overlap(key: Key, section: Key) -> bool:
    """Whether one key is inside the other."""
    length = min(len(key), len(section))
    return key[:length] == section[:length]


def _held(spec: StageSpec, section: BaseModel, shared: Options) -> Choice:
    """Check one section against its backend; see :func:`implementation`."""
    values = section.model_dump(exclude={"backend", *spec.own})
    written = {name: value for name, value in values.items() if value is not None}
    backend: str = section.backend  # type: ignore[attr-defined]
    return _remembered(_Asked(spec.name, registry.backend(backend), {**written, **shared}))


class _Asked:
    """A stage, its backend and its fields; equal where they are written alike."""

    def __init__(self, stage: str, backend: Backend, fields: Options) -> None:
        self.stage, self.backend, self.fields = stage, backend, fields
        self._key = stage, id(backend), repr(fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=4096)
def _remembered(asked: _Asked) -> Choice:
    """Return :func:`implementation`: a search asks for the same ones thousands of times."""
    return implementation(asked.stage, asked.backend, asked.fields)


def _with_files(choice: Choice) -> Choice:
    """Read the files that a section names.

    Raises:
        UserError: one cannot be read; a line for each, with the field, a tab, and the problem.
    """
    named = [name for name, admits in choice.offer.options.items() if isinstance(admits, File)]
    if not named:
        return choice
    paths = {name: os.path.abspath(choice.options[name]) for name in named}
    digests, problems = {}, []
    for name in named:
        try:
            digests[name] = hash_file(paths[name])
        except OSError as error:
            written = shortened(shown(choice.options[name]))
            reason = f"cannot be read: {error.strerror or error}"
            problems.append(f"{name}\t{choice.backend.name}: {written} {reason}")
    if problems:
        raise UserError("\n".join(problems))
    return replace(choice, options={**choice.options, **paths}, files=digests)


def _lines(spec: StageSpec, error: UserError, where: Where, leave: Sequence[str] = ()) -> Lines:
    """Return what is wrong with a section, one line per field, without the fields in *leave*."""
    lines: Lines = []
    for problem in str(error).splitlines():
        field, _, what = problem.rpartition("\t")
        if field not in leave:
            key = (*spec.section, field or "backend")
            lines.append((key, f"{where(key)}: {'.'.join(key)}: {what}"))
    return lines


def implementation(stage: str, backend: Backend, fields: Options) -> Choice:
    """Find the offer of a backend that supports the values of all fields.

    Raises:
        UserError: there is none; the message has one line per problem of the closest offer, each
            with the field, a tab, and the problem.
    """
    offers = backend.of(stage)
    if not offers:
        if backend.of(Stage.FRONT_END) and stage != Stage.RUNTIME:
            raise UserError(
                f"\t{backend.name} makes the network's input as a whole: write front_end: "
                f"{{backend: {backend.name}, …}}, and leave this section as it describes it"
            )
        able = [b.name for b in registry.backends() if b.of(stage)]
        raise UserError(f"\t{backend.name} does not {stage}; these do: {', '.join(able)}")
    fitting = [offer for offer in offers if fits(offer, fields)]
    if not fitting:
        nearest = min((mismatches(backend, offer, fields) for offer in offers), key=len)
        raise UserError("\n".join(nearest))
    offer = fitting[0]
    facts = tuple(name for name in offer.options if name not in fields)
    filled = {name: only(offer.options[name]) for name in facts}
    for name in facts:
        others = [only(other.options[name]) for other in fitting if name in other.options]
        if name not in ("device", *backend.may_be_left_out) and any(
            value != filled[name] for value in others
        ):
            offered = told(tuple(dict.fromkeys(others)))
            raise UserError(f"{name}\trequired by {backend.name}: {offered}")
    return Choice(stage, backend, offer, dict(fields) | filled, facts)


def settled(choice: Choice, values: Options) -> Choice:
    """Return a choice with values in place of the words that the model card explains.

    Args:
        choice: some of its options are words (:attr:`StageSpec.words`).
        values: by field; None takes a field away.

    Raises:
        UserError: the backend does not offer these values; a line for each field.
    """
    written = {name: value for name, value in choice.options.items() if name not in choice.facts}
    wanted = {name: value for name, value in {**written, **values}.items() if value is not None}
    try:
        return implementation(choice.stage, choice.backend, wanted)
    except UserError as error:
        lines = [line.replace("\t", ": ") for line in str(error).splitlines()]
        raise UserError("; ".join(lines)) from error
