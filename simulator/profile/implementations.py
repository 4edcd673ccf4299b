"""Check every section of a profile against the backend that it names: a valid profile can run."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import NoneType
from typing import Any

from pydantic import BaseModel

from simulator import registry
from simulator.contract import Admits, Backend, File, KeepList, Offer, Pairs, Stage, StageSpec
from simulator.contract.stage import STAGES
from simulator.errors import ProfileError, UserError, shortened, unknown
from simulator.files import hash_file
from simulator.profile.document import Key
from simulator.profile.load import Profile
from simulator.profile.modality import at, extra_specs, filled


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
    options: Mapping[str, Any]
    facts: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)

    def make(self, *args: Any) -> Any:
        """Build the implementation; this imports its library."""
        return registry.make(self.backend, self.offer, *args, self.options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, because another process has its own libraries."""
        number = self.backend.of(self.stage).index(self.offer)
        parts = (self.stage, self.backend.name, number, dict(self.options), self.facts)
        return again, (*parts, dict(self.files))

    def identity(self) -> dict[str, Any]:
        """Return what distinguishes this choice from others, for cache keys and digests.

        A file is its content, wherever it is.
        """
        told = {**self.options, **{name: f"sha256:{sha}" for name, sha in self.files.items()}}
        return {
            "stage": self.stage,
            "backend": self.backend.name,
            "options": {k: told[k] for k in sorted(told)},
            "package": registry.package(self.backend.name),
            "versions": registry.versions(self.backend),
        }


def again(
    stage: str,
    name: str,
    number: int,
    options: dict[str, Any],
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
    for spec in filled(profile.spec.modality):
        section = at(profile.spec, spec.section)
        if section is None:
            continue
        found = {key[-1]: at(profile.spec, key) for key in spec.shared}
        shared = {name: value for name, value in found.items() if value is not None}
        try:
            choices[spec.name] = _with_files(_held(spec, section, shared))
        except UserError as error:
            problems += [line for _, line in _lines(spec, error, profile.where)]
    problems += type(profile.spec).problems(profile, choices)
    precision, runtime = profile.spec.precision, choices.get(Stage.RUNTIME)
    ready = precision.storage == "fp32" or precision.cast or precision.quantizer
    given = Stage.EXPORT not in choices and ("tflite", "gguf", "ctranslate2", "recording")
    if not ready and runtime and runtime.offer.make.takes not in (given or ()):
        problems.append(
            f"{profile.where(('precision', 'storage'))}: precision.storage: {precision.storage} "
            "needs a cast or a quantizer that makes it"
        )
    problems += _formats(profile, choices)
    problems += _calibration(profile, choices)
    problems += _adaptation(profile, choices)
    problems += _batch(profile, choices)
    if problems:
        raise ProfileError(problems)
    return choices


def extra_stages(profile: Profile, choices: Choices) -> list[tuple[StageSpec, Choice]]:
    """Return the stages of other packages that a profile has, in pipeline order.

    Each runs after the step ``spec.after``; ``getattr(choice.make(), spec.calls[0])`` takes that
    step's value and returns its own.
    """
    specs = extra_specs(profile.spec.modality)
    return [(spec, choices[spec.name]) for spec in specs if spec.name in choices]


def problems_of(modality: str, values: Mapping[str, Any], where: Where, skip: list[Key]) -> Lines:
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
        written, inside = _get(values, spec.section), len(spec.section)
        broken = [key for key in skip if key and _overlap(key, spec.section)]
        if not isinstance(written, Mapping) or any(len(key) <= inside for key in broken):
            continue
        leave = {key[inside] for key in broken} | {key[-1] for key in spec.shared}
        shared = {key[-1]: _get(values, key) for key in spec.shared if key not in skip}
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


def _get(values: Any, key: Key) -> Any:
    for part in key:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _overlap(key: Key, section: Key) -> bool:
    """Whether one key is inside the other."""
    length = min(len(key), len(section))
    return key[:length] == section[:length]


def _held(spec: StageSpec, section: BaseModel, shared: dict[str, Any]) -> Choice:
    """Check one section against its backend; see :func:`implementation`."""
    values = section.model_dump(exclude={"backend", *spec.own})
    written = {name: value for name, value in values.items() if value is not None}
    backend: str = section.backend  # type: ignore[attr-defined]
    return _remembered(_Asked(spec.name, registry.backend(backend), written | shared))


class _Asked:
    """A stage, its backend and its fields; equal where they are written alike."""

    def __init__(self, stage: str, backend: Backend, fields: Mapping[str, Any]) -> None:
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
            written = shortened(_word(choice.options[name]))
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


def _formats(profile: Profile, choices: Choices) -> list[str]:
    """Check that each tool from the exporter to the runtime accepts the format it receives."""
    if Stage.RUNTIME not in choices or choices[Stage.RUNTIME].offer.make.takes == "recording":
        return []
    runtime, problems = choices[Stage.RUNTIME].offer.make, []
    exporter = choices.get(Stage.EXPORT)
    format = exporter.offer.make.gives if exporter else runtime.takes
    for stage, part in ((Stage.CAST, "cast"), (Stage.QUANTIZE, "quantizer")):
        maker = choices.get(stage)
        if maker is None:
            continue
        if maker.offer.make.format != format:
            key = ("precision", part, "backend")
            problems.append(
                f"{profile.where(key)}: {'.'.join(key)}: {maker.backend.name} works on "
                f"{maker.offer.make.format} files, but here the model is {format}"
            )
        format = getattr(maker.offer.make, "gives", None) or format
    if not problems and format not in (runtime.takes, getattr(runtime, "also_takes", None)):
        place = ("runtime", "exporter" if exporter else "backend")
        problems.append(
            f"{profile.where(place)}: {'.'.join(place)}: {profile.spec.runtime.backend} opens "
            f"{runtime.takes} files, but the profile makes a {format} file"
        )
    return problems


def _calibration(profile: Profile, choices: Choices) -> list[str]:
    """Check that a quantizer has calibration samples just where it needs them."""
    quantizer = profile.spec.precision.quantizer
    if quantizer is None or Stage.QUANTIZE not in choices:
        return []
    choice = choices[Stage.QUANTIZE]
    if choice.offer.make.calibrates == (quantizer.calibration is not None):
        return []
    key = ("precision", "quantizer", "calibration")
    name, needs = choice.backend.name, choice.offer.make.calibrates
    what = f"required by {name}" if needs else f"{name} needs none here; leave it out"
    return [f"{profile.where(key)}: {'.'.join(key)}: {what}"]


def _adaptation(profile: Profile, choices: Choices) -> list[str]:
    """Check that what adapts computes with the runtime of the profile, on the same network."""
    adapter, runtime = choices.get(Stage.ADAPT), choices.get(Stage.RUNTIME)
    if adapter is None or runtime is None:
        return []
    name, inside = adapter.backend.name, adapter.offer.make.runs_in
    if runtime.backend.name not in inside:
        key, what = "backend", f"{name} adapts networks in {' or '.join(inside)}, not in "
        what += f"{runtime.backend.name}; use runtime.backend: {inside[0]}"
    elif Stage.EXPORT not in choices:
        key, what = "exporter", f"{name} adapts the card's ONNX file, which {runtime.backend.name} "
        what += f"runs too where the profile says runtime.exporter: {{backend: {name}}}"
    else:
        return []
    return [f"{profile.where(('runtime', key))}: runtime.{key}: {what}"]


def _batch(profile: Profile, choices: Choices) -> list[str]:
    """Check that the runtime takes the batches that a profile asks for."""
    asked, runtime = profile.spec.runtime, choices.get(Stage.RUNTIME)
    if asked.samples == 1 or runtime is None:
        return []
    name, where = runtime.backend.name, f"{profile.where(('runtime', 'batch'))}: runtime.batch: "
    if Stage.ADAPT in choices:
        return [f"{where}a network that adapts has its own, runtime.adaptation.batch"]
    kind = "dynamic" if asked.is_dynamic else "fixed"
    takes = batches_of(runtime.offer)
    if kind in takes:
        return []
    able = [
        backend.name
        for backend in registry.backends()
        if any(kind in batches_of(offer) for offer in backend.of(Stage.RUNTIME))
    ]
    lacks = f"a {kind} batch" if takes else "several samples at once"
    return [f"{where}{name} does not take {lacks} here; these do: {', '.join(able)}"]


def batches_of(offer: Offer) -> tuple[str, ...]:
    """Return the batches that a runtime takes; a recording takes none."""
    found: tuple[str, ...] = getattr(offer.make, "batches", ())
    return found


def implementation(stage: str, backend: Backend, fields: Mapping[str, Any]) -> Choice:
    """Find the offer of a backend that supports the values of all fields.

    Raises:
        UserError: there is none; the message has one line per problem of the closest offer, each
            with the field, a tab, and the problem.
    """
    offers = backend.of(stage)
    if not offers:
        able = [b.name for b in registry.backends() if b.of(stage)]
        raise UserError(f"\t{backend.name} does not {stage}; these do: {', '.join(able)}")
    fitting = [offer for offer in offers if _fits(offer, fields)]
    if not fitting:
        nearest = min((_mismatches(backend, offer, fields) for offer in offers), key=len)
        raise UserError("\n".join(nearest))
    offer = fitting[0]
    facts = tuple(name for name in offer.options if name not in fields)
    filled = {name: _only(offer.options[name]) for name in facts}
    for name in facts:
        others = [_only(other.options[name]) for other in fitting if name in other.options]
        if name not in ("device", *backend.may_be_left_out) and any(
            value != filled[name] for value in others
        ):
            offered = _words(tuple(dict.fromkeys(others)))
            raise UserError(f"{name}\trequired by {backend.name}: {offered}")
    return Choice(stage, backend, offer, dict(fields) | filled, facts)


def settled(choice: Choice, values: Mapping[str, Any]) -> Choice:
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


def _fits(offer: Offer, fields: Mapping[str, Any]) -> bool:
    """Whether :func:`_mismatches` finds nothing; without its words, which take most of its time."""
    words = STAGES[offer.stage].words
    return all(
        name in offer.options
        and ((isinstance(value, str) and value in words) or _admitted(value, offer.options[name]))
        for name, value in fields.items()
    ) and not any(
        name not in fields and _needed(name, admits) for name, admits in offer.options.items()
    )


def _needed(name: str, admits: Admits) -> bool:
    """Whether a profile must have a field: it has several values, or its only device is no CPU."""
    implied = _only(admits)
    return implied is None or (name == "device" and implied != "cpu")


def _mismatches(backend: Backend, offer: Offer, fields: Mapping[str, Any]) -> list[str]:
    problems, words = [], STAGES[offer.stage].words
    for name, value in fields.items():
        if name not in offer.options:
            problems.append(f"{name}\t{_no_such_field(backend, offer, name)}")
        elif isinstance(value, str) and value in words:
            continue
        elif not _admitted(value, offer.options[name]):
            admits = offer.options[name]
            offered = _words(admits) if isinstance(admits, tuple) else str(admits)
            known = admits if isinstance(admits, tuple) else ()
            near = difflib.get_close_matches(str(value), map(str, known), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            problems.append(
                f"{name}\t{backend.name} offers {offered} here, got {_word(value)}{hint}"
            )
    for name, admits in offer.options.items():
        if name not in fields and _needed(name, admits):
            offered = _words(admits) if isinstance(admits, tuple) else str(admits)
            problems.append(f"{name}\trequired by {backend.name}: {offered}")
    return problems


def _no_such_field(backend: Backend, offer: Offer, name: str) -> str:
    """Return a message that suggests a similar field, or another backend with this field."""
    spec = STAGES[offer.stage]
    has = {field for other in backend.of(offer.stage) for field in other.options}
    has = {"backend", *spec.own, *has} - {key[-1] for key in spec.shared}
    if name not in has and difflib.get_close_matches(name, has, n=1):
        return unknown("key", name, has)
    return f"{backend.name} has no such field{' here' * (name in has)}; leave it out"


def _admitted(value: Any, admits: Admits) -> bool:
    """Whether a value is supported; true and 1 are different values."""
    alike = [one for one in admits if one == value] if isinstance(admits, tuple) else []
    kinds = {isinstance(one, bool) for one in alike}
    return value in admits and (not kinds or isinstance(value, bool) in kinds)


def _only(admits: Admits) -> Any:
    """Return the only value of a field, which a profile may omit; None if it has several."""
    if isinstance(admits, Pairs):
        return {}
    if isinstance(admits, KeepList):
        return {"op_types": [], "nodes": [], "reason": ""}
    return admits[0] if isinstance(admits, tuple) and len(admits) == 1 else None


def _word(value: object) -> str:
    word = str(value).lower() if isinstance(value, bool) else str(value)
    return word if word.isprintable() else repr(word)


def _words(values: tuple[Any, ...]) -> str:
    return ", ".join(_word(value) for value in values)
