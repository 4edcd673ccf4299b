"""The columns of a space that no backend offers: geometry, color, normalization, runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import Any, get_args

from simulator import registry
from simulator.contract import Stage
from simulator.contract.stage import STAGES
from simulator.errors import UserError
from simulator.identify.options import Column, Fields
from simulator.modalities.image import geometry as resolved_geometry
from simulator.modalities.image.card import ImageCard, geometry_of
from simulator.modalities.image.sections import Color, Geometry
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names
from simulator.profile.modality import IMAGE
from simulator.profile.profile import Profile
from simulator.profile.suite import Option

FORMATS = get_args(Color.model_fields["format"].annotation)
_ROUNDINGS = ("torchvision", "dali", "floor")
_PADDING = (0, 114, 127, 128, 255)
"""Gray levels that letterboxes are filled with: zeros, YOLOv5, and the two middles, white."""
_CROPS = (0.875, 0.95, 1.0)
"""Shares of the short side that the network sees: Inception's and ResNet's 224 of 256, timm's."""
_IMAGENET = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
"""torchvision's mean and standard deviation on 0-255."""
_EXECUTION = (Stage.CAST, Stage.QUANTIZE, Stage.EXPORT, Stage.RUNTIME)


def base_section(base: Profile, key: str) -> Fields:
    """Return the base's own values of a section, without those that are not written."""
    dumped = base.spec.model_dump(by_alias=True, exclude_none=True)
    found: Fields = dumped[key]
    return found


def formats() -> Column:
    """Return the formats that pixels are carried in; ``rgb`` removes what the others need."""
    gone = dict.fromkeys(("source", "odd_size", "encode", "convert"))
    found: Column = {name: {"color.format": name} for name in FORMATS if name != "rgb"}
    return {
        "rgb": {"color": {"format": "rgb", **gone}, "resize.domain": "rgb"},
        **found,
    }


def words(key: str, *values: str) -> Column:
    """Return one option for each value of a key."""
    return {value: {key: value} for value in values}


def normalizations(base: Profile, card: ImageCard) -> Column:
    """Return the base's normalization, the card's and common mistakes about it, each once."""
    scale = 255 / card.input.top
    own = [v * scale for v in card.input.mean], [v * scale for v in card.input.std]
    named = {
        "scaled to 0..1": ([0.0] * 3, [255.0] * 3),
        "scaled to -1..1": ([127.5] * 3, [127.5] * 3),
        "left at 0..255": ([0.0] * 3, [1.0] * 3),
        "centered at 128": ([128.0] * 3, [128.0] * 3),
        "mean only": (own[0], [1.0] * 3),
        "standard deviation only": ([0.0] * 3, own[1]),
        "torchvision": _IMAGENET,
        "channels reversed": (own[0][::-1], own[1][::-1]),
    }
    found: Column = {"model": {"normalize": {"mean": "model", "std": "model"}}}
    written = base_section(base, "normalize")
    if "model" not in (written["mean"], written["std"]):
        named = {base.name: (list(written["mean"]), list(written["std"])), **named}
    seen = [_rounded(own)]
    for name, pair in named.items():
        if _rounded(pair) not in seen:
            seen.append(_rounded(pair))
            mean, std = ([round(v, 6) for v in part] for part in pair)
            found[name] = {"normalize": {"mean": mean, "std": std}}
    return found


def _rounded(pair: tuple[list[float], list[float]]) -> list[float]:
    return [round(value, 3) for part in pair for value in part]


def geometries(base: Profile, card: ImageCard) -> Column:
    """Return the card's geometry with every rounding, and the other kinds; equal ones once."""
    gone = dict.fromkeys(Geometry.model_fields)
    return {
        name: {"geometry": {**gone, **values}} for name, (values, _) in resolved(base, card).items()
    }


def resolved(
    base: Profile, card: ImageCard
) -> dict[str, tuple[Fields, resolved_geometry.Geometry]]:
    """Return the values in a profile and the sizes of every geometry, by its name."""
    found: dict[str, tuple[Fields, resolved_geometry.Geometry]] = {}
    seen = set()
    for values in [base_section(base, "geometry"), *_geometries(card)]:
        section = Geometry.model_validate(values)
        spec = base.spec.model_copy(update={"geometry": section})
        sized = geometry_of(Profile(base.name, spec, {}), card)
        unused = ["rounding"] if sized.kind == "squash" else []
        unused += [] if sized.kind == "letterbox" else ["position", "value"]
        known = {key: value for key, value in sized.identity().items() if key not in unused}
        if (key := str(known)) not in seen:
            seen.add(key)
            found[_geometry_name(values)] = values, sized
    return found


def _geometries(card: ImageCard) -> Iterator[Fields]:
    for rounding in (card.geometry.rounding, *_ROUNDINGS):
        yield {"kind": "model", "rounding": rounding}
    yield {"kind": "squash"}
    for fraction, rounding in product(_CROPS[:-1], ("tensorflow", "floor", "torchvision")):
        yield _cropped({"fraction": fraction, "rounding": rounding})
    for rounding in ("floor", "torchvision"):
        yield _cropped({"aspect": "network", "rounding": rounding})
    short, long = sorted(card.input.one_size("identify"))
    sizes = [card.geometry.short_side or 0, *(round(short / part) for part in _CROPS)]
    for kind, side, rounding in product(
        ("short_side_crop", "squash_crop"), dict.fromkeys(sizes), _ROUNDINGS
    ):
        if side >= long:
            yield {"kind": kind, "short_side": side, "rounding": rounding}
    for position, value, rounding in product(("center", "top_left"), _PADDING, _ROUNDINGS):
        yield {"kind": "letterbox", "position": position, "value": value, "rounding": rounding}


def _cropped(crop: Fields) -> Fields:
    whole = {"fraction": None, "aspect": None, **crop}
    return {"kind": "squash", "crop_before_resize": whole}


def _geometry_name(values: Option) -> str:
    kind, *rest = values.values()
    parts = []
    for value in rest:
        inner = value.values() if isinstance(value, Mapping) else (value,)
        parts += [str(part) for part in inner if part is not None]
    return " ".join([kind, *parts])


def poolings(operators: set[str]) -> Column:
    """Return the rounding modes of pools, where the network has pools."""
    if not operators & {"MaxPool", "AveragePool"}:
        return {}
    return {name: {"graph.pooling.ceil_mode": name} for name in ("keep", "ceil", "floor")}


def runtimes(base: Profile) -> Column:
    """Return the runtimes that run here: those of the built-in profiles, and FP32 on each.

    Each option has the whole of ``precision`` and ``runtime``. What needs a device or a separate
    environment that is not there is left out; so is what :func:`choose` refuses on the base.
    """
    found: Column = {}
    seen: list[Any] = []
    for name, option in [*_single(), (base.name, _dumped(base)), *_builtin()]:
        with suppress(UserError):
            chosen = choose(_replaced(base, option))
            for choice in chosen.values():
                registry.require(choice.backend)
            made = [chosen[stage].identity() for stage in _EXECUTION if stage in chosen]
            if (key := [option["precision"], made]) not in seen:
                seen.append(key)
                found[name] = option
    fields = {field for option in found.values() for field in option["runtime"]}
    gone: Fields = dict.fromkeys(("precision.cast", "precision.quantizer"))
    gone["runtime.exporter"] = None
    for name, option in found.items():
        whole = {**dict.fromkeys(sorted(fields)), **option["runtime"]}
        found[name] = {**gone, "precision": option["precision"], "runtime": whole}
    return found


def _builtin() -> Iterator[tuple[str, Fields]]:
    for name in builtin_names():
        with suppress(UserError):
            profile = load(name)
            if profile.spec.modality == IMAGE:
                yield name, _dumped(profile)


def _dumped(profile: Profile) -> Fields:
    dumped = profile.spec.model_dump(by_alias=True, exclude_none=True)
    return {key: dumped[key] for key in ("precision", "runtime")}


def _single() -> Iterator[tuple[str, Fields]]:
    """FP32 on each level of each runtime that takes the ONNX file as it is."""
    known = {place[-1] for place in STAGES[Stage.RUNTIME].shared} | {"device", "threads"}
    for backend in registry.backends():
        for offer in backend.of(Stage.RUNTIME):
            admits = {name: option for name, option in offer.options.items() if name not in known}
            fields = {name: admit for name, admit in admits.items() if isinstance(admit, tuple)}
            fp32 = all("fp32" in offer.options[name] for name in ("storage", "compute"))
            here = offer.make.takes == "onnx" and "cpu" in offer.options["device"]
            if not fp32 or not here or len(fields) < len(admits):
                continue
            varied = [name for name, field in fields.items() if len(field) > 1]
            for row in product(*fields.values()):
                values = dict(zip(fields, row, strict=True))
                words = [f"{name}={values[name]}" for name in varied]
                yield " ".join([backend.name, *words]), _fp32(backend.name, values)


def _fp32(name: str, values: Option) -> Fields:
    runtime = {"backend": name, "device": "cpu", "threads": 1, **values}
    return {"precision": {"storage": "fp32", "compute": "fp32"}, "runtime": runtime}


def _replaced(base: Profile, option: Option) -> Profile:
    """The base with whole sections replaced."""
    kinds = {key: type(base.spec).model_fields[key].annotation for key in option}
    sections = {key: kinds[key].model_validate(option[key]) for key in option}  # type: ignore[union-attr]
    return Profile(base.name, base.spec.model_copy(update=sections), {})
