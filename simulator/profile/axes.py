"""Axes: what differs between two profiles, and profiles with one axis swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulator import registry
from simulator.contract import Evidence, Stage
from simulator.errors import ProfileError
from simulator.profile.graph import Graph
from simulator.profile.implementations import Choices, choose, gives_planes
from simulator.profile.load import Profile
from simulator.profile.schema import AXES, Claim

_STAGES = {
    "decoder": (Stage.DECODE,),
    "color": (Stage.ENCODE, Stage.CONVERT),
    "resize": (Stage.RESIZE,),
    "precision": (Stage.CAST, Stage.QUANTIZE),
    "runtime": (Stage.EXPORT, Stage.RUNTIME),
}
_SECTION = {
    Stage.ENCODE: "encode.",
    Stage.CONVERT: "convert.",
    Stage.EXPORT: "exporter.",
    Stage.CAST: "cast.",
    Stage.QUANTIZE: "quantizer.",
}
TODO = "TODO"
"""How a source begins that is still to be written."""
PIXEL_AXES = ("decoder", "color", "resize", "geometry", "normalize")
_REBUILT = ("activation", "accumulation")
GRAPH_AXES = tuple(axis for axis, place in AXES.items() if place[0] == "graph")
POST_AXES = tuple(axis for axis, place in AXES.items() if place[0] == "postprocess")


def axis_of(key: str) -> str:
    """Return the axis that a dotted key of a profile belongs to, or its section if none."""
    written = tuple(key.split("."))
    found = (axis for axis, place in AXES.items() if written[: len(place)] == place)
    return next(found, written[0])


def value(profile: Profile, choices: Choices, axis: str) -> Any:
    """Return everything that an axis says in one profile, facts of the backends included."""
    found: Any = profile.spec.model_dump(by_alias=True, exclude_none=True)
    for part in AXES[axis]:
        found = found[part]
    facts: dict[str, Any] = {}
    for stage in _STAGES.get(axis, ()):
        choice = choices.get(stage)
        if choice:
            prefix = _SECTION.get(stage, "")
            facts |= {f"{prefix}{fact}": choice.options[fact] for fact in choice.facts}
    return found | facts if isinstance(found, dict) else found


def differing(train: tuple[Profile, Choices], deploy: tuple[Profile, Choices]) -> list[str]:
    """Return the axes on which two profiles differ, in pipeline order."""
    return [axis for axis in AXES if flat(value(*train, axis)) != flat(value(*deploy, axis))]


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
    section = AXES[axis][0]
    claim = claims(profile).get(section)
    if claim is not None:
        return Evidence(claim.kind), claim.source
    rebuilt = axis in _REBUILT and getattr(profile.spec.graph, axis) != getattr(Graph(), axis)
    if rebuilt:
        return Evidence.EMULATED, "rebuilt from ONNX's elementary operators: docs/graph.md"
    stages = (*_STAGES.get(axis, ()), *((Stage.RUNTIME,) if axis == "precision" else ()))
    made = [choices[stage] for stage in stages if stage in choices]
    if not made:
        return Evidence.NATIVE, "the simulator's own arithmetic, as documented"
    order = list(Evidence)
    weakest = max(made, key=lambda choice: order.index(choice.offer.evidence))
    return weakest.offer.evidence, weakest.offer.source or weakest.backend.summary


def is_claimed(profile: Profile, axis: str) -> bool:
    """Whether a profile says how an axis is known; if not, only what runs here is."""
    return AXES[axis][0] in claims(profile)


def refuse_recorded(*profiles: Profile) -> None:
    """Refuse stacks of which a part was recorded: their axes cannot be run one by one.

    Raises:
        ProfileError: naming the first.
    """
    for profile in profiles:
        if profile.spec.decode.recording or profile.spec.runtime.backend == "recorded":
            raise ProfileError([f"{profile.name} was recorded; it can be compared, not mixed"])


def swap(base: Profile, other: Profile, axes: Sequence[str]) -> tuple[Profile, Choices]:
    """Return *base* with some axes taken from *other*.

    Two rules make axes independent of each other: where the decoder gives no YUV planes, a
    color axis that wants them encodes the decoder's RGB as it says; where no YUV is left, a
    resize in the YUV domain is done in RGB.

    Raises:
        ProfileError: the mixture cannot run, for example a precision that the runtime lacks, or
            a stack of which a part was recorded.
    """
    refuse_recorded(base, other)
    update: dict[str, Any] = {}
    for axis in axes:
        section, *inner = AXES[axis]
        taken = getattr(other.spec, section)
        if inner:
            kept = update.get(section, getattr(base.spec, section))
            taken = kept.model_copy(update={inner[0]: getattr(taken, inner[0])})
        update[section] = taken
    spec = base.spec.model_copy(update=update)
    decoder = registry.backend(spec.decode.backend).of(Stage.DECODE)[0]
    if spec.color.source == "planes" and not gives_planes(decoder):
        update["color"] = spec.color.model_copy(update={"source": "encode"})
    if spec.color.format == "rgb" and spec.resize.domain == "yuv":
        update["resize"] = spec.resize.model_copy(update={"domain": "rgb"})
    name = f"{base.name}+{'+'.join(axes)}"
    mixed = Profile(name, base.spec.model_copy(update=update), {})
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
    for axis, stages in _STAGES.items():
        section = AXES[axis][0]
        claim = claims(profile).get(section)
        offers = [choices[stage].offer for stage in stages if stage in choices]
        for offer in offers:
            if claim and order.index(Evidence(claim.kind)) < order.index(offer.evidence):
                problems.append(
                    f"{profile.where(('evidence', section))}: evidence.{section}: claims "
                    f"{claim.kind}, but the implementation here is {offer.evidence}"
                )
    return list(dict.fromkeys(problems))
