"""A detector's part of the model card: its head, and what is done with its boxes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from simulator.profile.postprocess import BoxOffset, BoxRounding, Fraction, Nms, Unletterbox
from simulator.profile.section import Above0, Section
from simulator.tasks.detection.declared import (
    AnchorHead,
    BoxHead,
    CenterSize,
    GridHead,
    Head,
    Names,
    RegionHead,
)


def uses_exp(head: Head) -> bool:
    """Whether the head takes an ``exp``, which can be clamped."""
    if isinstance(head, GridHead):
        encoding = head.encoding
        part = encoding.size if isinstance(encoding, CenterSize) else encoding
        return part.activation == "exp"
    return isinstance(head, AnchorHead | RegionHead)


class HeadOutput(Section):
    """How a head's numbers become boxes of the network's pixels.

    ``clip``: corners beyond the network's input, or beyond the image, are moved to its border.
    ``exp_clamp`` is required where the head takes an ``exp``.
    """

    head: Annotated[Head, Field(discriminator="kind")]
    box_offset: BoxOffset = Field(BoxOffset(), validate_default=True)
    box_rounding: BoxRounding = Field(BoxRounding(), validate_default=True)
    box_precision: Literal["fp32", "fp16"] = "fp32"
    exp_clamp: Literal["none"] | Above0 | None = None
    clip: Literal["none", "network", "image"]
    nms: Nms

    @field_validator(
        "box_offset", "box_rounding", "unletterbox", "nms", mode="after", check_fields=False
    )
    @classmethod
    def _no_model(cls, value: Section) -> Section:
        """Refuse a profile's word ``model``, and fill in neutral values that are not written."""
        neutral = _NEUTRAL.get(type(value), {})
        left = [key for key in type(value).model_fields if getattr(value, key) == "model"]
        written = [key for key in left if key in value.model_fields_set]
        if written:
            raise ValueError(f"{', '.join(written)}: 'model' is for profiles; say it in the card")
        soft = isinstance(value, Nms) and value.kind == "soft_gaussian"
        missing = [k for k in left if k not in neutral and (k != "sigma" or soft)]
        if missing:
            raise ValueError(f"the card must say {', '.join(missing)}")
        return value.model_copy(update={key: neutral[key] for key in left if key in neutral})

    @model_validator(mode="after")
    def _exp(self) -> HeadOutput:
        if uses_exp(self.head) and self.exp_clamp is None:
            raise ValueError(
                "exp_clamp is missing: the largest argument of the head's exp, or none"
                " (torchvision and Detectron: 4.135166556742356, the logarithm of 1000 / 16)"
            )
        if self.exp_clamp is not None and not uses_exp(self.head):
            raise ValueError("exp_clamp: this head takes no exp; leave it out")
        return self

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the outputs that are read."""
        return tuple(name for tensor in self.head.outputs for name in tensor.names)


class Proposals(HeadOutput):
    """The boxes that a second network takes, made of the outputs of the first.

    ``input`` is their name there: (n, 4) x1, y1, x2, y2 in network pixels, best first.
    ``features`` are outputs of the first network that it takes under the same names.
    """

    input: str
    features: Names

    @field_validator("head")
    @classmethod
    def _no_regions(cls, head: Head) -> Head:
        if not isinstance(head, AnchorHead | GridHead | BoxHead):
            raise ValueError(f"proposals are of kind anchors, grid or boxes, got {head.kind}")
        return head

    @field_validator("clip")
    @classmethod
    def _in_network(cls, clip: str) -> str:
        if clip == "image":
            raise ValueError("proposals are clipped to the network's input: network, or none")
        return clip


class DetectionOutput(HeadOutput):
    """The ``output`` section of a detector's card: what ``model`` in a profile refers to.

    ``operating_threshold`` is the score above which the product shows a box: flips are counted
    among those. ``proposals`` are what the boxes of a head of kind ``regions`` are told from.
    """

    unletterbox: Unletterbox = Field(Unletterbox(), validate_default=True)
    operating_threshold: Fraction
    proposals: Proposals | None = None

    @model_validator(mode="after")
    def _two_stages(self) -> DetectionOutput:
        if isinstance(self.head, RegionHead) != (self.proposals is not None):
            raise ValueError("a head of kind regions needs proposals, and no other head has them")
        return self


_NEUTRAL: dict[type[Section], dict[str, object]] = {
    BoxOffset: {"anchors": 0, "corners": 0, "extent": 0},
    BoxRounding: {"mode": "none", "at": "network"},
    Unletterbox: {"scale": "resized", "offset": "integer"},
    Nms: {
        "class_top_k_after": "all", "min_width": 0.0, "min_height": 0.0,
        "max_width": "none", "max_height": "none", "classes": {},
    },
}  # fmt: skip
