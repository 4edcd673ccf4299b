"""The settings of a detector: the model card's, unless the profile says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ModelError
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.tasks.detection.card import DetectionOutput, HeadOutput, Proposals, uses_exp
from simulator.tasks.detection.declared import (
    AnchorHead,
    BoxHead,
    FinalHead,
    Head,
    RegionHead,
)
from simulator.tasks.image_task import Choices, merged


@dataclass(frozen=True, slots=True)
class Suppression:
    """Non-maximum suppression with every number filled in; see :class:`Nms` of the profile.

    Attributes:
        kind: ``none``, ``greedy``, ``soft_linear`` or ``soft_gaussian``.
        iou_threshold: 0 to 1; 0 where the kind does not use it (``soft_gaussian``).
        class_aware: whether only boxes of one class suppress each other.
        offset: of widths in the IoU, 0 or 1.
        sigma: of ``soft_gaussian``, else 0.
        score_threshold: only larger scores are kept.
        top_k_before: how many boxes of an image go in, None for all.
        top_k_after: how many boxes of an image come out, None for all.
        class_top_k_after: how many boxes of each class come out, None for all.
        min_width, min_height: smaller boxes of the image are dropped at the end.
        max_width, max_height: larger ones are; None for no limit.
        classes: by the number of a class, what it has in place of these.
    """

    kind: str
    iou_threshold: float
    class_aware: bool
    offset: int
    sigma: float
    score_threshold: float
    top_k_before: int | None
    top_k_after: int | None
    class_top_k_after: int | None = None
    min_width: float = 0.0
    min_height: float = 0.0
    max_width: float | None = None
    max_height: float | None = None
    classes: Mapping[int, Choices] = field(default_factory=dict)

    def of_class(self, label: int) -> Suppression:
        """Return what holds for the boxes of one class."""
        return replace(self, **self.classes[label]) if label in self.classes else self

    def of(self, name: str, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a value for each of (n,) boxes; infinity for no limit."""
        values = np.full(len(labels), _wide(getattr(self, name)))
        for number, own in self.classes.items():
            if name in own:
                values[labels == number] = _wide(own[name])
        return values

    @property
    def lowest(self) -> float:
        """The smallest score threshold of any class."""
        own = [self.of_class(number).score_threshold for number in self.classes]
        return min([self.score_threshold, *own])


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything between a detector's outputs and its boxes, with every choice made.

    A choice that this head does not use has a neutral value, so that equal work has an equal
    identity.

    Attributes:
        head: from the card.
        network: rows and columns of the network's input; None where images differ.
        anchor_offset: an anchor's width is x2 - x1 + this.
        corner_offset: subtracted from x2 and y2 of a decoded box.
        extent_offset: added to x2 and y2 in the image.
        rounding: ``none``, ``floor``, ``ceil`` or ``nearest`` (half to even).
        rounding_at: ``network`` or ``image``.
        precision: ``fp32`` or ``fp16``.
        exp_clamp: the largest argument of exp, None for no limit.
        clip: ``none``, ``network`` or ``image``.
        scale: of unletterbox, ``resized`` or ``ratio``.
        padding: of unletterbox, ``integer`` or ``exact``.
        nms: non-maximum suppression.
        operating_threshold: the product shows boxes with a larger score.
        proposals: of what a head of regions is told from.
        inside: first row and column, rows and columns of the image in the network's input, where
            the head needs it and the image is known.
    """

    head: Head
    network: tuple[int, int] | None
    anchor_offset: int
    corner_offset: int
    extent_offset: int
    rounding: str
    rounding_at: str
    precision: str
    exp_clamp: float | None
    clip: str
    scale: str
    padding: str
    nms: Suppression
    operating_threshold: float
    proposals: Settings | None = None
    inside: tuple[int, int, int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the network's input, once they are known."""
        assert self.network is not None
        return self.network

    def at(self, placement: Placement) -> Settings:
        """Return the settings for the size that the network's input has for an image."""
        network = placement.network_height, placement.network_width
        inside = None
        if isinstance(self.head, BoxHead | FinalHead) and self.head.unit == "resized":
            inside = placement.top, placement.left, placement.rows, placement.columns
        if (network, inside) == (self.network, self.inside):
            return self
        first = self.proposals and self.proposals.at(placement)
        return replace(self, network=network, proposals=first, inside=inside)

    def identity(self) -> dict[str, object]:
        """Return every choice; JSON."""
        known = [name for name in self.__slots__ if name not in ("proposals", "inside")]
        values = {name: getattr(self, name) for name in known}
        own = {
            **values,
            "head": self.head.model_dump(mode="json"),
            "network": list(self.network) if self.network else None,
            "nms": asdict(self.nms),
        }
        return own | ({"proposals": self.proposals.identity()} if self.proposals else {})


def resolve(
    output: DetectionOutput, asked: Postprocess, network: tuple[int, int] | None, classes: int
) -> Settings:
    """Return the card's choices with those of the profile in their place.

    Args:
        output: the card.
        asked: the profile; ``model`` leaves the card's value.
        network: rows and columns of the network's input; None where images differ.
        classes: how many labels there are.

    Raises:
        ModelError: the profile leaves a value to the card, and the card has none; or it asks for
            something of a class that the card does not have.
    """
    unletterbox = merged(output.unletterbox, asked.unletterbox)
    found = _of_head(output, asked, network, classes)
    given = output.proposals
    return replace(
        found,
        scale=unletterbox["scale"],
        padding=unletterbox["offset"],
        operating_threshold=output.operating_threshold,
        proposals=_of_head(given, _of_proposals(asked), network, 1) if given else None,
    )


def _of_proposals(asked: Postprocess) -> Postprocess:
    """What a profile says of proposals, where it says it of boxes."""
    fields = ("box_offset", "box_rounding", "box_precision", "exp_clamp", "nms")
    return Postprocess(**{name: getattr(asked, f"proposal_{name}") for name in fields})


def _of_head(
    output: HeadOutput, asked: Postprocess, network: tuple[int, int] | None, classes: int
) -> Settings:
    """The choices up to boxes of the network's pixels; the others are neutral."""
    head, is_first = output.head, isinstance(output, Proposals)
    offset = merged(output.box_offset, asked.box_offset)
    rounding = merged(output.box_rounding, asked.box_rounding)
    clamp = output.exp_clamp if asked.exp_clamp == "model" else asked.exp_clamp
    given = isinstance(head, BoxHead | FinalHead) and head.format in ("xyxy", "yxyx")
    if is_first and (offset["extent"] or rounding["at"] == "image"):
        raise ModelError(
            "proposals are not reported, and are in the network's pixels: leave out "
            "proposal_box_offset.extent and proposal_box_rounding.at, or extent and at in the card"
        )
    return Settings(
        head=head,
        network=network,
        anchor_offset=offset["anchors"] if isinstance(head, AnchorHead | RegionHead) else 0,
        corner_offset=0 if given else offset["corners"],
        extent_offset=offset["extent"],
        rounding=rounding["mode"],
        rounding_at="network" if rounding["mode"] == "none" else rounding["at"],
        precision=output.box_precision if asked.box_precision == "model" else asked.box_precision,
        exp_clamp=float(clamp) if uses_exp(head) and clamp not in ("none", None) else None,
        clip=output.clip,
        scale="resized",
        padding="integer",
        nms=_suppression(merged(output.nms, asked.nms), classes),
        operating_threshold=0.0,
    )


def _suppression(nms: Choices, classes: int) -> Suppression:
    """Make values neutral that the kind does not use."""
    kind = nms["kind"]
    if kind == "soft_gaussian" and nms["sigma"] == "model":
        raise ModelError(
            "nms.sigma: the profile asks for soft_gaussian and leaves sigma to the model card,"
            " which has none; write it into one of them"
        )
    by_overlap = kind in ("greedy", "soft_linear")
    aware = kind != "none" and nms["class_aware"]
    chosen: Choices = {
        **{name: _limit(value) for name, value in nms.items()},
        "kind": kind,
        "class_aware": aware,
        "classes": _single(nms, classes, by_overlap, aware),
    }
    if not by_overlap:
        chosen["iou_threshold"] = 0.0
    if kind == "none":
        chosen["offset"] = 0
    if kind != "soft_gaussian":
        chosen["sigma"] = 0.0
    return Suppression(**chosen)


def _single(nms: Choices, classes: int, by_overlap: bool, aware: bool) -> dict[int, Choices]:
    """What single classes have, where it is not what all have."""
    found: dict[int, Choices] = {}
    for number, asked in sorted((int(number), asked) for number, asked in nms["classes"].items()):
        if number >= classes:
            raise ModelError(
                f"nms.classes.{number}: the model card has {classes} labels, and the last is "
                f"class {classes - 1}"
            )
        own = {
            name: _limit(value)
            for name, value in asked.items()
            if value is not None and value != nms[name]
        }
        if not by_overlap:
            own.pop("iou_threshold", None)
        elif "iou_threshold" in own and not aware:
            raise ModelError(
                f"nms.classes.{number}.iou_threshold: boxes of other classes are suppressed too; "
                "write class_aware: true, or leave it out"
            )
        if own:
            found[number] = own
    return found


def _limit(written: Any) -> Any:
    return None if written in ("all", "none") else written


def _wide(limit: float | None) -> float:
    return np.inf if limit is None else limit
