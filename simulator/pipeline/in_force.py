"""Compares what a profile asks for with what the runtime really does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulator import machine
from simulator.contract import Effective, Matrix, Range, Stage
from simulator.modalities.image.sections import image_spec
from simulator.model.probe import probe, rounds, saturates
from simulator.notices import Kind, Notice
from simulator.profile.artifact import own_file
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile

VNNI = frozenset({"avx512_vnni", "avx_vnni"})
"""Flags of x86 processors that sum 8-bit products in 32 bits."""


def probed(choice: Choice, effective: Effective) -> Effective:
    """Add the compute type that a probe model measures.

    The probe has FP32 weights, so nothing is added where the model's weights are of another type.
    """
    if choice.options["storage"] != "fp32":
        return effective
    found = probe(choice)
    if found is None:
        return effective
    details = {**effective.details, "probe": found.details()}
    return replace(effective, details=details, probed=found.compute)


def notices(profile: Profile, choices: Choices, effective: Effective) -> list[Notice]:
    """Return a notice for every difference between the profile and what is in force."""
    found = {
        Kind.NOT_IN_FORCE: [*_stored(profile), *_differences(profile, choices, effective)],
        Kind.DROPPED_CAST: _dropped_casts(choices[Stage.RUNTIME], profile),
        Kind.SATURATED: _saturated(choices, profile),
        Kind.COLOR_MISMATCH: _wrong_color(choices, profile),
    }
    return [Notice(kind, line) for kind, lines in found.items() for line in lines]


def as_dict(effective: Effective) -> dict[str, Any]:
    """Return what is in force, for the manifest."""
    return {"compute": effective.compute, **effective.options, "details": effective.details}


def _stored(profile: Profile) -> list[str]:
    """Say where a profile's own model file has weights of another type."""
    own, asked = own_file(profile), profile.spec.precision.storage
    if own is None or own.description.storage in (None, asked):
        return []
    return [f"storage {asked} was asked for, {own.path.name} has {own.description.storage} weights"]


def _differences(profile: Profile, choices: Choices, effective: Effective) -> list[str]:
    backend = choices[Stage.RUNTIME].backend.name
    asked = {**choices[Stage.RUNTIME].options, "compute": profile.spec.precision.compute}
    got = {**effective.options, "compute": effective.compute}
    lines = [
        f"{name} {asked[name]} was asked for, {backend} is running {got[name]}"
        for name in got
        if name in asked and got[name] is not None and asked[name] != got[name]
    ]
    probed, backend_says = effective.probed, effective.compute
    if probed == "tf32" and asked.get("use_tf32"):
        probed = backend_says
    if probed != backend_says and probed is not None:
        lines.append(
            f"compute {asked['compute']} was asked for and {backend} says {backend_says}; a probe "
            f"model finds {probed}"
        )
    total = sum(effective.products.values())
    for kind, count in effective.products.items():
        if kind not in (effective.compute, asked["compute"]):
            lines.append(
                f"compute {asked['compute']} was asked for, {count} of {total} convolutions and "
                f"matrix products are running in {kind}"
            )
    return lines


def _dropped_casts(choice: Choice, profile: Profile) -> list[str]:
    """Say where the graph rounds on purpose and the runtime removes the casts that do it."""
    graph = profile.spec.graph
    asked = {"accumulation": graph.accumulation.dtype, "softmax": graph.activation.softmax}
    return [
        f"{name} in {dtype} was asked for, {choice.backend.name} drops the casts that round to it"
        for name, dtype in asked.items()
        if dtype != "keep" and not rounds(choice, dtype)
    ]


def _saturated(choices: Choices, profile: Profile) -> list[str]:
    """Say where the sum of two 8-bit products is cut, as on processors without VNNI."""
    quantizer, precision = choices.get(Stage.QUANTIZE), profile.spec.precision
    if precision.compute != "int8" or not (quantizer or precision.artifact):
        return []
    reduced = quantizer.options.get("reduce_range") if quantizer else None
    choice = choices[Stage.RUNTIME]
    if reduced is True or "accumulator" in choice.options or not saturates(choice):
        return []
    flags = machine.processor()["flags"]
    without = "" if VNNI & set(flags) else " without VNNI"
    part = "all layers but the first" if reduced == "first_layer" else "its layers"
    return [
        f"compute int8 was asked for, but {choice.backend.name}'s INT8 products saturate on this "
        f"processor{without}: the sum of two is cut to 16 bits, in {part}. What changes is "
        "saturation, not rounding to 8 bits; quantize with 7-bit weights "
        "(precision.quantizer.reduce_range: true where the quantizer has it), or measure on a "
        "processor with VNNI"
    ]


def _wrong_color(choices: Choices, profile: Profile) -> list[str]:
    """Say when the color converter assumes another matrix or range than the pixels have."""
    if Stage.CONVERT not in choices:
        return []
    encode = choices[Stage.ENCODE].options
    if image_spec(profile).color.source == "planes":
        if Stage.VIDEO in choices:  # as each clip declares
            return []
        made = (Matrix.BT601, Range.FULL)  # JFIF 1.02
    elif "matrix" in encode and "range" in encode:
        made = (Matrix(encode["matrix"]), Range(encode["range"]))
    else:
        return []
    assumed = choices[Stage.CONVERT].make().assumes
    if made == assumed:
        return []
    name = choices[Stage.CONVERT].backend.name
    return [
        f"color: the pixels are {made[0]} {made[1]} range, but {name}"
        f" assumes {assumed[0]} {assumed[1]} range"
    ]
