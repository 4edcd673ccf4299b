"""What the noise looks like: of a few images the picture, and the tensors that networks saw.

Planned with the rest: the tensors are kept while a sample is walked, and drawn when it is known
which samples are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8, Array, ImageWriter, Stage
from simulator.contract.recipe import Boundary, Chain
from simulator.errors import SampleError, UserError, one_line
from simulator.experiments import feature_maps
from simulator.experiments.controls import difference
from simulator.experiments.flip_pictures import decoding
from simulator.experiments.pixels import eight_bits, thumbnail, window
from simulator.experiments.session import Session
from simulator.modalities.image.front_end import deviations, statistics
from simulator.pipeline import recorded
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.axes import is_of_front_end, swap
from simulator.results.store import LOOKS, RunWriter

IMAGES = 4
WORST, FIRST = "worst flip", "one of the first images"


@dataclass(slots=True)
class Look:
    """What was seen of one image: by the names of the chains, and of the feature maps.

    Attributes:
        picture: as a stack decoded it, smaller; None where the devices had it.
        scale: each pixel of the picture is the mean of so many squared.
        tensors: at the end of each chain.
        maps: of each pair of graphs, each node with both maps.
        notes: what could not be seen, and why.
    """

    picture: U8 | None = None
    scale: int | None = None
    tensors: dict[str, Array] = field(default_factory=dict)
    maps: list[tuple[feature_maps.Pair, str, Array, Array]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Gallery:
    """Which chains are looked at beside the arms of a pair, and how tensors become pictures.

    Attributes:
        input: the section of the card.
        chains: to the network's input: of ``train``, ``deploy`` and each pixel axis.
        picture: from the file to RGB; None where the devices had it.
        statistics: mean and std of the training stack, by which all tensors are read.
        scale: its std, shaped to undo it on a tensor.
        pairs: of graphs whose feature maps are kept.
        missing: what is not shown of any image, and why.
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

    def asides(self) -> dict[str, Chain]:
        """Return the chains that are looked at, by their names in the plan."""
        found = {f"{self.prefix}{name}": chain for name, chain in self.chains.items()}
        if self.picture is not None:
            found[f"{self.prefix}picture"] = self.picture
        if "train" in self.chains:
            for pair in self.pairs:
                found |= pair.asides(self.chains["train"], self.prefix)
        return found

    def see(self, walk: Walk) -> Look:
        """Look at one image; whatever goes wrong is noted, and is no reason to lose a run."""
        look = Look()
        try:
            self._see(walk, look)
        except Exception as error:  # the answers are there, and worth more than their pictures
            look.notes.append(f"not shown further: {one_line(error)}")
        return look

    def _see(self, walk: Walk, look: Look) -> None:
        if self.picture is not None:
            look.picture, look.scale = thumbnail(walk.aside(f"{self.prefix}picture").rgb)
        for name in self.chains:
            try:
                look.tensors[name] = walk.aside(f"{self.prefix}{name}")
            except SampleError as error:
                look.notes.append(f"{name}: not shown: {one_line(error)}")
        if "train" in look.tensors:
            for pair in self.pairs:
                for label, before, after in pair.see(walk, self.prefix):
                    look.maps.append((pair, label, before, after))

    def levels(self, tensor: Array) -> NDArray[np.float64]:
        """(H, W, 3) R, G, B in levels of 0-255, as a network trained on *train* takes them."""
        rows = tensor[0].transpose(1, 2, 0) if self.input.layout == "NCHW" else tensor[0]
        mean, std = self.statistics
        levels: NDArray[np.float64] = rows.astype(np.float64) * std + mean
        return levels if self.input.order == "rgb" else levels[..., ::-1]


def gallery(
    session: Session,
    stacks: Sequence[Stack],
    differing: Sequence[str],
    prefix: str,
    opened: ExitStack,
) -> Gallery:
    """Plan what is kept of a few images.

    Args:
        session: the model and the images.
        stacks: train and deploy.
        differing: the axes on which they differ.
        prefix: of the chains' names in the plan.
        opened: closes what feature maps need.
    """
    card, train = session.card, stacks[0]
    missing: list[str] = []
    chains = _chains(session, stacks, differing, missing)
    pairs = []
    for axis in (axis for axis in feature_maps.AXES if axis in differing):
        try:
            pair = opened.enter_context(feature_maps.opened(session, stacks, axis))
        except Exception as error:  # a library's own reason is about the model
            missing.append(f"{axis}: no feature maps: {one_line(error)}")
            continue
        pairs += [pair] if pair else []
    decoders = [(stack.side, made) for stack in stacks if (made := decoding(stack))]
    first, own = decoders[0] if decoders else (None, None)
    if own is None:
        missing.append("the pictures are not kept: both stacks were recorded")
    elif first != train.side:
        missing.append(f"{train.side} was recorded: the pictures are as {first} decoded")
    return Gallery(
        card.spec.input,
        chains,
        own,
        statistics(train.profile, card.spec.input),
        deviations(train.profile, card.spec),
        tuple(pairs),
        tuple(missing),
        prefix,
    )


def _chains(
    session: Session, stacks: Sequence[Stack], differing: Sequence[str], missing: list[str]
) -> dict[str, Chain]:
    """The steps to the network's input of both stacks, and of each pixel axis alone."""
    chains: dict[str, Chain] = {}
    for stack in stacks:
        if recorded.recording(stack.profile, stack.choices, Stage.RUNTIME):
            missing.append(f"what {stack.side} saw is not kept: its answers were recorded")
        else:
            chains[stack.side] = stack.chain.until(Boundary.INPUT)
    why: dict[str, list[str]] = {}
    for axis in (axis for axis in differing if is_of_front_end(axis, stacks[0].profile)):
        try:
            mixed = swap(stacks[0].profile, stacks[1].profile, [axis])
            chains[axis] = session.builder.front_end(*mixed)
        except UserError as error:
            why.setdefault(one_line(error), []).append(axis)
    missing += [f"{', '.join(axes)} alone, not kept: {reason}" for reason, axes in why.items()]
    return chains


@dataclass(slots=True)
class _Entry:
    """One image: its entry in the summary, and its files; equal pictures share one."""

    folder: str
    entry: dict[str, Any]
    writer: ImageWriter
    files: dict[str, bytes] = field(default_factory=dict)
    _paths: dict[tuple[tuple[int, ...], bytes], str] = field(default_factory=dict)

    def put(self, name: str, pixels: U8) -> str:
        """Keep a picture and return its path below the run folder."""
        path = f"{self.folder}/{name}.png"
        known = self._paths.setdefault((pixels.shape, pixels.tobytes()), path)
        if known == path:
            self.files[path] = self.writer.png(pixels)
        return known


def hang(
    plan: Gallery,
    shown: Sequence[tuple[str, str, Look]],
    writer: ImageWriter,
    workers: int,
    run: RunWriter,
) -> list[dict[str, Any]]:
    """Draw what was seen into the run.

    Args:
        plan: how tensors become pictures.
        shown: name, reason and look of each image.
        writer: of PNG files.
        workers: images drawn at once.
        run: where the pictures go.

    Returns:
        Of each image: ``sample`` and ``why``; ``picture``, as a stack decoded it, each pixel the
        mean of ``scale`` x ``scale``; ``size``, the network's rows and columns, and ``window``,
        those of the middle that are kept, None for all; ``train`` and ``deploy``, the tensors as
        8-bit pictures; ``difference`` of the two, and ``axes``, each swapped alone into the
        training stack, with its ``picture``: ``values_changed`` as a share, ``mean`` and ``max``
        absolute difference in levels of 0-255, of the whole tensors in floating point; ``maps``,
        see :func:`simulator.experiments.feature_maps.compared`; ``notes`` on the image, and what
        is ``missing`` of every image. Paths are below the run folder, None where there is no such
        picture.
    """

    def draw(number: int, name: str, why: str, look: Look) -> _Entry:
        return _drawn(plan, number, name, why, look, writer)

    with ThreadPoolExecutor(workers) as pool:
        drawn = list(pool.map(draw, range(1, len(shown) + 1), *zip(*shown, strict=True)))
    for one in drawn:
        for name, content in one.files.items():
            run.write_file(name, content)
    return [one.entry for one in drawn]


def _drawn(
    plan: Gallery, number: int, name: str, why: str, look: Look, writer: ImageWriter
) -> _Entry:
    entry: dict[str, Any] = {
        "sample": name, "why": why, "picture": None, "scale": None,
        "size": [plan.input.height, plan.input.width], "window": None,
        "train": None, "deploy": None, "difference": None, "axes": {}, "maps": [],
        "notes": list(look.notes), "missing": list(plan.missing),
    }  # fmt: skip
    found = _Entry(f"{LOOKS}/{number:02}-{_stem(name)}", entry, writer)
    try:
        if look.picture is not None:
            entry |= {"picture": found.put("picture", look.picture), "scale": look.scale}
        for side, tensor in look.tensors.items():
            _show(plan, found, side, tensor, look.tensors.get("train"))
        numbers: dict[str, int] = {}
        for pair, label, before, after in look.maps:
            numbers[pair.axis] = numbers.get(pair.axis, 0) + 1
            _map(found, pair, numbers[pair.axis], label, before, after)
    except Exception as error:  # as above
        entry["notes"].append(f"not shown further: {one_line(error)}")
    return found


def _show(plan: Gallery, found: _Entry, name: str, tensor: Array, base: Array | None) -> None:
    levels = plan.levels(tensor)
    shown, clipped, lost = eight_bits(levels)
    middle = window(shown)
    if middle.shape != shown.shape:
        found.entry["window"] = list(middle.shape[:2])
    path = found.put(name, middle)
    of = f"of its {levels.size:,} values"
    if clipped:
        words = f"{name}: {clipped:,} {of} are outside 0 to 255, and clipped in its picture"
        found.entry["notes"].append(words)
    if lost:
        found.entry["notes"].append(f"{name}: {lost:,} {of} are no numbers, and shown as 0")
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


def _stem(name: str) -> str:
    """A part of a folder's name that any file system takes."""
    stem = name.rpartition("/")[2].rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip(".")[:60] or "image"
