"""The gallery: for a few images the decoded picture and the networks' input tensors.

The tensors are kept while a sample is processed, and drawn at the end of the run, when it is known
which samples are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.contract import U8, Array, ImageWriter, Stage
from simulator.contract.recipe import Boundary, Chain
from simulator.errors import SampleError, UserError, one_line
from simulator.experiments.controls import difference
from simulator.experiments.pictures import feature_maps
from simulator.experiments.pictures.decoded import decoding
from simulator.experiments.pictures.looks import Look, Looks, stem_of
from simulator.experiments.pictures.pictures import ShownPair
from simulator.experiments.session import Session
from simulator.modalities.image.front_end import deviations, statistics
from simulator.modalities.image.shown import eight_bits, levels, thumbnail, window
from simulator.pipeline import recorded
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.axes import is_of_front_end, swap
from simulator.results.layout import LOOKS
from simulator.results.store import RunWriter


@dataclass(slots=True)
class ImageSeen:
    """The data for the gallery entry of one image.

    Attributes:
        picture: (H, W, 3) uint8, as a stack decoded it, reduced; None where both stacks were
            recorded.
        scale: each pixel of the picture is the mean of scale x scale pixels.
        tensors: the value at the end of each chain, by the chain's name.
        maps: for each pair of graphs and each node: the pair, the node's label and both maps.
        notes: what could not be kept, and why.
    """

    picture: U8 | None = None
    scale: int | None = None
    tensors: dict[str, Array] = field(default_factory=dict)
    maps: list[tuple[feature_maps.Pair, str, Array, Array]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Gallery(Looks[ImageSeen]):
    """The chains that the gallery needs besides the arms of a pair, and how to show tensors.

    Attributes:
        input: the ``input`` section of the model card.
        chains: to the network's input: of ``train``, ``deploy`` and each preprocessing axis alone.
        picture: from the file to RGB; None where both stacks were recorded.
        statistics: mean and std of the training stack, (3,) on 0-255; all tensors are shown with
            them.
        scale: that std, shaped to be multiplied with a tensor.
        pairs: pairs of graphs whose feature maps are kept.
        missing: what is shown for no image, and why.
        prefix: of the chains' names in the plan.
    """

    input: Any
    chains: Mapping[str, Chain]
    picture: Chain | None
    statistics: tuple[Array, Array]
    scale: Array
    pairs: tuple[feature_maps.Pair, ...]
    missing: tuple[str, ...]
    prefix: str
    kind = "image"

    def asides(self) -> dict[str, Chain]:
        """Return the chains by their names in the plan."""
        found = {f"{self.prefix}{name}": chain for name, chain in self.chains.items()}
        if self.picture is not None:
            found[f"{self.prefix}picture"] = self.picture
        if "train" in self.chains:
            for pair in self.pairs:
                found |= pair.asides(self.chains["train"], self.prefix)
        return found

    def see(self, walk: Walk) -> ImageSeen:
        """Return the data of one image; an error becomes a note and does not stop the run."""
        seen = ImageSeen()
        try:
            self._see(walk, seen)
        except Exception as error:  # a missing picture must not lose the results of a run
            seen.notes.append(f"the rest is not shown: {one_line(error)}")
        return seen

    def _see(self, walk: Walk, seen: ImageSeen) -> None:
        if self.picture is not None:
            seen.picture, seen.scale = thumbnail(walk.aside(f"{self.prefix}picture").rgb)
        for name in self.chains:
            try:
                value = walk.aside(f"{self.prefix}{name}")
                if isinstance(value, np.ndarray):
                    seen.tensors[name] = value
                else:
                    seen.notes.append(f"{name}: not shown: its front end goes on to the answer")
            except SampleError as error:
                seen.notes.append(f"{name}: not shown: {one_line(error)}")
        if "train" in seen.tensors:
            for pair in self.pairs:
                for label, before, after in pair.see(walk, self.prefix):
                    seen.maps.append((pair, label, before, after))

    def empty(self, *notes: str) -> ImageSeen:
        """Return the data of an image of which nothing could be kept."""
        return ImageSeen(notes=[*notes])

    def write(
        self, shown: Sequence[Look[ImageSeen]], files: ImageWriter, workers: int, run: RunWriter
    ) -> list[dict[str, Any]]:
        """Write the pictures; return for each image an entry of the summary.

        An entry has ``sample`` and ``why``; ``picture``, as a stack decoded it, each pixel the
        mean of ``scale`` x ``scale``; ``size``, the network's rows and columns, and ``window``,
        how many of them the pictures show, cut from the middle, None for all; ``train`` and
        ``deploy``, the tensors as 8-bit pictures; ``difference`` of the two, and ``axes``, each
        swapped alone into the training stack, with its ``picture``: ``values_changed`` (share, 0
        to 1), ``mean`` and ``max`` absolute difference in levels of 0-255, of the whole tensors in
        floating point; ``maps``, see :func:`simulator.experiments.pictures.feature_maps.compared`;
        ``notes`` on the image, and what is ``missing`` for every image. Paths are below the run
        folder, None where there is no such picture.
        """

        def draw(number: int, name: str, why: str, seen: ImageSeen) -> _Entry:
            return _drawn(self, number, name, why, seen, files)

        with ThreadPoolExecutor(workers) as pool:
            drawn = list(pool.map(draw, range(1, len(shown) + 1), *zip(*shown, strict=True)))
        for entry in drawn:
            for name, content in entry.files.items():
                run.write_file(name, content)
        return [entry.entry for entry in drawn]


def gallery(pair: ShownPair) -> Gallery:
    """Plan the gallery."""
    session, stacks, differing = pair.session, pair.stacks, pair.differing
    card, train = session.card, stacks[0]
    missing: list[str] = []
    chains = _chains(session, stacks, differing, missing)
    maps = []
    for axes in feature_maps.axis_groups(pair):
        try:
            graphs = pair.opened.enter_context(feature_maps.opened(pair, axes))
        except Exception as error:  # a runtime may raise anything
            missing.append(f"{'+'.join(axes)}: no feature maps: {one_line(error)}")
            continue
        maps += [graphs] if graphs else []
    decoders = [(stack.side, made) for stack in stacks if (made := decoding(stack))]
    first, picture = decoders[0] if decoders else (None, None)
    if picture is None:
        missing.append("the images are not shown: both stacks were recorded")
    elif first != train.side:
        missing.append(f"{train.side} was recorded: the images are shown as {first} decoded them")
    return Gallery(
        card.spec.input,
        chains,
        picture,
        statistics(train.profile, card.spec.input),
        deviations(train.profile, card.spec),
        tuple(maps),
        tuple(missing),
        f"{pair.prefix}look ",
    )


def _chains(
    session: Session, stacks: Sequence[Stack], differing: Sequence[str], missing: list[str]
) -> dict[str, Chain]:
    """The chains to the network's input of both stacks, and of each preprocessing axis alone."""
    chains: dict[str, Chain] = {}
    for stack in stacks:
        if recorded.recording(stack.profile, stack.choices, Stage.RUNTIME):
            missing.append(f"the input of {stack.side} is not shown: its outputs were recorded")
        else:
            chains[stack.side] = stack.chain.until(Boundary.INPUT)
    why: dict[str, list[str]] = {}
    for axis in (axis for axis in differing if is_of_front_end(axis, stacks[0].profile)):
        try:
            mixed = swap(stacks[0].profile, stacks[1].profile, [axis])
            alone = session.builder.front_end(*mixed)
            chains[axis] = replace(alone, into=stacks[0].chain.network)
        except UserError as error:
            why.setdefault(one_line(error), []).append(axis)
    missing += [f"{', '.join(axes)} alone: not shown: {reason}" for reason, axes in why.items()]
    return chains


@dataclass(slots=True)
class _Entry:
    """One image: its entry in the summary, and its files; equal pictures share a file."""

    folder: str
    entry: dict[str, Any]
    writer: ImageWriter
    files: dict[str, bytes] = field(default_factory=dict)
    _paths: dict[tuple[tuple[int, ...], bytes], str] = field(default_factory=dict)

    def put(self, name: str, pixels: U8) -> str:
        """Add a picture and return its path below the run folder."""
        path = f"{self.folder}/{name}.png"
        known = self._paths.setdefault((pixels.shape, pixels.tobytes()), path)
        if known == path:
            self.files[path] = self.writer.png(pixels)
        return known


def _drawn(
    plan: Gallery, number: int, name: str, why: str, seen: ImageSeen, writer: ImageWriter
) -> _Entry:
    shape = next((one.shape[1:] for one in seen.tensors.values()), (0, 0, 0))
    size = [side for side, axis in zip(shape, plan.input.layout[1:], strict=True) if axis != "C"]
    entry: dict[str, Any] = {
        "sample": name, "why": why, "picture": None, "scale": None, "size": size, "window": None,
        "train": None, "deploy": None, "difference": None, "axes": {}, "maps": [],
        "notes": list(seen.notes), "missing": list(plan.missing),
    }  # fmt: skip
    found = _Entry(f"{LOOKS}/{number:02}-{stem_of(name, 'image')}", entry, writer)
    try:
        if seen.picture is not None:
            entry |= {"picture": found.put("picture", seen.picture), "scale": seen.scale}
        for side, tensor in seen.tensors.items():
            _show(plan, found, side, tensor, seen.tensors.get("train"))
        numbers: dict[str, int] = {}
        for pair, label, before, after in seen.maps:
            numbers[pair.axis] = numbers.get(pair.axis, 0) + 1
            _map(found, pair, numbers[pair.axis], label, before, after)
    except Exception as error:  # a missing picture must not lose the results of a run
        entry["notes"].append(f"the rest is not shown: {one_line(error)}")
    return found


def _show(plan: Gallery, found: _Entry, name: str, tensor: Array, base: Array | None) -> None:
    values = levels(tensor, plan.input, plan.statistics)
    shown, clipped, lost = eight_bits(values)
    middle = window(shown)
    if middle.shape != shown.shape:
        found.entry["window"] = list(middle.shape[:2])
    path = found.put(name, middle)
    of = f"of its {values.size:,} values"
    if clipped:
        words = f"{name}: {clipped:,} {of} are outside 0 to 255 and are clipped in its picture"
        found.entry["notes"].append(words)
    if lost:
        found.entry["notes"].append(f"{name}: {lost:,} {of} are not finite and are shown as 0")
    numbers = None
    if base is not None and base.shape == tensor.shape:
        kinds = ("values_changed", "mean", "max")
        numbers = dict(zip(kinds, difference(base, tensor, plan.scale), strict=True))
    if name in ("train", "deploy"):
        found.entry[name] = path
        if name == "deploy":
            found.entry["difference"] = numbers
    else:
        found.entry["axes"][name] = {"picture": path, **(numbers or {})}


def _map(
    found: _Entry, pair: feature_maps.Pair, number: int, label: str, before: Array, after: Array
) -> None:
    numbers, pictures = feature_maps.compared(before, after)
    kept = {
        kind: found.put(f"{pair.axis}-{number}-{kind}", pixels) for kind, pixels in pictures.items()
    }
    kept["picture"] = kept.pop("difference")
    named = {"axis": pair.axis, "node": label, "first": number == 1, "by": pair.by}
    found.entry["maps"].append(named | kept | numbers)
