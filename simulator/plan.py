"""The DAG of unique computations that a set of stacks needs.

Each stack is a chain of steps; chains that begin alike share their nodes, so what two stacks
have in common is computed once per image. The set may have any number of stacks.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.contract import (
    Array,
    Converter,
    Decoder,
    Encoded,
    Encoder,
    Frame,
    PixelFormat,
    Resizer,
    Runtime,
    Stage,
    clock,
    even,
    subsample,
)
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, one_line
from simulator.geometry import Geometry, Placement
from simulator.model.artifact import digest
from simulator.model.card import Card, Input
from simulator.orientation import UPRIGHT
from simulator.profile.choose import Choices
from simulator.profile.load import Profile
from simulator.tasks.task import Settings


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a network gave for one sample.

    Attributes:
        outputs: by the names of the model card.
        digest: BLAKE2b of their bytes in that order: equal digests, equal bits.
    """

    outputs: Mapping[str, Array]
    digest: str


def inferred(outputs: Mapping[str, Array]) -> Inferred:
    """Take outputs with their digest; the time that takes is no latency of the stack's."""
    start = time.perf_counter_ns()
    whole = hashlib.blake2b(digest_size=16)
    for array in outputs.values():
        whole.update(np.ascontiguousarray(array).data)
    digest = whole.hexdigest()
    clock.exclude(time.perf_counter_ns() - start)
    return Inferred(outputs, digest)


@dataclass(frozen=True, slots=True)
class Sample:
    """What every step may know besides the value that it takes.

    Attributes:
        item: where the image is, and what people have annotated.
        image: the file, and what its header says.
    """

    item: Item
    image: Encoded


Apply = Callable[[Any, Sample], Any]
Judge = Callable[[Sequence[Any], Any, Encoded], list[dict[str, Any]]]
"""From the stacks' predictions for an image, its truth and its file to a record per stack."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of one stack.

    Attributes:
        stage: the name that latency and messages use.
        identity: everything that its result depends on, besides its input; JSON.
        apply: the computation, from the previous step's value and the sample.
        same_input: whether equal inputs are worth looking for: identical tensors from
            different steps are then computed once per sample.
        resized: for a resize, the rows and columns that it makes of an image.
        timed: whether its time means anything; a look-up's does not.
    """

    stage: str
    identity: Any
    apply: Apply
    same_input: bool = False
    resized: Callable[[int, int], tuple[int, int]] | None = None
    timed: bool = True


@dataclass(frozen=True, slots=True)
class Node:
    """A step at its place in the DAG.

    Attributes:
        key: the digest of the step and of all steps before it.
        step: what is computed.
        parent: the index of the node whose value it takes; None: the encoded image.
        children: how many nodes take its value.
        twin: the digest of the step alone, where other nodes run the same step on inputs that
            may turn out to be equal; else None.
    """

    key: str
    step: Step
    parent: int | None
    children: int
    twin: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes in an order in which every parent comes first, and each stack's path through them.

    Attributes:
        nodes: the unique computations.
        paths: for each stack the indices of its nodes, first to last.
        judge: holds the predictions against the truth and the first stack's.
    """

    nodes: tuple[Node, ...]
    paths: tuple[tuple[int, ...], ...]
    judge: Judge

    def shared(self) -> list[str]:
        """Return the stages that all stacks share, computed once per image."""
        together = set(self.paths[0]).intersection(*self.paths[1:])
        stages = [self.nodes[i].step.stage for i in self.paths[0] if i in together]
        return list(dict.fromkeys(stages)) if len(self.paths) > 1 else []


def no_judge(predictions: Sequence[Any], truth: Any, image: Encoded) -> list[dict[str, Any]]:
    """Return empty records, for chains that end before a prediction."""
    return [{} for _ in predictions]


def plan(chains: Sequence[Sequence[Step]], judge: Judge = no_judge) -> Plan:
    """Merge chains of steps into one DAG."""
    index: dict[str, int] = {}
    steps: list[tuple[str, Step, int | None]] = []
    paths = []
    for chain in chains:
        parent: int | None = None
        path = []
        for step in chain:
            key = digest([steps[parent][0] if parent is not None else None, step.identity])
            if key not in index:
                index[key] = len(steps)
                steps.append((key, step, parent))
            parent = index[key]
            path.append(parent)
        paths.append(tuple(path))
    uses = [sum(p == i for _, _, p in steps) for i in range(len(steps))]
    alone = [digest(step.identity) if step.same_input else None for _, step, _ in steps]
    nodes = tuple(
        Node(key, step, parent, uses[i], alone[i] if alone.count(alone[i]) > 1 else None)
        for i, (key, step, parent) in enumerate(steps)
    )
    return Plan(nodes, tuple(paths), judge)


def preprocessing(profile: Profile, choices: Choices, card: Card) -> list[Step]:
    """Return the steps from a file's bytes to the network's input tensor.

    Args:
        profile: the stack.
        choices: the implementations behind it; their libraries are imported here.
        card: the model card.
    """
    color, resize = profile.spec.color, profile.spec.resize
    geometry = card.geometry(profile)
    _refuse_odd(profile, card, geometry)
    decoder: Decoder = choices[Stage.DECODE].make()
    resizer: Resizer = choices[Stage.RESIZE].make()
    planes = color.source == "planes"
    steps = [
        Step(
            "decode",
            ["decode", planes, choices[Stage.DECODE].identity()],
            lambda image, _: decoder.planes(image) if planes else decoder.rgb(image),
        )
    ]
    resampling = Step(
        "resize",
        ["resize", choices[Stage.RESIZE].identity(), geometry.identity(), color.odd_size],
        lambda frame, _: _resample(resizer, geometry, frame, color.odd_size),
        resized=geometry.resized,
    )
    if color.format == "rgb":
        steps.append(resampling)
    else:
        converter: Converter = choices[Stage.CONVERT].make()
        converting = Step(
            "color",
            ["convert", choices[Stage.CONVERT].identity()],
            lambda frame, _: converter.convert(frame),
        )
        steps.append(_to_yuv(profile, choices, planes))
        inside = resize.domain == "yuv"
        steps += [resampling, converting] if inside else [converting, resampling]
    mean, std = _statistics(profile, card.spec.input)
    order = color.order if color.order != "model" else card.spec.input.order
    layout = card.spec.input.layout
    return [
        *steps,
        Step(
            "geometry",
            ["fit", geometry.identity()],
            lambda frame, _: geometry.fit(frame.rgb),
        ),
        Step(
            "normalize",
            ["normalize", mean.tolist(), std.tolist(), order, layout],
            lambda rgb, _: normalize(rgb, mean, std, order, layout),
        ),
    ]


def _refuse_odd(profile: Profile, card: Card, geometry: Geometry) -> None:
    color = profile.spec.color
    odd = geometry.height % 2 or geometry.width % 2
    pairs = color.format not in ("rgb", "yuv444") and color.odd_size == "drop"
    if odd and pairs and profile.spec.resize.domain == "yuv" and geometry.kind == "squash":
        raise ModelError(
            f"{profile.where(('color', 'odd_size'))}: color.odd_size: drop resizes to pairs of "
            f"pixels, and {card.spec.name} takes {geometry.height}x{geometry.width}; "
            "write odd_size: keep, or resize.domain: rgb"
        )


def inference(runtime: Runtime, artifact_key: str, identity: Any, names: Mapping[str, str]) -> Step:
    """Return the step from the input tensor to the outputs.

    Args:
        runtime: the opened runtime.
        artifact_key: the digest of the file that it opened.
        identity: the runtime's options.
        names: of the outputs that are wanted, the runtime's name of each of the card's.
    """
    taken = runtime.inputs[0].name

    def apply(tensor: Array, _: Sample) -> Inferred:
        found = _infer(runtime, {taken: tensor})
        return inferred({name: found[own] for name, own in names.items()})

    return Step("infer", ["infer", artifact_key, identity, dict(names)], apply, same_input=True)


def answering(profile: Profile, card: Card) -> Step:
    """Return the step from the network's outputs to their digest and the prediction.

    Raises:
        ModelError: what the profile asks for does not fit what the card says.
    """
    settings, place = settings_of(profile, card), Placing(profile, card)
    return Step(
        "postprocess",
        ["postprocess", card.task.name, settings.identity(), place.identity()],
        lambda found, sample: (
            found.digest,
            card.task.decode(found.outputs, settings, place(sample.image)),
        ),
    )


def settings_of(profile: Profile, card: Card) -> Settings:
    """Return how a stack turns outputs into answers; what its geometry has no use for is neutral.

    Raises:
        ModelError: what the profile asks for does not fit what the card says.
    """
    asked, geometry = profile.spec.postprocess, card.geometry(profile)
    neutral = {}
    if geometry.kind == "squash":
        neutral["scale"] = "resized"
    if geometry.kind != "letterbox" or geometry.position != "center":
        neutral["offset"] = "integer"
    unletterbox = asked.unletterbox.model_copy(update=neutral)
    return card.task.settings(asked.model_copy(update={"unletterbox": unletterbox}))


class Placing:
    """Where an image comes to lie in the network's input, by the rules of a stack.

    Args:
        profile: the stack; the tensors of a recorded one are taken to follow it too.
        card: the model card.
    """

    def __init__(self, profile: Profile, card: Card) -> None:
        color = profile.spec.color
        self._geometry = card.geometry(profile)
        self._exif = profile.spec.decode.exif or "ignore"
        self._drop = color.format != "rgb" and color.odd_size == "drop"
        subsampled = color.format not in ("rgb", "yuv444")
        self._even = self._drop and subsampled and profile.spec.resize.domain == "yuv"

    def identity(self) -> Any:
        """Return what tells these rules from others."""
        return [self._geometry.identity(), self._exif, self._drop, self._even]

    def __call__(self, image: Encoded) -> Placement:
        """Return where an image comes to lie.

        Raises:
            SampleError: it would become too large.
        """
        height, width = image.size(self._exif)
        dropped = (height & 1, width & 1) if self._drop else (0, 0)
        height, width = height - dropped[0], width - dropped[1]
        resampled = _target(self._geometry, height, width, self._even)
        placed = self._geometry.placement((height, width), resampled)
        turned = image.orientation if self._exif == "apply" else UPRIGHT
        return replace(placed, dropped=dropped, orientation=turned)


def _infer(runtime: Runtime, feeds: dict[str, Array]) -> dict[str, Array]:
    try:
        return runtime.run(feeds)
    except (SampleError, ModelError):
        raise
    except Exception as error:  # whatever the library raises is about this model
        name = type(runtime).__name__
        raise ModelError(f"{name} cannot run the model: {one_line(error)}") from error


def normalize(rgb: Array, mean: Array, std: Array, order: str, layout: str) -> Array:
    """Turn pixels into the network's input: (x - mean) / std in float32.

    Args:
        rgb: (H, W, 3) uint8 in R, G, B order.
        mean: (3,) float32 on 0-255, in the order of the tensor's channels.
        std: (3,) float32 on 0-255, likewise.
        order: ``rgb`` or ``bgr``, the channel order of the tensor.
        layout: ``NCHW`` or ``NHWC``.

    Returns:
        (1, 3, H, W) or (1, H, W, 3) float32, C-contiguous.
    """
    pixels = rgb if order == "rgb" else rgb[..., ::-1]
    if layout == "NCHW":
        planes = np.empty((1, 3, *rgb.shape[:2]), np.float32)
        np.subtract(pixels.transpose(2, 0, 1), mean[:, None, None], out=planes[0])
        planes[0] /= std[:, None, None]
        return planes
    rows = np.subtract(pixels, mean, dtype=np.float32)
    rows /= std
    return rows[None]


def deviations(profile: Profile, card: Card) -> Array:
    """Return the std by which a profile divides, shaped to undo that on a tensor."""
    std = _statistics(profile, card.spec.input)[1]
    return std[:, None, None] if card.spec.input.layout == "NCHW" else std


def _statistics(profile: Profile, card: Input) -> tuple[Array, Array]:
    """Mean and std on 0-255, whatever scale the card uses."""
    scale = 255 / card.top
    values = []
    for asked, own in (
        (profile.spec.normalize.mean, card.mean),
        (profile.spec.normalize.std, card.std),
    ):
        chosen = [v * scale for v in own] if asked == "model" else asked
        values.append(np.array(chosen, np.float32))
    return values[0], values[1]


def _to_yuv(profile: Profile, choices: Choices, planes: bool) -> Step:
    color = profile.spec.color
    assert color.encode is not None and color.odd_size is not None
    odd_size, format = color.odd_size, PixelFormat(color.format)
    choice = choices[Stage.ENCODE]
    if planes:
        how = choice.options["chroma_downsampling"]
        return Step(
            "color",
            ["subsample", color.format, how, odd_size],
            lambda frame, _: even(subsample(frame, format, how), odd_size),
        )
    encoder: Encoder = choice.make()
    return Step(
        "color",
        ["encode", choice.identity(), odd_size],
        lambda frame, _: encoder.encode(even(frame, odd_size)),
    )


def _resample(resizer: Resizer, geometry: Geometry, frame: Frame, odd_size: str | None) -> Frame:
    drop = frame.format.subsampling != (1, 1) and odd_size == "drop"
    return resizer.frame(frame, *_target(geometry, frame.height, frame.width, drop))


def _target(geometry: Geometry, height: int, width: int, even: bool) -> tuple[int, int]:
    """The size to which an image is resampled; whole pairs where *even* is set."""
    rows, columns = geometry.resized(height, width)
    return (rows & ~1, columns & ~1) if even else (rows, columns)
