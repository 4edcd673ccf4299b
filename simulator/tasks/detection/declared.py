"""The heads that a model card can declare: where the numbers are, and how they become boxes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.section import Above0, Finite, Positive, Section

Names = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Four = Annotated[tuple[Finite, Finite, Finite, Finite], Field(strict=False)]
FourAbove0 = Annotated[tuple[Above0, Above0, Above0, Above0], Field(strict=False)]
Several = Annotated[tuple[Above0, ...], Field(strict=False, min_length=1)]
Pair = Annotated[tuple[Above0, Above0], Field(strict=False)]
Cells = Annotated[tuple[Positive, Positive], Field(strict=False)]


class Tensor(Section):
    """One tensor of numbers per box: an output, or one output for each stride.

    ``columns`` in their order: ``boxes`` are 4 (or 4 times ``bins``), ``objectness`` is 1, and
    ``scores`` are one for each class, and one more for a background. ``shared``: columns that a
    cell has once for all its anchors; then a cell's numbers are column by column, each for one
    anchor after the other (Yolo-FastestV2: A*4 boxes, A objectness, C scores). ``ignored``: how
    many numbers follow that are not read, for example the 32 of a mask.
    """

    names: Names
    columns: Annotated[
        tuple[Literal["boxes", "objectness", "scores"], ...], Field(strict=False, min_length=1)
    ]
    shared: Annotated[tuple[Literal["objectness", "scores"], ...], Field(strict=False)] = ()
    ignored: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _shared(self) -> Tensor:
        if self.shared and self.ignored:
            raise ValueError("ignored: not where columns are shared")
        if strange := [one for one in self.shared if one not in self.columns]:
            raise ValueError(f"shared: {', '.join(strange)}: not among the columns")
        return self


class AnswerTensor(Section):
    """One output of a model that has NMS inside.

    ``score``, ``class`` and ``ignored`` are one column each; ``count`` is one number, how many
    of the rows are answers.
    """

    names: Names = Field(max_length=1)
    columns: Annotated[
        tuple[Literal["boxes", "score", "class", "count", "ignored"], ...],
        Field(strict=False, min_length=1),
    ]


class Objectness(Section):
    """How likely it is that there is an object at all: a factor of the score."""

    activation: Literal["sigmoid", "none"]
    exponent: Above0 = 1


class Score(Section):
    """score = objectness ** its exponent * class score ** exponent.

    ``classes``: every class of a box may become a detection, or only its best.
    """

    activation: Literal["sigmoid", "softmax", "none"]
    background: Literal["none", "first", "last"]
    classes: Literal["all", "best"]
    exponent: Above0 = 1
    objectness: Objectness | None = None


class Rows(Section):
    """A head with a score for each class.

    ``layout``: ``rows`` (1, N, C), the dimensions before the last taken together; ``columns``
    (1, C, N); ``maps`` (1, A*C, H, W); ``maps_last`` (1, H, W, A*C). The C numbers of one anchor
    are neighbors, unless a tensor has ``shared`` columns.
    """

    outputs: Annotated[tuple[Tensor, ...], Field(strict=False, min_length=1)]
    score: Score

    @model_validator(mode="after")
    def _columns(self) -> Rows:
        wanted = ["boxes", "scores"] + ["objectness"] * (self.score.objectness is not None)
        got = [column for tensor in self.outputs for column in tensor.columns]
        if sorted(got) != sorted(wanted):
            raise ValueError(f"the columns must be {', '.join(wanted)}, once each, got {got}")
        return self


class Dense(Rows):
    """A head with boxes for every cell of one grid for each stride.

    ``strides`` are network pixels from cell to cell, one number or y and x; ``cells`` is how many
    cells there are: network size / stride, rounded, or [rows, columns] of each grid.
    ``order``: whether a cell's anchors are neighbors, or an anchor's cells.
    """

    layout: Literal["rows", "columns", "maps", "maps_last"]
    strides: Annotated[tuple[Above0 | Pair, ...], Field(strict=False, min_length=1)]
    cells: Literal["ceil", "floor"] | Annotated[tuple[Cells, ...], Field(strict=False)]
    order: Literal["cells_anchors", "anchors_cells"] = "cells_anchors"

    @model_validator(mode="after")
    def _levels(self) -> Dense:
        levels = len(self.strides)
        if not isinstance(self.cells, str) and len(self.cells) != levels:
            raise ValueError(f"{levels} strides and {len(self.cells)} pairs of cells")
        for tensor in self.outputs:
            if len(tensor.names) not in (1, levels):
                raise ValueError(
                    f"{levels} strides want 1 or {levels} outputs of {'+'.join(tensor.columns)},"
                    f" got {len(tensor.names)}"
                )
            if tensor.shared and not self.layout.startswith("maps"):
                raise ValueError(
                    f"shared columns are for layout maps or maps_last, got {self.layout}"
                )
            if self.layout.startswith("maps") and len(tensor.names) != levels:
                raise ValueError(f"{self.layout} of {levels} strides are {levels} outputs")
        return self


class RatioAnchors(Section):
    """Anchors of area size² and of every ratio: width = size * scale / sqrt(ratio).

    ``sizes``: a list for each stride; ``ratios``: height / width; ``outer``: which of both
    changes slower in the order of a cell's anchors (within sizes, the scales change fastest);
    ``rounding``: of the corners around the center (torchvision's AnchorGenerator: nearest).
    """

    kind: Literal["ratios"]
    sizes: Annotated[tuple[Several, ...], Field(strict=False, min_length=1)]
    scales: Several = (1.0,)
    ratios: Several
    outer: Literal["ratios", "sizes"]
    rounding: Literal["none", "nearest"]


class ShapeAnchors(Section):
    """Anchors given as [width, height] in network pixels: for each stride, a list of them."""

    kind: Literal["shapes"]
    shapes: Annotated[
        tuple[Annotated[tuple[Pair, ...], Field(strict=False, min_length=1)], ...],
        Field(strict=False, min_length=1),
    ]


class Deltas(Section):
    """delta / weights (torchvision), or delta * stds + means (MMDetection, SSD's variances)."""

    weights: FourAbove0 | None = None
    means: Four | None = None
    stds: FourAbove0 | None = None
    order: Literal["xywh", "yxhw"] = "xywh"

    @model_validator(mode="after")
    def _one_way(self) -> Deltas:
        given = [key for key in ("weights", "means", "stds") if getattr(self, key) is not None]
        if given not in (["weights"], ["means", "stds"]):
            raise ValueError("either weights, or means and stds, of the four deltas")
        return self


class AnchorHead(Dense):
    """SSD, RetinaNet, the first stage of Faster R-CNN: anchors and how far boxes are from them.

    ``center``: where in its cell an anchor's center lies, 0 to 1.
    """

    kind: Literal["anchors"]
    center: Finite
    anchors: Annotated[RatioAnchors | ShapeAnchors, Field(discriminator="kind")]
    deltas: Deltas

    @model_validator(mode="after")
    def _anchors(self) -> AnchorHead:
        _one_each(self.strides, self.anchors)
        return self


class Center(Section):
    """center = (cell + shift + gain * activation(t)) * stride."""

    activation: Literal["none", "sigmoid", "tanh"]
    gain: Above0 = 1
    shift: Finite = 0


class Size(Section):
    """size = (gain * activation(t)) ** power * unit."""

    activation: Literal["none", "exp", "sigmoid"]
    gain: Above0 = 1
    power: Above0 = 1
    unit: Literal["pixel", "stride", "anchor", "image"]


class CenterSize(Section):
    """Columns x, y, w, h: YOLOv3 to v5, YOLOX, FastestDet."""

    kind: Literal["center_size"]
    center: Center
    size: Size


class Distances(Section):
    """Columns left, top, right, bottom, from (cell + shift) * stride: FCOS, YOLOv8.

    ``distribution``: each is the mean of a softmax over 0 to ``bins`` - 1 (DFL, the Generalized
    Focal Loss paper, equation 4); a side's bins are neighbors.
    """

    kind: Literal["distances"]
    activation: Literal["none", "relu", "exp", "distribution"]
    bins: Annotated[int, Field(ge=2)] | None = None
    unit: Literal["pixel", "stride"]
    shift: Finite

    @model_validator(mode="after")
    def _bins(self) -> Distances:
        if (self.activation == "distribution") != (self.bins is not None):
            raise ValueError("activation distribution and a number of bins go together")
        return self


class GridHead(Dense):
    """YOLO, FCOS, FastestDet: boxes that are told from their cell."""

    kind: Literal["grid"]
    encoding: Annotated[CenterSize | Distances, Field(discriminator="kind")]
    anchors: ShapeAnchors | None = None

    @model_validator(mode="after")
    def _anchors(self) -> GridHead:
        size = self.encoding.size if isinstance(self.encoding, CenterSize) else None
        if (size is not None and size.unit == "anchor") != (self.anchors is not None):
            raise ValueError("a size in units of anchor and anchors go together")
        if self.anchors:
            _one_each(self.strides, self.anchors)
        return self


class BoxHead(Rows):
    """Boxes that the model has decoded, before NMS.

    ``unit``: ``pixel`` of the network's input; ``image``: 0 to 1 of its size; ``resized``: 0 to 1
    of what of it is not padding.
    """

    kind: Literal["boxes"]
    layout: Literal["rows", "columns"]
    format: Literal["xyxy", "yxyx", "cxcywh", "xywh"]
    unit: Literal["pixel", "image", "resized"]

    @model_validator(mode="after")
    def _levels(self) -> BoxHead:
        if any(tensor.shared for tensor in self.outputs):
            raise ValueError("shared columns are for heads with anchors in maps")
        if len({len(tensor.names) for tensor in self.outputs}) > 1:
            raise ValueError("all entries of outputs must have as many names")
        return self


class FinalHead(Section):
    """A model with NMS inside: one row for each detection.

    ``first_class``: the number that the class column has for the first label, 1 where 0 is the
    background.
    """

    kind: Literal["detections"]
    outputs: Annotated[tuple[AnswerTensor, ...], Field(strict=False, min_length=1)]
    format: Literal["xyxy", "yxyx", "cxcywh", "xywh"]
    unit: Literal["pixel", "image", "resized"]
    first_class: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _columns(self) -> FinalHead:
        got = [c for tensor in self.outputs for c in tensor.columns if c != "ignored"]
        if sorted(c for c in got if c != "count") != ["boxes", "class", "score"]:
            raise ValueError(f"the columns must be boxes, score and class, once each, got {got}")
        counts = [tensor for tensor in self.outputs if "count" in tensor.columns]
        if len(counts) > 1 or any(tensor.columns != ("count",) for tensor in counts):
            raise ValueError("count is one output of its own")
        return self


class RegionHead(Rows):
    """The second stage of Faster R-CNN: how far boxes are from proposals, a row for each.

    ``class_boxes``: whether a row has four numbers for all classes (``one``), for each label
    (``labels``: Detectron2, MMDetection), or for each score, the background's among them
    (``scores``: torchvision, Caffe).
    """

    kind: Literal["regions"]
    layout: Literal["rows"] = "rows"
    deltas: Deltas
    class_boxes: Literal["one", "labels", "scores"]

    @model_validator(mode="after")
    def _regions(self) -> RegionHead:
        if any(tensor.shared or len(tensor.names) > 1 for tensor in self.outputs):
            raise ValueError("regions have one output for each kind of column, without shared ones")
        if self.class_boxes == "scores" and self.score.background == "none":
            raise ValueError("class_boxes: scores needs a background: first or last")
        return self


Head = AnchorHead | GridHead | BoxHead | FinalHead | RegionHead


def _one_each(strides: tuple[object, ...], anchors: RatioAnchors | ShapeAnchors) -> None:
    """Refuse anchors that are not given for each stride."""
    lists = anchors.sizes if isinstance(anchors, RatioAnchors) else anchors.shapes
    if len(lists) != len(strides):
        raise ValueError(f"{len(strides)} strides, and {anchors.kind} anchors for {len(lists)}")
