"""Axes: the differences between two profiles, and profiles with one axis swapped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator.contract import Evidence, Stage, StageSpec
from simulator.contract.passes import PASSES
from simulator.errors import ProfileError
from simulator.profile.artifact import own_file
from simulator.profile.document import Key, Values
from simulator.profile.implementations import Choice, Choices, choose
from simulator.profile.modality import (
    apart,
    at,
    axes_of,
    filled,
    front_axes,
    places,
    steps_of_front_end,
    takes_samples,
)
from simulator.profile.postprocess import Postprocess
from simulator.profile.profile import Profile
from simulator.profile.schema import Claim

TODO = "TODO"
"""The first characters of a text that still has to be written."""
_REBUILT = ("activation", "accumulation")
POST_AXES = tuple(Postprocess.model_fields)
ABSENT = "absent"
"""The value of an axis in a stack without its stage, if the other stack has that stage."""


def axis_of(key: str, modality: str = "image") -> str:
    """Return the axis that a dotted key of a profile belongs to; its section if it has no axis."""
    written = tuple(key.split("."))
    known = [(len(p), axis) for axis, p in places(modality).items() if written[: len(p)] == p]
    return max(known, key=lambda one: one[0])[1] if known else written[0]


def is_of_front_end(axis: str, profile: Profile) -> bool:
    """Whether an axis is part of the way from the sample to the network's input."""
    return axis in front_axes(profile.spec.modality)


def value(profile: Profile, choices: Choices, axis: str) -> Any:
    """Return all values of an axis in one profile, including those that the backends imply."""
    if axis == Stage.FRONT_END and profile.spec.front_end is None:
        steps = steps_of_front_end(profile.spec.modality)
        return {step: value(profile, choices, step) for step in steps if _has(profile, step)}
    place = _place(profile, axis)
    found: Any = profile.spec.model_dump(by_alias=True, exclude_none=True)
    has_stage = any(spec.axis == axis for spec in filled(profile.spec.modality))
    for part in place:
        found = found.get(part, ABSENT if has_stage else "model")
    if fields := apart(profile.spec.modality).get(axis):
        found = {name: one for name, one in found.items() if name not in fields}
    facts: Values = {}
    if place == ("precision",) and (own := own_file(profile)):
        facts["artifact"] = own.words
    for spec, choice in _made(profile, choices, axis):
        prefix = "".join(f"{part}." for part in spec.section[len(place) :])
        facts |= {f"{prefix}{fact}": choice.options[fact] for fact in choice.facts}
        for name, sha in choice.files.items():
            facts[f"{prefix}{name}"] = f"{Path(choice.options[name]).name} (SHA-256 {sha[:16]})"
    return found | facts if isinstance(found, dict) else found


def differing(train: tuple[Profile, Choices], deploy: tuple[Profile, Choices]) -> list[str]:
    """Return the axes on which two profiles differ, in pipeline order.

    Raises:
        ProfileError: the profiles take samples of different kinds.
    """
    return list(dict.fromkeys(axis for axis, *_ in differences(train, deploy)))


def differences(
    one: tuple[Profile, Choices], other: tuple[Profile, Choices]
) -> list[tuple[str, str, Any, Any]]:
    """Return the axis, the dotted key and both values of every field that differs; - if absent.

    Raises:
        ProfileError: the profiles take samples of different kinds.
    """
    refuse_mixed(one[0], other[0])
    found = []
    for axis in axes_of(one[0].spec, other[0].spec):
        first, second = (flat(value(*side, axis)) for side in (one, other))
        for key in dict.fromkeys([*first, *second]):
            a, b = first.get(key, "-"), second.get(key, "-")
            if a != b:
                found.append((axis, key, a, b))
    return found


def flat(found: object, prefix: str = "") -> Values:
    """Flatten the value of an axis to dotted keys and their values."""
    if not isinstance(found, Mapping):
        return {prefix or "value": found}
    leaves: Values = {}
    for name, inner in found.items():
        leaves |= flat(inner, f"{prefix}.{name}" if prefix else name)
    return leaves


def equal(sides: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the dotted keys that have the same value in every stack; see :func:`flat`."""
    first, *others = sides
    return [
        key
        for key, value in first.items()
        if all(key in other and other[key] == value for other in others)
    ]


def is_open(text: str) -> bool:
    """Whether a text still has to be written."""
    return text.strip().upper().startswith(TODO)


def claims(profile: Profile) -> dict[str, Claim]:
    """Return a profile's evidence claims by section."""
    return {str(section): claim for section, claim in profile.spec.evidence.items()}


def evidence(profile: Profile, choices: Choices, axis: str) -> tuple[Evidence, str]:
    """Return the evidence for an axis of a profile, and its source.

    This is the profile's own claim; without one, the weakest evidence among the backends.
    """
    if axis == Stage.FRONT_END and profile.spec.front_end is None:
        steps = steps_of_front_end(profile.spec.modality)
        every = [_evidence(profile, choices, step) for step in steps if _has(profile, step)]
        return max(every, key=lambda one: list(Evidence).index(one[0]))
    return _evidence(profile, choices, axis)


def _evidence(profile: Profile, choices: Choices, axis: str) -> tuple[Evidence, str]:
    section, *inner = _place(profile, axis)
    claim = claims(profile).get(str(section))
    if claim is not None:
        return Evidence(claim.kind), claim.source
    if at(profile.spec, (section,)) is None:
        return Evidence.NATIVE, "the stack has no such stage"
    graph = profile.spec.graph
    if section == "graph" and inner and getattr(graph, axis) != getattr(type(graph)(), axis):
        if not PASSES.is_ours(axis):
            return Evidence.EMULATED, f"rebuilt by {PASSES.package(axis)}"
        if axis in _REBUILT:
            return Evidence.EMULATED, "rebuilt from ONNX's elementary operators: docs/graph.md"
    made = [
        choices[spec.name]
        for spec in filled(profile.spec.modality)
        if spec.name in choices and (spec.axis == axis or (not inner and _obeys(spec, section)))
    ]
    if not made:
        return Evidence.NATIVE, "the simulator's own arithmetic, as documented"
    order = list(Evidence)
    weakest = max(made, key=lambda choice: order.index(choice.offer.evidence))
    return weakest.offer.evidence, weakest.offer.source or weakest.backend.summary


def is_claimed(profile: Profile, axis: str) -> bool:
    """Whether a profile claims evidence for an axis; if not, only what runs here is known."""
    return _place(profile, axis)[0] in claims(profile)


def refuse_recorded(*profiles: Profile) -> None:
    """Refuse profiles whose answers were recorded: their axes cannot be swapped one by one.

    Raises:
        ProfileError: the message names the first such profile.
    """
    for profile in profiles:
        if at(profile.spec, ("runtime", "recording")) is not None:
            raise ProfileError([f"{profile.name} replays a recording: its axes cannot be swapped"])
        if takes_samples(profile.spec):
            what = "gives the network's outputs or answers by itself: its axes cannot be swapped"
            raise ProfileError([f"{profile.name} {what}"])


def is_recorded(profile: Profile) -> bool:
    """Whether a part of a stack replays a recording."""
    sections = (at(profile.spec, spec.section) for spec in filled(profile.spec.modality))
    return any(at(section, ("recording",)) is not None for section in sections)


def refuse_mixed(one: Profile, other: Profile) -> None:
    """Refuse stacks that take samples of different kinds.

    Raises:
        ProfileError: the message names both.
    """
    kinds = one.spec.modality, other.spec.modality
    if kinds[0] != kinds[1]:
        raise ProfileError(
            [f"{one.name} takes {kinds[0]} and {other.name} {kinds[1]}; compare stacks of one kind"]
        )


def swap(base: Profile, other: Profile, axes: Sequence[str]) -> tuple[Profile, Choices]:
    """Return *base* with some axes taken from *other*.

    The modality then resolves conflicts between the sections
    (:meth:`simulator.profile.schema.ProfileSpec.settled`), so that axes can be swapped
    independently.

    Raises:
        ProfileError: the mixed stack cannot run, for example because the runtime lacks the
            precision, or one of the stacks replays a recording.
    """
    refuse_recorded(base, other)
    update: dict[str, BaseModel | None] = {}
    refuse_mixed(base, other)
    known = places(base.spec.modality)
    for axis in _one_by_one(base, other, axes):
        section, *inner = map(str, known[axis])
        taken = getattr(other.spec, section)
        if inner:
            kept = update.get(section, getattr(base.spec, section))
            taken = kept.model_copy(update={inner[0]: getattr(taken, inner[0])})
        elif fields := apart(base.spec.modality).get(axis):
            kept = update.get(section, getattr(base.spec, section))
            taken = taken.model_copy(update={name: getattr(kept, name) for name in fields})
        update[section] = taken
    precision, runtime = (
        update.get(one, getattr(base.spec, one)) for one in ("precision", "runtime")
    )
    if getattr(precision, "artifact", None) and getattr(runtime, "exporter", None):
        update["runtime"] = runtime.model_copy(update={"exporter": None})
    name = f"{base.name}+{'+'.join(axes)}"
    may_run_code = base.may_run_code and other.may_run_code
    spec = base.spec.model_copy(update=update).settled()
    mixed = Profile(name, spec, {}, may_run_code=may_run_code)
    return mixed, choose(mixed)


def _one_by_one(base: Profile, other: Profile, axes: Sequence[str]) -> Iterator[str]:
    """The axes, with all that a front end stands for where it is one."""
    for axis in axes:
        if axis == Stage.FRONT_END:
            yield from steps_of_front_end(base.spec.modality)
        yield axis


def claims_problem(profile: Profile, choices: Choices) -> list[str]:
    """Return a line for each claim without a source, or stronger than its backend's evidence."""
    order = list(Evidence)
    problems = [
        f"{profile.where(('evidence', section))}: evidence.{section}: claims {claim.kind}, but its "
        f"source is missing ({TODO})"
        for section, claim in claims(profile).items()
        if Evidence(claim.kind) is not Evidence.ASSUMED and is_open(claim.source)
    ]
    for spec in filled(profile.spec.modality):
        section = spec.section[0]
        claim, choice = claims(profile).get(section), choices.get(spec.name)
        if claim and choice and Evidence(claim.kind) in order[: order.index(choice.offer.evidence)]:
            problems.append(
                f"{profile.where(('evidence', section))}: evidence.{section}: claims "
                f"{claim.kind}, but the implementation here is {choice.offer.evidence}"
            )
    return list(dict.fromkeys(problems))


def _has(profile: Profile, axis: str) -> bool:
    """Whether a profile has the section of an axis."""
    return at(profile.spec, _place(profile, axis)) is not None


def _place(profile: Profile, axis: str) -> Key:
    return places(profile.spec.modality)[axis]


def _made(profile: Profile, choices: Choices, axis: str) -> list[tuple[StageSpec, Choice]]:
    """Return the stages of an axis that a profile has, with their implementations."""
    found = (spec for spec in filled(profile.spec.modality) if spec.axis == axis)
    return [(spec, choices[spec.name]) for spec in found if spec.name in choices]


def _obeys(spec: StageSpec, section: str | int) -> bool:
    """Whether a stage's implementations use a field of another section."""
    return any(key[0] == section for key in spec.shared)
