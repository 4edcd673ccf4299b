"""The parts of a modality's profiles: sections, axes, and the sections that name a backend.

A modality provides its sections (entry points ``simulator.modalities``), and each stage of another
package adds one (``simulator.stages``). This module lists none by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, Protocol

from pydantic import Field, create_model

from simulator import registry
from simulator.contract import Stage, stage
from simulator.contract.passes import PASSES, GraphPass
from simulator.contract.stage import STAGES, StageSpec, named, stages
from simulator.entry_points import Table
from simulator.errors import UserError
from simulator.profile.document import Key
from simulator.profile.graph import Graph
from simulator.profile.hints import Hint
from simulator.profile.schema import Claim, ProfileSpec
from simulator.profile.section import OpenSection

IMAGE = "image"
"""The modality of a profile that does not name one."""


_OPTIONAL = (Stage.VIDEO, "prompts")
"""Stages of ours that are an axis only where a profile has their section."""


class HasSpec(Protocol):
    """What profiles need of a modality; see :class:`simulator.modalities.modality.Modality`."""

    name: Any
    Spec: Any


SCHEMAS: Table[HasSpec] = Table(
    "simulator.modalities", "modality", lambda found: issubclass(found.Spec, ProfileSpec)
)


@cache
def schema_of(modality: str) -> type[ProfileSpec]:
    """Return the schema of a modality's profiles, including the sections of other packages' stages.

    Raises:
        UserError: there is no such modality, or a stage's section is not valid.
    """
    base: type[ProfileSpec] = SCHEMAS[modality].Spec
    whole = (spec for spec in extra_specs(modality) if len(spec.section) == 1)
    extra = {spec.section[0]: _optional(spec) for spec in whole}
    names = Literal[sections(modality)]  # type: ignore[valid-type]
    evidence = (dict[names, Claim], ...)  # type: ignore[valid-type]
    made: type[ProfileSpec] = create_model(
        base.__name__,
        __base__=base,
        __doc__=base.__doc__,
        evidence=evidence,
        graph=(graph_schema(), ...),
        **extra,  # type: ignore[call-overload]
    )
    return made


@cache
def graph_schema() -> type[Graph]:
    """Return the schema of ``graph``, including the passes of other packages.

    Raises:
        UserError: one of them does not load.
    """
    others = [name for name in PASSES.names if not PASSES.is_ours(name)]
    found = [one for one in map(PASSES.__getitem__, others) if isinstance(one, GraphPass)]
    if not found:
        return Graph
    fields = {
        one.name: (one.schema, one.keep) for one in sorted(found, key=lambda one: int(one.order))
    }
    made: type[Graph] = create_model(
        Graph.__name__,
        __base__=Graph,
        __doc__=Graph.__doc__,
        **fields,  # type: ignore[call-overload]
    )
    return made


def graph_axes() -> tuple[str, ...]:
    """Return the axes of the section ``graph``."""
    return tuple(graph_schema().model_fields)


@cache
def sections(modality: str) -> tuple[str, ...]:
    """Return the names of a profile's sections in pipeline order, without ``evidence``."""
    return tuple(dict.fromkeys(spec.section[0] for spec in stages(modality) if spec.section))


@cache
def filled(modality: str) -> tuple[StageSpec, ...]:
    """Return the stages whose section names a backend, in pipeline order."""
    return tuple(spec for spec in stages(modality) if spec.is_filled)


@cache
def extra_specs(modality: str) -> tuple[StageSpec, ...]:
    """Return the stages without a section in the modality's own schema.

    Raises:
        UserError: one of them does not define its section, axis, step or calls.
    """
    own = SCHEMAS[modality].Spec.model_fields
    found = [spec for spec in filled(modality) if spec.section[0] not in own]
    for spec in found:
        wanted = {
            "section: one key": spec.section[:1] in {one.section for one in found},
            "axis": spec.axis,
            "after": spec.after,
            "step": spec.step,
            "calls": spec.calls,
        }
        if missing := [name for name, there in wanted.items() if not there]:
            raise UserError(
                f"the stage {spec.name!r} does not define its {', '.join(missing)}; "
                "fix the package that brings it"
            )
    return tuple(found)


@cache
def places(modality: str) -> dict[str, Key]:
    """Return the key of each axis in a profile, in pipeline order."""
    found: dict[str, Key] = {}
    fields = schema_of(modality).model_fields
    for spec in stages(modality):
        if spec.fields_are_axes:
            (section,) = spec.section
            inner = Hint(fields[section].annotation).keys
            found |= {name: (section, name) for name in inner}
        elif spec.axis is not None:
            whole = spec.section if spec.base is None else spec.section[:1]
            found.setdefault(spec.axis, whole)
    return found


@cache
def apart(modality: str) -> dict[str, tuple[str, ...]]:
    """Return the fields of sections that are axes of their own, by the axis of the section."""
    known = places(modality)
    return {
        axis: fields
        for axis, place in known.items()
        if len(place) == 1
        and (fields := tuple(str(key[1]) for key in known.values() if key[:-1] == place))
    }


def axes_of(*specs: ProfileSpec) -> dict[str, Key]:
    """Return the axes of some profiles, each with its key, in pipeline order.

    The axis of another package's stage, of videos or of a text tower is included if one of the
    profiles has that stage. Where one of them has a front end that is not ours, the whole way to
    the network's input is one axis; where one has a runtime that takes samples, all up to the
    network's outputs is.
    """
    known: dict[str, Key] = {}
    for modality in dict.fromkeys(spec.modality for spec in specs):
        is_block = any(spec.front_end is not None for spec in specs)
        absent: set[str | None] = {Stage.FRONT_END}
        absent = {*steps_of_front_end(modality)} if is_block else absent
        if any(takes_samples(spec) for spec in specs):
            absent = {axis for axis in axes_before_outputs(modality) if axis != Stage.RUNTIME}
        optional = [s for s in stages(modality) if s.name in _OPTIONAL or modality in s.also]
        absent |= {
            spec.axis
            for spec in (*extra_specs(modality), *optional)
            if all(getattr(profile_spec, spec.section[0], None) is None for profile_spec in specs)
        }
        known |= {axis: key for axis, key in places(modality).items() if axis not in absent}
    return known


def front_axes(modality: str) -> tuple[str, ...]:
    """Return the axes that lead to the network's input, in pipeline order."""
    found: list[str] = []
    for spec in stages(modality):
        if spec.section == ("graph",):
            break
        if spec.axis is not None:
            found.append(spec.axis)
    return tuple(dict.fromkeys(found))


def steps_of_front_end(modality: str) -> tuple[str, ...]:
    """Return the axes that a front end stands for which is not ours, in pipeline order."""
    return tuple(axis for axis in front_axes(modality) if axis != Stage.FRONT_END)


def axes_before_outputs(modality: str) -> tuple[str, ...]:
    """Return the axes that lead to the network's outputs, in pipeline order."""
    last = STAGES["postprocess"].section
    return tuple(axis for axis, key in places(modality).items() if key[:1] != last)


def takes_samples(spec: ProfileSpec) -> bool:
    """Whether a profile's runtime is not ours, and takes samples in place of tensors."""
    name = spec.runtime.backend
    offers = registry.backend(name).of(Stage.RUNTIME) if name in registry.BACKENDS.points else ()
    return any(getattr(offer.make, "takes", None) == "sample" for offer in offers)


def at(spec: Any, key: Iterable[str | int]) -> Any:
    """Return the value at a key of a profile; None if a part of the key is missing."""
    for part in key:
        spec = getattr(spec, str(part), None)
    return spec


def forget() -> None:
    """Forget which packages are installed; for tests that install one."""
    stage.forget()
    SCHEMAS.forget()
    PASSES.forget()
    for known in (schema_of, graph_schema, sections, filled, extra_specs, places, apart):
        known.cache_clear()


def _optional(spec: StageSpec) -> tuple[Any, Any]:
    """Return the type and default of the field for another package's stage."""
    model = named(spec.model) if spec.model else None
    if model is None:
        model = create_model(spec.name, __base__=OpenSection, __doc__=f"{spec.about}.")
    if not (isinstance(model, type) and "backend" in getattr(model, "model_fields", ())):
        raise UserError(
            f"the stage {spec.name!r}: {spec.model} is not a pydantic model with a field "
            "'backend'; fix the package that brings it"
        )
    return model | None, Field(None, description=spec.about)
