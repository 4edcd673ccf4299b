"""What the noise looks like: of a few images the picture, and the tensors that networks saw."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8, Array, Decoder, Stage
from simulator.data.folder import Item, read
from simulator.errors import SampleError, UserError, one_line
from simulator.experiments import feature_maps
from simulator.experiments.controls import difference
from simulator.experiments.flip_pictures import decoder
from simulator.experiments.pixels import eight_bits, png, thumbnail, window
from simulator.experiments.session import Session
from simulator.modalities.image.front_end import deviations, preprocessing, statistics
from simulator.model.card import Input
from simulator.pipeline import recorded
from simulator.pipeline.executor import Budget, Done, need
from simulator.pipeline.plan import Plan, Sample, Step, plan
from simulator.pipeline.stack import Stack
from simulator.profile.axes import is_of_front_end, swap
from simulator.results.store import LOOKS, RunWriter

IMAGES = 4
WORST, FIRST = "worst flip", "one of the first images"


def keep(
    session: Session,
    stacks: Sequence[Stack],
    differing: Sequence[str],
    done: Sequence[Done],
    summary: dict[str, Any],
    run: RunWriter,
) -> None:
    """Keep pictures of what the networks saw of a few images, and say in the summary where.

    Args:
        session: the model and the images.
        stacks: train and deploy.
        differing: the axes on which they differ.
        done: the run; images that were skipped are not shown.
        summary: its ``worst_flips`` come first, then the first images. Gets ``looks``, of each
            image: ``sample`` and ``why``; ``picture``, as a stack decoded it, each pixel the mean
            of ``scale`` x ``scale``; ``size``, the network's rows and columns, and ``window``,
            those of the middle that are kept, None for all; ``train`` and ``deploy``, the tensors
            as 8-bit pictures; ``difference`` of the two, and ``axes``, each swapped alone into
            the training stack, with its ``picture``: ``values_changed`` as a share, ``mean`` and
            ``max`` absolute difference in levels of 0-255, of the whole tensors in floating
            point; ``maps``, see :func:`simulator.experiments.feature_maps.compared`;
            ``notes`` on the image, and what is ``missing`` of every image. Paths are below the
            run folder, None where there is no such picture.
        run: where the pictures go.
    """
    session.show.say("keeping what the networks saw")
    chosen = _chosen(summary["worst_flips"], done)
    with ExitStack() as open_graphs:
        eye = _eye(session, stacks, differing, open_graphs)
        with ThreadPoolExecutor(session.workers) as pool:
            looks = list(pool.map(eye.look, range(1, len(chosen) + 1), *zip(*chosen, strict=True)))
    for look in looks:
        for name, content in look.files.items():
            run.write_file(name, content)
    summary["looks"] = [look.entry for look in looks]


def _chosen(flips: Sequence[Mapping[str, Any]], done: Sequence[Done]) -> list[tuple[Item, str]]:
    ran = {d.item.name: d.item for d in done if d.skipped is None}
    whys = {flip["sample"]: WORST for flip in flips}
    for name in ran:
        whys.setdefault(name, FIRST)
    return [(ran[name], why) for name, why in whys.items()][:IMAGES]


@dataclass(slots=True)
class _Look:
    """One image: its entry in the summary, and its files; equal pictures share one."""

    folder: str
    entry: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)
    _paths: dict[tuple[tuple[int, ...], bytes], str] = field(default_factory=dict)

    def put(self, name: str, pixels: U8) -> str:
        """Keep a picture and return its path below the run folder."""
        path = f"{self.folder}/{name}.png"
        known = self._paths.setdefault((pixels.shape, pixels.tobytes()), path)
        if known == path:
            self.files[path] = png(pixels)
        return known


@dataclass(frozen=True, slots=True)
class _Eye:
    """Looks at one image after the other.

    Attributes:
        input: the tensor that the network takes.
        merged: the plan of the chains to the network's input.
        chains: what they are called: ``train``, ``deploy`` and axes.
        decoder: of the picture; None where the devices had it.
        statistics: mean and std of the training stack, by which all tensors are read.
        scale: its std, shaped to undo it on a tensor.
        pairs: of graphs whose feature maps are kept.
        budget: memory that images at work may need together.
        missing: what is not shown of any image, and why.
    """

    input: Input
    merged: Plan
    chains: tuple[str, ...]
    decoder: Decoder | None
    statistics: tuple[Array, Array]
    scale: Array
    pairs: tuple[feature_maps.Pair, ...]
    budget: Budget
    missing: tuple[str, ...]

    def look(self, number: int, item: Item, why: str) -> _Look:
        """Look at one image; whatever goes wrong is noted, and is no reason to lose a run."""
        entry: dict[str, Any] = {
            "sample": item.name, "why": why, "picture": None, "scale": None,
            "size": [self.input.height, self.input.width], "window": None,
            "train": None, "deploy": None, "difference": None, "axes": {}, "maps": [],
            "notes": [], "missing": list(self.missing),
        }  # fmt: skip
        look = _Look(f"{LOOKS}/{number:02}-{_stem(item.name)}", entry)
        try:
            self._see(look, item)
        except Exception as error:  # the answers are there, and worth more than their pictures
            entry["notes"].append(f"not shown further: {one_line(error)}")
        return look

    def _see(self, look: _Look, item: Item) -> None:
        image = read(item)
        with self.budget.take(need(self.merged, image)):
            if self.decoder is not None:
                small, scale = thumbnail(self.decoder.rgb(image).rgb)
                look.entry |= {"picture": look.put("picture", small), "scale": scale}
            tensors, failed = _tensors(self.merged, self.chains, Sample(item, image))
        look.entry["notes"] += [f"{name}: not shown: {why}" for name, why in failed.items()]
        for name, tensor in tensors.items():
            self._show(look, name, tensor, tensors.get("train"))
        if "train" in tensors:
            for pair in self.pairs:
                self._map(look, pair, tensors["train"])

    def _show(self, look: _Look, name: str, tensor: Array, base: Array | None) -> None:
        levels = self._levels(tensor)
        shown, clipped, lost = eight_bits(levels)
        middle = window(shown)
        if middle.shape != shown.shape:
            look.entry["window"] = list(middle.shape[:2])
        path = look.put(name, middle)
        of = f"of its {levels.size:,} values"
        if clipped:
            words = f"{name}: {clipped:,} {of} are outside 0 to 255, and clipped in its picture"
            look.entry["notes"].append(words)
        if lost:
            look.entry["notes"].append(f"{name}: {lost:,} {of} are no numbers, and shown as 0")
        numbers = None
        if base is not None and base.shape == tensor.shape:
            kinds = ("values_changed", "mean", "max")
            numbers = dict(zip(kinds, difference(base, tensor, self.scale), strict=True))
        if name in ("train", "deploy"):
            look.entry[name] = path
            if name == "deploy":
                look.entry["difference"] = numbers
        else:
            look.entry["axes"][name] = {"picture": path, **(numbers or {})}

    def _levels(self, tensor: Array) -> NDArray[np.float64]:
        """(H, W, 3) R, G, B in levels of 0-255, as a network trained on *train* takes them."""
        rows = tensor[0].transpose(1, 2, 0) if self.input.layout == "NCHW" else tensor[0]
        mean, std = self.statistics
        levels: NDArray[np.float64] = rows.astype(np.float64) * std + mean
        return levels if self.input.order == "rgb" else levels[..., ::-1]

    @staticmethod
    def _map(look: _Look, pair: feature_maps.Pair, tensor: Array) -> None:
        for number, (label, before, after) in enumerate(pair.of(tensor), start=1):
            numbers, pictures = feature_maps.compared(before, after)
            kept = {
                kind: look.put(f"{pair.axis}-{number}-{kind}", pixels)
                for kind, pixels in pictures.items()
            }
            kept["picture"] = kept.pop("difference")
            named = {"axis": pair.axis, "node": label, "first": number == 1, "by": pair.by}
            look.entry["maps"].append(named | kept | numbers)


def _eye(
    session: Session, stacks: Sequence[Stack], differing: Sequence[str], open_graphs: ExitStack
) -> _Eye:
    card, train = session.card, stacks[0]
    missing: list[str] = []
    chains = _chains(session, stacks, differing, missing)
    pairs = []
    for axis in (axis for axis in feature_maps.AXES if axis in differing):
        try:
            pair = open_graphs.enter_context(feature_maps.opened(session, stacks, axis))
        except Exception as error:  # a library's own reason is about the model
            missing.append(f"{axis}: no feature maps: {one_line(error)}")
            continue
        pairs += [pair] if pair else []
    decoders = [(stack.side, made) for stack in stacks if (made := decoder(stack))]
    first, own = decoders[0] if decoders else (None, None)
    if own is None:
        missing.append("the pictures are not kept: both stacks were recorded")
    elif first != train.side:
        missing.append(f"{train.side} was recorded: the pictures are as {first} decoded")
    return _Eye(
        card.spec.input,
        plan(list(chains.values())),
        tuple(chains),
        own,
        statistics(train.profile, card.spec.input),
        deviations(train.profile, card),
        tuple(pairs),
        Budget(session.memory),
        tuple(missing),
    )


def _chains(
    session: Session, stacks: Sequence[Stack], differing: Sequence[str], missing: list[str]
) -> dict[str, Sequence[Step]]:
    """The steps to the network's input of both stacks, and of each pixel axis alone."""
    chains: dict[str, Sequence[Step]] = {}
    for stack in stacks:
        if recorded.recording(stack.profile, stack.choices, Stage.RUNTIME):
            missing.append(f"what {stack.side} saw is not kept: its answers were recorded")
        else:
            chains[stack.side] = stack.steps[:-2]  # all but inference and answering
    why: dict[str, list[str]] = {}
    for axis in (axis for axis in differing if is_of_front_end(axis, stacks[0].profile)):
        try:
            mixed, choices = swap(stacks[0].profile, stacks[1].profile, [axis])
            chains[axis] = preprocessing(mixed, choices, session.card)
        except UserError as error:
            why.setdefault(one_line(error), []).append(axis)
    missing += [f"{', '.join(axes)} alone, not kept: {reason}" for reason, axes in why.items()]
    return chains


def _tensors(
    merged: Plan, names: Sequence[str], sample: Sample
) -> tuple[dict[str, Array], dict[str, str]]:
    """The value at the end of each chain, and why others have none."""
    values: list[Any] = []
    failed: dict[int, str] = {}
    for number, node in enumerate(merged.nodes):
        given = sample.image if node.parent is None else values[node.parent]
        values.append(None)
        if node.parent in failed:
            failed[number] = failed[node.parent]
            continue
        try:
            values[number] = node.step.apply(given, sample)
        except SampleError as error:
            failed[number] = f"{node.step.stage}: {one_line(error)}"
    ends = dict(zip(names, (path[-1] for path in merged.paths), strict=True))
    return (
        {name: values[end] for name, end in ends.items() if end not in failed},
        {name: failed[end] for name, end in ends.items() if end in failed},
    )


def _stem(name: str) -> str:
    """A part of a folder's name that any file system takes."""
    stem = name.rpartition("/")[2].rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip(".")[:60] or "image"
