"""From the network's outputs to boxes and masks: every step that can differ between stacks.

``model`` stands for the model card's value. A field that a task does not use has no effect.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.section import Above0, Positive, Section

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Offset = Literal["model", 0, 1]
Side = Annotated[float, Field(ge=0, allow_inf_nan=False)]
ClassNumber = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,4})$")]


class BoxOffset(Section):
    """Whether a box from 2 to 5 is 3 or 4 pixels wide: SysNoise's ``ALIGNED_FLAG.offset``."""

    anchors: Offset = Field("model", description="an anchor's width is x2 - x1 + offset")
    corners: Offset = Field("model", description="x2 and y2 of a decoded box are reduced by offset")
    extent: Offset = Field("model", description="a reported width is x2 - x1 + offset")


class BoxRounding(Section):
    """Rounding of boxes to whole pixels."""

    mode: Literal["model", "none", "floor", "ceil", "nearest"] = "model"
    at: Literal["model", "network", "image"] = Field(
        "model",
        description="in pixels of the network's input before NMS, or in pixels "
        "of the image at the end",
    )


class ClassNms(Section):
    """What holds for the boxes of one class in place of what :class:`Nms` says of all."""

    iou_threshold: Fraction | None = Field(
        None, description="of this class; wants class_aware: true"
    )
    score_threshold: Fraction | None = Field(None, description="of this class; 1 drops all")
    class_top_k_after: Literal["all"] | Positive | None = Field(None, description="of this class")
    min_width: Side | None = Field(None, description="of this class")
    min_height: Side | None = Field(None, description="of this class")
    max_width: Literal["none"] | Above0 | None = Field(None, description="of this class")
    max_height: Literal["none"] | Above0 | None = Field(None, description="of this class")


class Nms(Section):
    """Non-maximum suppression, and the thresholds before and after it."""

    kind: Literal["model", "none", "greedy", "soft_linear", "soft_gaussian"] = "model"
    iou_threshold: Literal["model"] | Fraction = Field(
        "model",
        description="a box that overlaps a better one by more than this is suppressed or softened",
    )
    class_aware: Literal["model"] | bool = Field(
        "model", description="whether only boxes of the same class suppress each other"
    )
    offset: Offset = Field("model", description="widths in the IoU are x2 - x1 + offset")
    sigma: Literal["model"] | Above0 = Field("model", description="the sigma of soft_gaussian")
    score_threshold: Literal["model"] | Fraction = Field(
        "model", description="only boxes with a larger score are kept, before and after soft-NMS"
    )
    top_k_before: Literal["model", "all"] | Positive = "model"
    top_k_after: Literal["model", "all"] | Positive = "model"
    class_top_k_after: Literal["model", "all"] | Positive = Field(
        "model",
        description="how many boxes of each class come out, the best of them; top_k_after "
        "then counts those of the image",
    )
    min_width: Literal["model"] | Side = Field(
        "model", description="narrower boxes are dropped at the end; pixels of the image"
    )
    min_height: Literal["model"] | Side = Field("model", description="lower boxes are dropped")
    max_width: Literal["model", "none"] | Above0 = Field(
        "model", description="wider boxes are dropped at the end; pixels of the image"
    )
    max_height: Literal["model", "none"] | Above0 = Field(
        "model", description="higher boxes are dropped"
    )
    classes: Literal["model"] | dict[ClassNumber, ClassNms] = Field(
        "model",
        description="what is different for single classes, by their number: the first of the "
        "model card's labels is 0",
    )


class Unletterbox(Section):
    """How boxes and masks are mapped from pixels of the network's input to pixels of the image."""

    scale: Literal["model", "resized", "ratio"] = Field(
        "model",
        description="resized: by the real size of the image after its resize; ratio: by the one "
        "factor min(network / image), without rounding",
    )
    offset: Literal["model", "integer", "exact"] = Field(
        "model",
        description="for centered padding: whole pixels as it was done, or also half pixels",
    )


class LogitsUpsample(Section):
    """Upsampling of score maps to the resolution at which classes are chosen."""

    mode: Literal["model", "nearest", "bilinear"] = "model"
    coordinate_transformation_mode: Literal[
        "model", "half_pixel", "align_corners", "asymmetric"
    ] = "model"  # fmt: skip


class MaskResize(Section):
    """Resizing of masks from the network's resolution to that of the image."""

    of: Literal["model", "labels", "logits"] = Field(
        "model", description="resize the chosen classes; or resize the scores and choose afterwards"
    )
    mode: Literal["model", "nearest", "bilinear"] = Field(
        "model", description="labels can only be resized by nearest"
    )
    coordinate_transformation_mode: Literal[
        "model", "half_pixel", "align_corners", "asymmetric"
    ] = "model"  # fmt: skip

    @model_validator(mode="after")
    def _labels_by_nearest(self) -> MaskResize:
        if self.of == "labels" and self.mode == "bilinear":
            raise ValueError("labels can only be resized by nearest; write mode: nearest")
        return self


class Postprocess(Section):
    """How the network's outputs become answers."""

    unletterbox: Unletterbox = Unletterbox()
    box_offset: BoxOffset = BoxOffset()
    box_rounding: BoxRounding = BoxRounding()
    box_precision: Literal["model", "fp32", "fp16"] = Field(
        "model", description="the type for computing anchors, deltas and boxes"
    )
    exp_clamp: Literal["model", "none"] | Above0 = Field(
        "model", description="the largest argument of exp in a width or height"
    )
    nms: Nms = Nms()
    proposal_box_offset: BoxOffset = Field(
        BoxOffset(), description="of the proposals that a second network takes; no extent"
    )
    proposal_box_rounding: BoxRounding = Field(
        BoxRounding(), description="likewise, in pixels of the network's input"
    )
    proposal_box_precision: Literal["model", "fp32", "fp16"] = Field(
        "model", description="likewise"
    )
    proposal_exp_clamp: Literal["model", "none"] | Above0 = Field("model", description="likewise")
    proposal_nms: Nms = Field(Nms(), description="likewise; sizes are in the network's pixels")
    logits_upsample: LogitsUpsample = LogitsUpsample()
    argmax: Literal["model", "before", "after"] = Field(
        "model", description="choose the class before or after the logits are upsampled"
    )
    output_stride: Literal["model"] | Positive = Field(
        "model", description="pixels of the network's input per mask pixel when classes are chosen"
    )
    mask_resize: MaskResize = MaskResize()

    @model_validator(mode="after")
    def _logits_that_are_gone(self) -> Postprocess:
        if self.argmax == "before":
            if self.mask_resize.of == "logits":
                raise ValueError("mask_resize.of: logits: argmax: before leaves only labels")
            if self.logits_upsample.mode == "bilinear":
                raise ValueError(
                    "logits_upsample.mode: argmax: before leaves only labels; write nearest"
                )
        return self
