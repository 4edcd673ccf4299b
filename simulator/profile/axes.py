"""Axes: what differs between two profiles, and profiles with one axis swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.contract import Evidence, StageSpec
from simulator.contract.passes import PASSES
from simulator.errors import ProfileError
from simulator.profile.document import Key
from simulator.profile.implementations import Choice, Choices, choose
from simulator.profile.load import Profile
from simulator.profile.modality import at, axes_of, filled, front_axes, places
from simulator.profile.postprocess import Postprocess
from simulator.profile.schema import Claim

TODO = "TODO"
"""How a source begins that is still to be written."""
_REBUILT = ("activation", "accumulation")
POST_AXES = tuple(Postprocess.model_fields)
ABSENT = "absent"
"""What an axis says in a stack that lacks its stage, where another one has it."""


def axis_of(key: str, modality: str = "image") -> str:
    """Return the axis that a dotted key of a profile belongs to, or its section if none."""
    written = tuple(key.split("."))
    known = places(modality).items()
    return next((axis for axis, place in known if written[: len(place)] == place), written[0])


def is_of_front_end(axis: str, profile: Profile) -> bool:
    """Whether an axis lies on the way from the sample to the network's input."""
    return axis in front_axes(profile.spec.modality)


def value(profile: Profile, choices: Choices, axis: str) -> Any:
    """Return everything that an axis says in one profile, facts of the backends included."""
    place = _place(profile, axis)
    found: Any = profile.spec.model_dump(by_alias=True, exclude_none=True)
    for part in place:
        found = found.get(part, ABSENT)
    facts: dict[str, Any] = {}
    for spec, choice in _made(profile, choices, axis):
        prefix = "".join(f"{part}." for part in spec.section[len(place) :])
        facts |= {f"{prefix}{fact}": choice.options[fact] for fact in choice.facts}
    return found | facts if isinstance(found, dict) else found


def differing(train: tuple[Profile, Choices], deploy: tuple[Profile, Choices]) -> list[str]:
    """Return the axes on which two profiles differ, in pipeline order.

    Raises:
        ProfileError: they take samples of different kinds.
    """
    refuse_mixed(train[0], deploy[0])
    known = axes_of(train[0].spec, deploy[0].spec)
    return [axis for axis in known if flat(value(*train, axis)) != flat(value(*deploy, axis))]


def flat(found: Any, prefix: str = "") -> dict[str, Any]:
    """Flatten an axis' value to dotted leaves."""
    if not isinstance(found, Mapping):
        return {prefix or "value": found}
    leaves: dict[str, Any] = {}
    for name, inner in found.items():
        leaves |= flat(inner, f"{prefix}.{name}" if prefix else name)
    return leaves


def is_open(text: str) -> bool:
    """Whether a text is still to be written."""
    return text.strip().upper().startswith(TODO)


def claims(profile: Profile) -> dict[str, Claim]:
    """Return what a profile claims of its sections, by the section's name."""
    return {str(section): claim for section, claim in profile.spec.evidence.items()}


def evidence(profile: Profile, choices: Choices, axis: str) -> tuple[Evidence, str]:
    """Return how we know an axis of a profile, and the source.

    The profile's own claim holds; where it makes none, the weakest of the backends' does.
    """
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
    """Whether a profile says how an axis is known; if not, only what runs here is."""
    return _place(profile, axis)[0] in claims(profile)


def refuse_recorded(*profiles: Profile) -> None:
    """Refuse stacks of which a part was recorded: their axes cannot be run one by one.

    Raises:
        ProfileError: naming the first.
    """
    for profile in profiles:
        if is_recorded(profile):
            raise ProfileError([f"{profile.name} was recorded; it can be compared, not mixed"])


def is_recorded(profile: Profile) -> bool:
    """Whether a recording plays a part of a stack."""
    sections = (at(profile.spec, spec.section) for spec in filled(profile.spec.modality))
    return any(at(section, ("recording",)) is not None for section in sections)


def refuse_mixed(one: Profile, other: Profile) -> None:
    """Refuse stacks that take samples of different kinds.

    Raises:
        ProfileError: naming both.
    """
    kinds = one.spec.modality, other.spec.modality
    if kinds[0] != kinds[1]:
        raise ProfileError(
            [f"{one.name} takes {kinds[0]} and {other.name} {kinds[1]}; compare stacks of one kind"]
        )


def swap(base: Profile, other: Profile, axes: Sequence[str]) -> tuple[Profile, Choices]:
    """Return *base* with some axes taken from *other*.

    What then does not fit together is settled as the modality does
    (:meth:`simulator.profile.schema.ProfileSpec.settled`), so that axes do not depend on each
    other.

    Raises:
        ProfileError: the mixture cannot run, for example a precision that the runtime lacks, or
            a stack of which a part was recorded.
    """
    refuse_recorded(base, other)
    update: dict[str, Any] = {}
    refuse_mixed(base, other)
    known = places(base.spec.modality)
    for axis in axes:
        section, *inner = map(str, known[axis])
        taken = getattr(other.spec, section)
        if inner:
            kept = update.get(section, getattr(base.spec, section))
            taken = kept.model_copy(update={inner[0]: getattr(taken, inner[0])})
        update[section] = taken
    name = f"{base.name}+{'+'.join(axes)}"
    mixed = Profile(name, base.spec.model_copy(update=update).settled(), {})
    return mixed, choose(mixed)


def claims_problem(profile: Profile, choices: Choices) -> list[str]:
    """Return a line for every claim without a source, or stronger than its backend's evidence."""
    order = list(Evidence)
    problems = [
        f"{profile.where(('evidence', section))}: evidence.{section}: claims {claim.kind}, and its "
        f"source is still to be written ({TODO})"
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


def _place(profile: Profile, axis: str) -> Key:
    return places(profile.spec.modality)[axis]


def _made(profile: Profile, choices: Choices, axis: str) -> list[tuple[StageSpec, Choice]]:
    """The stages of an axis that a profile has, with the implementations behind them."""
    found = (spec for spec in filled(profile.spec.modality) if spec.axis == axis)
    return [(spec, choices[spec.name]) for spec in found if spec.name in choices]


def _obeys(spec: StageSpec, section: str | int) -> bool:
    """Whether a stage's implementations obey a field of another section."""
    return any(key[0] == section for key in spec.shared)
