"""From the network's input to the answer: the last steps of a stack."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.contract import Array, Encoded, Runtime, clock
from simulator.errors import ModelError, SampleError, one_line
from simulator.modalities.image.front_end import in_pairs, target
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import UPRIGHT
from simulator.model.card import Card
from simulator.pipeline.plan import Sample, Step
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
        self._even = in_pairs(profile)

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
        resampled = target(self._geometry, height, width, self._even)
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
