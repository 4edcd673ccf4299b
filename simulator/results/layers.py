"""Where two networks part, layer by layer: a part of ``summary.json`` of ``simulate diagnose``."""

from __future__ import annotations

from pydantic import Field

from simulator.typed import Ratio, ResultModel


class LayerError(ResultModel):
    """How far the values of a layer are from those of the training stack."""

    rms: Ratio | None = Field(
        description="root mean square of the difference, by that of the training stack's values; "
        "None: a value is not finite, or training has zeros alone"
    )
    channel: Ratio | None = Field(
        description="the same in the channel where it is largest; None: there are no channels"
    )
    largest: float | None = Field(description="largest absolute difference; None: not finite")
    cosine: float | None = Field(description="cosine of the angle between both")
    not_finite: int = Field(description="values that are NaN or infinite in one stack alone")


class LayerFigures(ResultModel):
    """One tensor that both networks have."""

    tensor: str = Field(description="its name in the training stack's file")
    own: str = Field(description="its name in the deployment stack's")
    layer: str = Field(
        description="the node that makes it in the deployment stack's file; in training's where "
        "the runtime has no names of nodes"
    )
    operator: str = Field(description="of that node")
    shape: list[int]
    accumulated: LayerError | None = Field(
        description="both networks run from the same input; None: the shapes differ"
    )
    alone: LayerError | None = Field(
        default=None,
        description="the deployment stack's layer gets the training stack's values; None: it could "
        "not be run by itself",
    )
    reasons: list[str] = Field(default_factory=list, description="the names of the findings")


class LayersFigures(ResultModel):
    """The layers of two networks."""

    train: str = Field(description="the runtime of the training stack")
    deploy: str = Field(description="the runtime of the deployment stack")
    samples: int = Field(description="input tensors that both networks got")
    bound: Ratio = Field(description="of rms, above which a layer is looked at")
    why: str = Field(description="where the bound comes from")
    first: str | None = Field(description="the first layer whose accumulated error is above it")
    rows: list[LayerFigures] = Field(description="in the order in which they are computed")
    unmatched: int = Field(description="tensors of the training stack without a counterpart")
    extra: int = Field(description="tensors of the deployment stack without a counterpart")
    suspects: int = Field(description="layers whose own error is above the bound")
    examined: int = Field(description="of these, layers whose reason was looked for")
    notes: list[str] = Field(description="how it was measured, and what that changes")
