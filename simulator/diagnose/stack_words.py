"""What engineers call the difference between two front ends that are both known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from simulator.contract import Stage
from simulator.diagnose import normalization
from simulator.diagnose.finding import Difference
from simulator.diagnose.normalization import Numbers
from simulator.identify.affine import Affine
from simulator.modalities.image.card import ImageCard, geometry_of
from simulator.modalities.image.front_end import statistics
from simulator.modalities.image.geometry import Geometry
from simulator.modalities.image.sections import image_spec
from simulator.pipeline.stack import ResolvedProfile

Sections = Mapping[str, object]
"""A profile's document."""
_KINDS = {
    "keep_ratio": "resize that keeps the ratio",
    "native": "padding alone",
    "short_side_crop": "short side and center crop",
    "squash_crop": "squash and center crop",
    "squash": "squash",
    "letterbox": "letterbox",
}
_WHERE = {"center": "on both sides", "top_left": "on the right and below"}
_ALONE = ("exif", "order")
"""Fields that are told of by themselves."""
_GRIDS = {
    "legacy": "shifted by half a pixel (source = index x scale)",
    "legacy_align_corners": "shifted by half a pixel (align corners)",
}


def between(
    train: ResolvedProfile, deploy: ResolvedProfile, card: ImageCard
) -> Iterator[Difference]:
    """Yield a difference for each thing that two front ends do otherwise.

    Args:
        train: the training's.
        deploy: the deployment's.
        card: of the model: sizes, order of channels, mean and std.
    """
    specs = [image_spec(one[0]) for one in (train, deploy)]
    mine, other = (_sections(one) for one in (train, deploy))
    for section, told in (("decode", _decoded), ("color", _colored), ("resize", _resized)):
        ours, theirs = _inner(mine, section), _inner(other, section)
        if ours != theirs:
            for name in told(ours, theirs):
                yield _made(
                    name,
                    section,
                    ours,
                    theirs,
                    _recipe(ours, theirs) if section == "resize" else "",
                )
    yield from _turned(_inner(mine, "decode"), _inner(other, "decode"))
    places = geometry_of(train[0], card), geometry_of(deploy[0], card)
    if places[0].identity() != places[1].identity():
        ours, theirs = _inner(mine, "geometry"), _inner(other, "geometry")
        yield _made(_placed(*places), "geometry", ours, theirs, _place(places[0]))
    orders = [card.input.order if s.color.order == "model" else s.color.order for s in specs]
    if orders[0] != orders[1]:
        change: dict[str, object] = {"color.order": specs[0].color.order}
        code = f"give the network {orders[0].upper()}: OpenCV reads BGR, Pillow RGB"
        yield Difference("channels are swapped", code, change)
    right, got = (Numbers(*statistics(one[0], card.input)) for one in (train, deploy))
    fit = Affine(np.diag(1 / got.std), -got.mean / got.std, 0.0, 0.0, 0.0, 0.0, 1e-5)
    for slip in normalization.named(fit, right, card.input.order.upper()):
        numbers = {"normalize.mean": right.mean.tolist(), "normalize.std": right.std.tolist()}
        yield Difference(slip.name, slip.code, numbers)


def _sections(chosen: ResolvedProfile) -> Sections:
    """The sections of a profile, with what its backends take for what is not written."""
    profile, choices = chosen
    found = image_spec(profile).model_dump(mode="json", by_alias=True, exclude_none=True)
    for stage in (Stage.DECODE, Stage.RESIZE):
        found[stage] = {**found[stage], **choices[stage].options}
    return found


def _inner(whole: Sections, section: str) -> Sections:
    found = whole.get(section)
    return found if isinstance(found, Mapping) else {}


def _made(
    name: str, section: str, ours: Sections, theirs: Sections, recipe: str = ""
) -> Difference:
    apart = [key for key in {**theirs, **ours} if ours.get(key) != theirs.get(key)]
    left = [key for key in apart if key not in _ALONE]
    change = {f"{section}.{key}": ours.get(key) for key in left}
    written = ", ".join(f"{key} {_word(ours.get(key))}" for key in left)
    return Difference(name, f"{section} as in training: {recipe or written}", change)


def _recipe(ours: Sections, theirs: Sections) -> str:
    """What the training's resize does, with all in which the deployment's is another."""
    smooth = ours.get("antialias")
    words = [str(ours["backend"]), str(ours["interpolation"])]
    words += [f"antialiasing {'on' if smooth else 'off'}"] if isinstance(smooth, bool) else []
    said = ("backend", "interpolation", "antialias")
    more = [key for key in ours if key not in said and ours[key] != theirs.get(key)]
    return ", ".join([*words, *(f"{key} {_word(ours[key])}" for key in more)])


def _place(of: Geometry) -> str:
    """What a geometry does."""
    size = _sizes(of)
    how = {
        "short_side_crop": f"resize the short side to {of.short_side}, then crop the center",
        "squash_crop": f"resize to {of.short_side} x {of.short_side}, then crop the center",
        "squash": "resize both sides, whatever their ratio,",
        "letterbox": f"resize the long side to fit, then pad {_WHERE[of.position]} with "
        f"{of.value},",
        "keep_ratio": f"resize the short side to {of.shortest}, the long one to {of.longest} at "
        "most, then pad right and below",
        "native": "resize nothing, pad right and below",
    }[of.kind]
    cut = "crop before the resize, then " if of.crop_before_resize else ""
    crop = f", rounded as {of.rounding} does" if "crop" in of.kind else ""
    return f"{cut}{how} to {size}{crop}"


def _sizes(of: Geometry) -> str:
    """In which sizes the network is fed."""
    if of.multiple_of:
        return f"multiples of {of.multiple_of}"
    words = [f"{rows} x {columns}" for rows, columns in of.sizes or [(of.height, of.width)]]
    return f"{' or '.join(words)} (rows x columns)"


def _word(value: object) -> str:
    return "none" if value is None else str(value)


def _turned(ours: Sections, theirs: Sections) -> Iterator[Difference]:
    both = ours.get("exif"), theirs.get("exif")
    change = {"decode.exif": both[0]}
    if both == ("apply", "ignore"):
        yield Difference("EXIF ignored", "turn images by their EXIF flag", change)
    elif both == ("ignore", "apply"):
        name = "EXIF applied, unlike in training"
        yield Difference(name, "do not turn images by their EXIF flag", change)


def _decoded(ours: Sections, theirs: Sections) -> Iterator[str]:
    fancy = ours.get("chroma_upsampling"), theirs.get("chroma_upsampling")
    dct = ours.get("idct"), theirs.get("idct")
    if fancy == ("fancy", "plain"):
        yield "decoder: fancy upsampling off"
    elif fancy == ("plain", "fancy"):
        yield "decoder: fancy upsampling on"
    elif dct[0] != dct[1] and None not in dct:
        yield f"decoder: inverse DCT {dct[1]} in place of {dct[0]}"
    elif ours.get("backend") != theirs.get("backend"):
        yield f"decoder: {theirs['backend']} in place of {ours['backend']}"


def _colored(ours: Sections, theirs: Sections) -> Iterator[str]:
    if ours.get("format") != theirs.get("format"):
        yield f"colors are carried as {theirs['format']} in place of {ours['format']}"
        return
    for step in ("convert", "encode"):
        one, two = _inner(ours, step), _inner(theirs, step)
        if one != two:
            yield f"colors: {step} {_apart(one, two)}"
    if ours.get("source") != theirs.get("source"):
        yield f"YUV: {theirs['source']} in place of {ours['source']}"
    if ours.get("odd_size") != theirs.get("odd_size"):
        yield f"odd rows and columns: {theirs['odd_size']} in place of {ours['odd_size']}"


def _resized(ours: Sections, theirs: Sections) -> Iterator[str]:
    names = []
    if ours.get("domain") != theirs.get("domain"):
        domains = (str(one["domain"]).upper() for one in (theirs, ours))
        names.append(f"resized in {' in place of '.join(domains)}")
    mine, grid = (str(one.get("coordinates")) for one in (ours, theirs))
    if mine != grid and grid in _GRIDS:
        names.append(_GRIDS[grid])
    elif mine != grid and mine in _GRIDS:
        names.append(f"sampled at pixel centers, where training is {_GRIDS[mine]}")
    kernels = ours["interpolation"], theirs["interpolation"]
    if kernels[0] != kernels[1]:
        names.append(f"{kernels[1]} in place of {kernels[0]}")
    smooth = ours.get("antialias"), theirs.get("antialias")
    if smooth == (True, False):
        names.append("no antialiasing")
    elif smooth == (False, True) and kernels[1] != "area":  # which always does
        names.append("antialiasing, which training has not")
    if not names and ours["backend"] != theirs["backend"]:
        names.append(f"resized by {theirs['backend']} in place of {ours['backend']}")
    yield ", ".join(names) if names else f"resize: {_apart(ours, theirs)}"


def _apart(ours: Sections, theirs: Sections) -> str:
    """The fields in which two sections differ."""
    return ", ".join(
        f"{key} {_word(theirs.get(key))} in place of {_word(ours.get(key))}"
        for key in {**theirs, **ours}
        if ours.get(key) != theirs.get(key)
    )


def _placed(ours: Geometry, theirs: Geometry) -> str:
    """What is wrong with the geometry."""
    if ours.kind != theirs.kind:
        one, two = (
            f"{'crop of the image and ' * bool(place.crop_before_resize)}{_KINDS[place.kind]}"
            for place in (ours, theirs)
        )
        return f"{two} in place of {one}"
    if ours.kind == "letterbox" and (ours.position, ours.value) != (theirs.position, theirs.value):
        mine, other = (f"{_WHERE[one.position]} with {one.value}" for one in (ours, theirs))
        return f"padding {other} in place of {mine}"
    if ours.short_side != theirs.short_side:
        return f"short side {theirs.short_side} in place of {ours.short_side}"
    if ours.crop_before_resize != theirs.crop_before_resize:
        cut = [str(one.crop_before_resize) for one in (ours, theirs)]
        return f"crop before the resize: {cut[1]} in place of {cut[0]}"
    if ours.rounding == theirs.rounding:
        return f"an input of {_sizes(theirs)} in place of {_sizes(ours)}"
    return f"crop rounding {theirs.rounding} in place of {ours.rounding}"
