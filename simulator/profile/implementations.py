"""Valid means it will run: every section is held against the backend that it names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from simulator import registry
from simulator.contract import Admits, Backend, KeepList, Offer, Pairs, Stage
from simulator.errors import ProfileError, UserError
from simulator.profile.document import Key
from simulator.profile.load import Profile


@dataclass(frozen=True, slots=True)
class Choice:
    """One implementation, with every option that it needs.

    Attributes:
        stage: the place that it fills.
        backend: who offers it.
        offer: which of the backend's offers it is.
        options: every field of the offer with its value.
        facts: the fields that were not written, because the offer has one value for them.
    """

    stage: Stage
    backend: Backend
    offer: Offer
    options: Mapping[str, Any]
    facts: tuple[str, ...]

    def make(self, *args: Any) -> Any:
        """Build the implementation; its library is imported here at the latest."""
        return registry.make(self.backend, self.offer, *args, self.options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by name: another process has its own libraries."""
        number = self.backend.of(self.stage).index(self.offer)
        return _again, (self.stage, self.backend.name, number, dict(self.options), self.facts)

    def identity(self) -> dict[str, Any]:
        """Return what tells this choice from another, for keys and digests."""
        return {
            "stage": str(self.stage),
            "backend": self.backend.name,
            "options": {k: self.options[k] for k in sorted(self.options)},
            "package": registry.package(self.backend.name),
            "versions": registry.versions(self.backend),
        }


def _again(
    stage: Stage, name: str, number: int, options: dict[str, Any], facts: tuple[str, ...]
) -> Choice:
    """Find in this process the offer that a choice was made of in another."""
    backend = registry.backend(name)
    return Choice(stage, backend, backend.of(stage)[number], options, facts)


Choices = Mapping[Stage, Choice]
PLACES = ("device", "api", "provider", "io_binding", "target")
"""Fields that say where or by which door; not written, they are the CPU's and the first one's."""


def choose(profile: Profile) -> Choices:
    """Find the implementation of every section of a profile.

    Raises:
        ProfileError: a backend is unknown, or does not offer what is written; all at once.
    """
    choices: dict[Stage, Choice] = {}
    problems: list[str] = []
    for stage, key, name, fields in _sections(profile):
        try:
            choices[stage] = implementation(stage, registry.backend(name), fields)
        except UserError as error:
            for problem in str(error).splitlines():
                field, _, what = problem.rpartition("\t")
                full = (*key, field or "backend")
                problems.append(f"{profile.where(full)}: {'.'.join(map(str, full))}: {what}")
    color = profile.spec.color
    decoder = choices.get(Stage.DECODE)
    if color.source == "planes" and decoder and not gives_planes(decoder.offer):
        problems.append(
            f"{profile.where(('color', 'source'))}: color.source: "
            f"{profile.spec.decode.backend} does not give YUV planes; use source: encode"
        )
    resizer = choices.get(Stage.RESIZE)
    if profile.spec.resize.domain == "yuv" and resizer and resizer.offer.make.gives is np.float32:
        problems.append(
            f"{profile.where(('resize', 'domain'))}: resize.domain: "
            f"{profile.spec.resize.backend} gives float32 and YUV planes are uint8; use domain: rgb"
        )
    precision, runtime = profile.spec.precision, choices.get(Stage.RUNTIME)
    ready = precision.storage == "fp32" or precision.cast or precision.quantizer
    given = Stage.EXPORT not in choices and ("tflite", "recording")
    if not ready and runtime and runtime.offer.make.takes not in (given or ()):
        problems.append(
            f"{profile.where(('precision', 'storage'))}: precision.storage: {precision.storage} "
            "needs a cast or a quantizer that makes it"
        )
    problems += _formats(profile, choices)
    if problems:
        raise ProfileError(problems)
    return choices


def _formats(profile: Profile, choices: Choices) -> list[str]:
    """Follow the model file from the exporter to the runtime: each must take what it is given."""
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
                f"{maker.offer.make.format} files, and here the model is {format}"
            )
        format = getattr(maker.offer.make, "gives", None) or format
    if not problems and format not in (runtime.takes, getattr(runtime, "also_takes", None)):
        place = ("runtime", "exporter" if exporter else "backend")
        problems.append(
            f"{profile.where(place)}: {'.'.join(place)}: {profile.spec.runtime.backend} opens "
            f"{runtime.takes} files, and the profile makes a {format} file"
        )
    return problems


def gives_planes(decoder: Offer) -> bool:
    """Whether a decoder hands out a JPEG's own YUV planes; nothing is imported."""
    return bool(getattr(decoder.make, "gives_planes", False))


def _sections(profile: Profile) -> Iterator[tuple[Stage, Key, str, dict[str, Any]]]:
    spec = profile.spec

    def written(section: BaseModel, *leave: str) -> dict[str, Any]:
        values = section.model_dump(exclude={"backend", *leave})
        return {name: value for name, value in values.items() if value is not None}

    yield Stage.DECODE, ("decode",), spec.decode.backend, written(spec.decode)
    format = {"format": spec.color.format}
    if spec.color.encode is not None:
        encode = spec.color.encode
        yield Stage.ENCODE, ("color", "encode"), encode.backend, written(encode) | format
    if spec.color.convert is not None:
        convert = spec.color.convert
        yield Stage.CONVERT, ("color", "convert"), convert.backend, written(convert) | format
    yield Stage.RESIZE, ("resize",), spec.resize.backend, written(spec.resize, "domain")
    precision = spec.precision
    if precision.cast is not None:
        fields = written(precision.cast) | {"storage": precision.storage}
        yield Stage.CAST, ("precision", "cast"), precision.cast.backend, fields
    if precision.quantizer is not None:
        quantizer = precision.quantizer
        key = ("precision", "quantizer")
        yield Stage.QUANTIZE, key, quantizer.backend, written(quantizer, "calibration")
    if spec.runtime.exporter is not None:
        exporter = spec.runtime.exporter
        yield Stage.EXPORT, ("runtime", "exporter"), exporter.backend, written(exporter)
    fields = written(spec.runtime, "exporter")
    fields |= {"storage": precision.storage, "compute": precision.compute}
    yield Stage.RUNTIME, ("runtime",), spec.runtime.backend, fields


def implementation(stage: Stage, backend: Backend, fields: Mapping[str, Any]) -> Choice:
    """Find the offer of a backend that obeys every field.

    Raises:
        UserError: there is none; a line per problem of the nearest one, field first, then a tab.
    """
    offers = backend.of(stage)
    if not offers:
        able = [b.name for b in registry.backends() if b.of(stage)]
        raise UserError(f"\t{backend.name} does not {stage}; these do: {', '.join(able)}")
    failures = [_mismatches(backend, offer, fields) for offer in offers]
    fitting = [offer for offer, problems in zip(offers, failures, strict=True) if not problems]
    if not fitting:
        nearest: list[str] = min(failures, key=len)
        raise UserError("\n".join(nearest))
    offer = fitting[0]
    facts = tuple(name for name in offer.options if name not in fields)
    filled = {name: _only(offer.options[name]) for name in facts}
    for name in facts:
        others = [_only(other.options[name]) for other in fitting if name in other.options]
        if name not in PLACES and any(value != filled[name] for value in others):
            offered = _words(tuple(dict.fromkeys(others)))
            raise UserError(f"{name}\trequired by {backend.name}: {offered}")
    return Choice(stage, backend, offer, dict(fields) | filled, facts)


def _mismatches(backend: Backend, offer: Offer, fields: Mapping[str, Any]) -> list[str]:
    problems = []
    for name, value in fields.items():
        if name not in offer.options:
            near = difflib.get_close_matches(name, set(offer.options) - set(fields), n=1)
            hint = f"did you mean {near[0]!r}?" if near else "leave it out"
            problems.append(f"{name}\t{backend.name} has no such field; {hint}")
        elif value not in offer.options[name]:
            admits = offer.options[name]
            offered = _words(admits) if isinstance(admits, tuple) else str(admits)
            problems.append(f"{name}\t{backend.name} offers {offered} here, got {_word(value)}")
    for name, admits in offer.options.items():
        implied = _only(admits)
        if name not in fields and (implied is None or (name == "device" and implied != "cpu")):
            offered = _words(admits) if isinstance(admits, tuple) else str(admits)
            problems.append(f"{name}\trequired by {backend.name}: {offered}")
    return problems


def _only(admits: Admits) -> Any:
    """What a field is when it is not written: the one value there is; else None."""
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
