"""``summary.json`` of ``simulate tail``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from simulator.results.timed import LatencySummary
from simulator.typed import (
    About,
    Interval,
    Keys,
    Ms,
    Named,
    Points,
    ResultModel,
    Share,
    Unit,
)


class Over(ResultModel):
    """A metric over rounds: fractions; None where it cannot be measured on a round."""

    best: Share | None
    worst: Share | None
    mean: Share | None


class Forecast(ResultModel):
    """What as many further rounds would give if answers were late one by one."""

    mean: Share | None
    worst: Share | None = Field(description="median of the worst round's quality")
    ci95: Annotated[Interval, About(Unit.SHARE)]


class Threshold(Over):
    """Quality over rounds where later answers are wrong."""

    ms: Ms = Field(description="the deadline")
    late: Share | None = Field(description="share of answers that were late")
    metrics: Annotated[dict[str, Over], Keys("metric")]
    forecast: Forecast


class SplitThreshold(ResultModel):
    """Earlier rounds against later rounds under one deadline."""

    ms: Ms
    train: Over = Field(description="the earlier rounds")
    test: Over = Field(description="the later rounds")
    delta: Over = Field(description="later less earlier")
    forecast: Forecast = Field(description="from the earlier rounds")


class Divergence(ResultModel):
    """Root Jensen-Shannon divergence of earlier and later latencies, 0 equal to 1 apart."""

    pooled: float = Field(description="of all latencies together")
    median: float | None = Field(description="of the median sample; None as for test")
    train: float | None = Field(
        description="mean over samples, of the earlier rounds' fit from the fits of up to 25 "
        "rounds fewer; None with fewer than 7 rounds"
    )
    test: float | None = Field(
        description="mean over samples, of earlier from later rounds; None where a half is one "
        "round, which has no distribution of a sample"
    )
    alternating: float | None = Field(
        default=None,
        description="mean over samples, of odd from even rounds: what halves of this length give "
        "where nothing drifts; None as for test",
    )


class Split(ResultModel):
    """The later half of the rounds, predicted from the earlier half."""

    rounds: int = Field(description="in each half")
    thresholds: Annotated[dict[str, SplitThreshold | None], Keys("threshold")]
    rjsd: Divergence


class Curve(ResultModel):
    """Quality over rounds at each deadline of a grid."""

    ms: list[float]
    best: list[float | None]
    worst: list[float | None]
    mean: list[float | None]


class Tail(ResultModel):
    """How good a stack is when late answers are wrong.

    ``tail_quality@NAME`` is the worst round under each threshold, None where the samples cannot
    carry the percentile: NAME is ``99``, ``95``, ``90`` or a deadline such as ``12ms``.
    """

    model_config = ConfigDict(extra="allow")
    OPEN: ClassVar[Mapping[str, About]] = {"tail quality": About(Unit.SHARE, better=1)}
    __pydantic_extra__: dict[str, float | None]

    quality: Share | None = Field(description="without a deadline")
    thresholds: Annotated[dict[str, Threshold | None], Keys("threshold")]
    curve: Curve
    split: Split | None = Field(description="None with a single round")


class Better(ResultModel):
    """Deadlines for which one of two stacks has the higher mean quality."""

    stack: str
    from_ms: Ms
    to_ms: Ms | None = Field(description="None: it stays so")
    by: Points = Field(description="largest lead, a fraction")


class Convergence(ResultModel):
    """How Algorithm 1 judges the rounds."""

    rounds: int
    instances: int = Field(description="samples, or batches and queries of several")
    settled: int = Field(description="instances whose distribution stood still")
    done_after: int | None = Field(description="rounds after which all had settled; None: never")
    inferences: int = Field(description="of instances, in all rounds")
    mlperf: int = Field(description="queries that MLPerf's rules ask for a p99")


class TailSummary(LatencySummary):
    """Rounds in one of MLPerf's scenarios, and the quality of late answers."""

    command: Literal["tail"] = "tail"  # type: ignore[assignment]
    scenario: Literal["SingleStream", "MultiStream", "Offline"]  # type: ignore[assignment]
    tail: Annotated[dict[str, Tail], Keys("stack"), Named()]
    better: list[Better]
    convergence: Annotated[dict[str, Convergence], Keys("stack")]
